"""Cohen's kappa of two raters, or of every two of many, and Fleiss' kappa of many, with standard errors.

Cohen (1960), Educational and Psychological Measurement 20:37-46; weights: Cohen (1968), Psychological
Bulletin 70:213-220. Standard errors, in general (`se`, for the interval) and where raters are independent
(`se0`, for the test): Fleiss, Cohen & Everitt (1969), Psychological Bulletin 72:323-327; plain kappa is
weighted kappa with identity weights.

Fleiss (1971), Psychological Bulletin 76:378-382. `se0`: Fleiss, Nee & Landis (1979), Psychological
Bulletin 86:974-977, for equal numbers of ratings only. That error holds where there is no agreement and
is no base for an interval; `se` is the linearised one over items (Gwet 2008, British Journal of
Mathematical and Statistical Psychology 61:29-48), which needs neither.

Of every two raters: the mean of their kappas (Light 1971, Psychological Bulletin 76:365-377), with the
linearised error over items, which all pairs share.

Intervals are those of atanh(kappa), turned back: they lie within [-1, 1], and cover better than
kappa +- z se where kappa is large (`tests/statistics/test_kappa.py` counts).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics._agreement import Agreement, long_columns, notes_of, rated_items, wide_table
from palaver.statistics.bootstrap import (
    Floats,
    Ints,
    Resampling,
    Rng,
    check_fraction,
    percentile_interval,
    resample_sums,
)
from palaver.statistics.codes import dense_codes, distinct_values
from palaver.tabular import columns_of

Weights = Literal["none", "linear", "quadratic"]
WEIGHTS: tuple[Weights, ...] = get_args(Weights)

_NO_PAIR = "no item has two ratings"
_ONE_CATEGORY = "all ratings fall into one category"
_NO_SPREAD = "no interval: all items say the same, which does not show how sure this is"
_NO_CHANCE = 1e-12  # 1 - expected agreement of a replicate below which it used one category only
_MOST_CATEGORIES = 2000
_BLOCK = 2**20  # numbers in one block of resampled tables


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KappaResult(Agreement):
    """Kappa of two (`cohen`) or more (`fleiss`) raters."""

    method: Literal["cohen", "fleiss"]
    se: float = math.nan
    se0: float = math.nan
    """Standard error if raters agreed by chance only; `z` and the two-sided `p` rest on it."""
    z: float = math.nan
    p: float = math.nan
    observed: float = math.nan
    """(Weighted) share of agreement."""
    expected: float = math.nan
    weights: Weights = "none"
    n_categories: int

    @property
    def measure(self) -> str:
        kappa = "Cohen's kappa" if self.method == "cohen" else "Fleiss' kappa"
        return kappa if self.weights == "none" else f"{kappa}, {self.weights} weights"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PairwiseKappa(Agreement):
    """The mean of Cohen's kappa of every two raters; `first[i]` and `second[i]` have `values[i]`."""

    weights: Weights
    se: float = math.nan
    first: Ints
    second: Ints
    values: Floats
    """Undefined (nan) where the two used one category only."""
    n_shared: Ints
    """Items that both judged."""
    without: Floats
    """The mean without each group of items; nan where it is undefined."""

    @property
    def measure(self) -> str:
        weights = "" if self.weights == "none" else f", {self.weights} weights"
        return f"Cohen's kappa, mean of pairs{weights}"

    def _tables(self) -> dict[str, Any]:
        pairs = {"first": self.first, "second": self.second, "value": self.values, "n_shared": self.n_shared}
        leave_out = ("boot", "first", "second", "values", "n_shared", "without")
        columns = {"measure": [self.measure], **columns_of(type(self), [self], leave_out=leave_out)}
        return {"agreement": columns, "pairs": {name: values.tolist() for name, values in pairs.items()}}


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: Weights = "none",
    categories: ArrayLike | None = None,
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> KappaResult:
    """Agreement of two raters' labels (numbers, nan where missing, or strings) of the same items.

    Weights count the steps between two categories in the order of `categories`; without those, in the
    sorted order of the labels in use, so a step that nobody used is lost.

    >>> result = cohen_kappa([1, 1, 2, 2, 3, 3], [1, 1, 2, 3, 3, 3])
    >>> round(result.value, 3), round(result.se, 3)
    (0.75, 0.218)
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    resampling = Resampling.of(confidence, n_replicates, rng)
    first, second = long_columns(a=a, b=b)
    both = _given(first) & _given(second)
    dropped = int(both.size - both.sum())
    labels, codes = _categories(first[both], second[both], categories)
    notes = notes_of({"items without both ratings": dropped})
    if weights != "none" and categories is None:
        notes += _unused_steps(labels)
    _check_number(labels.size)
    table = np.bincount(codes[0] * labels.size + codes[1], minlength=labels.size**2)
    counts = table.reshape(labels.size, labels.size).astype(np.float64)
    facts = KappaResult(
        method="cohen",
        confidence=confidence,
        weights=weights,
        n_items=int(counts.sum()),
        n_categories=labels.size,
        n_raters=2,
        dropped=dropped,
        notes=notes,
        reason="" if counts.any() else _NO_PAIR,
    )
    return facts if facts.reason else _cohen(facts, counts, resampling)


def pairwise_kappa(
    item: ArrayLike,
    rater: ArrayLike,
    value: ArrayLike,
    *,
    weights: Weights = "none",
    categories: ArrayLike | None = None,
    min_shared: int = 10,
    confidence: float = 0.95,
    group: ArrayLike | None = None,
) -> PairwiseKappa:
    """Cohen's kappa of every two raters with `min_shared` items in common, and the mean of these kappas.

    One row per rating: integer codes of item and rater, and the label (a number, nan where missing, or a
    string). Every pair counts the same. `group` numbers the group of each rating's item; `without` then holds
    the mean without each group, of those pairs that have `min_shared` items left.
    """
    if weights not in WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    check_fraction("confidence", confidence)
    items, raters, values = long_columns(item=item, rater=rater, value=value)
    dense_items, n_items = dense_codes("item", items)
    given = _given(values)
    given &= (np.bincount(dense_items, given, minlength=n_items) > 1)[dense_items]  # others are of no pair
    order = np.flatnonzero(given)
    order = order[np.lexsort((raters[order], dense_items[order]))]
    shared, judges = dense_items[order], raters[order].astype(np.int64)
    labels, (codes, _) = _categories(values[order], values[:0], categories)
    _check_number(labels.size)
    notes = _unused_steps(labels) if weights != "none" and categories is None else ()
    left, right = _rows_of_pairs(shared)
    other = judges[left] != judges[right]  # a rater who judged an item twice is no pair
    left, right = left[other], right[other]
    base = int(judges.max(initial=0)) + 1
    keys, pair, n_shared = np.unique(
        judges[left] * base + judges[right], return_inverse=True, return_counts=True
    )
    pairs = np.column_stack([keys // base, keys % base])
    enough = n_shared >= min_shared
    rows = enough[pair]
    pair = (np.cumsum(enough) - 1)[pair[rows]]
    shared_item, a, b = shared[left[rows]], codes[left[rows]], codes[right[rows]]
    facts = PairwiseKappa(
        confidence=confidence,
        weights=weights,
        n_items=np.unique(shared_item).size,
        n_raters=np.unique(pairs[enough]).size,
        dropped=int((~enough).sum()),
        notes=notes
        + notes_of({f"pairs of raters with fewer than {min_shared} items in common": int((~enough).sum())}),
        first=pairs[enough, 0],
        second=pairs[enough, 1],
        values=np.empty(0),
        n_shared=n_shared[enough],
        without=np.empty(0),
        reason="" if enough.any() else f"no two raters judged {min_shared} items in common",
    )
    if facts.reason:
        return facts
    if group is not None:
        groups = np.asarray(group, dtype=np.int64)
        n_groups = int(groups.max()) + 1
        of_rows = groups[order][left[rows]]
        facts = replace(facts, without=_means_without(facts, of_rows, n_groups, pair, a, b, min_shared))
    return _pairwise(facts, shared_item, pair, a, b, n_items)


def _rows_of_pairs(item: Ints) -> tuple[Ints, Ints]:
    """Every two rows with the same item, which stand together."""
    left, step = [], 1
    while True:
        rows = np.flatnonzero(item[step:] == item[:-step])
        if not rows.size:
            break
        left.append(rows)
        step += 1
    steps = np.repeat(np.arange(1, step), [rows.size for rows in left])
    lefts = np.concatenate([*left, np.empty(0, dtype=np.int64)])
    return lefts, lefts + steps


def _means_without(
    facts: PairwiseKappa, group: Ints, n_groups: int, pair: Ints, a: Ints, b: Ints, min_shared: int
) -> Floats:
    """The mean of the pairs' kappas without each group."""
    k = int(max(a.max(), b.max())) + 1
    w = _agreement_weights(k, facts.weights)
    n_pairs = facts.n_shared.size
    place = group * n_pairs + pair
    agreed = np.bincount(place, w[a, b], minlength=n_groups * n_pairs).reshape(n_groups, n_pairs)
    n = np.bincount(place, minlength=n_groups * n_pairs).reshape(n_groups, n_pairs)
    whole_agreed = agreed.sum(axis=0)
    whole = [np.bincount(pair * k + code, minlength=n_pairs * k) for code in (a, b)]
    means = np.full(n_groups, np.nan)
    for number in range(n_groups):
        own = group == number
        row, column = (
            (total - np.bincount(pair[own] * k + code[own], minlength=n_pairs * k)).reshape(n_pairs, k)
            for total, code in zip(whole, (a, b), strict=True)
        )
        left = facts.n_shared - n[number]
        enough = left >= min_shared
        observed = (whole_agreed - agreed[number])[enough] / left[enough]
        expected = np.einsum("pc,pc->p", row[enough], column[enough] @ w) / left[enough] ** 2
        values = _beyond_chance(observed, expected)
        defined = np.isfinite(values)
        if defined.any():
            means[number] = values[defined].mean()
    return means


def _pairwise(facts: PairwiseKappa, item: Ints, pair: Ints, a: Ints, b: Ints, n_items: int) -> PairwiseKappa:
    """One entry per item and pair: the codes of the two ratings."""
    k = int(max(a.max(), b.max())) + 1
    w = _agreement_weights(k, facts.weights)
    n = facts.n_shared
    row, column = (
        np.bincount(pair * k + code, minlength=n.size * k).reshape(n.size, k) / n[:, None] for code in (a, b)
    )
    mean_row, mean_column = column @ w, row @ w  # (pairs, categories)
    observed = np.bincount(pair, w[a, b], minlength=n.size) / n
    expected = np.einsum("pc,pc->p", row, mean_row)
    values = _beyond_chance(observed, expected)
    defined = np.isfinite(values)
    n_defined = int(defined.sum())
    undefined = notes_of({"pairs of raters who used one category only": n.size - n_defined})
    facts = replace(facts, values=values, notes=facts.notes + undefined)
    if not n_defined:
        return replace(facts, reason=_ONE_CATEGORY)
    value = float(values[defined].mean())
    rows = defined[pair]
    pair, a, b = pair[rows], a[rows], b[rows]
    missing = 1 - values
    effect = w[a, b] - (mean_row[pair, a] + mean_column[pair, b]) * missing[pair]
    effect -= (values - expected * missing)[pair]
    effect /= ((1 - expected) * n * n_defined)[pair]
    by_item = np.bincount(item[rows], effect, minlength=n_items)
    se = _root(float(by_item @ by_item))
    low, high = _interval(value, se, facts.confidence)
    return replace(facts, value=value, se=se, low=low, high=high, reason="" if se > 0 else _NO_SPREAD)


def fleiss_kappa(
    counts: ArrayLike, *, confidence: float = 0.95, n_replicates: int = 0, rng: Rng | None = None
) -> KappaResult:
    """Agreement of many raters from an (items, categories) table: how many put the item there.

    Items may have different numbers of ratings: each item's agreement is over its own pairs of ratings,
    all items count the same, and categories' shares are of all ratings. Items with fewer than two are
    dropped.
    """
    resampling = Resampling.of(confidence, n_replicates, rng)
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"counts must be a table of (items, categories), not of shape {table.shape}")
    if not (np.isfinite(table).all() and (table >= 0).all() and (table == np.floor(table)).all()):
        raise ValueError("counts must be whole numbers of 0 or more")
    return _fleiss(table, None, resampling)


def fleiss_kappa_ratings(
    ratings: ArrayLike, *, confidence: float = 0.95, n_replicates: int = 0, rng: Rng | None = None
) -> KappaResult:
    """The same from an (items, raters) table of category numbers, nan where a rating is missing."""
    table = wide_table(ratings)
    item = np.repeat(np.arange(len(table)), table.shape[1])
    return fleiss_kappa_long(item, table.ravel(), confidence=confidence, n_replicates=n_replicates, rng=rng)


def fleiss_kappa_long(
    item: ArrayLike,
    value: ArrayLike,
    *,
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> KappaResult:
    """The same from one row per rating: integer item codes and category numbers (nan: missing)."""
    resampling = Resampling.of(confidence, n_replicates, rng)
    item_column, value_column = long_columns(item=item, value=value)
    items, n_items = dense_codes("item", item_column)
    values = value_column.astype(np.float64, copy=False)
    given = np.isfinite(values)
    if not given.all():
        items, values = items[given], values[given]
    rated = rated_items(items, values, n_items)
    labels, codes = distinct_values(rated.value) if rated.value.size else (np.empty(0), rated.item)
    _check_number(labels.size)
    cells = np.bincount(rated.item * labels.size + codes, minlength=rated.n_codes * labels.size)
    counts = cells.reshape(rated.n_codes, labels.size).astype(np.float64)
    return _fleiss(counts, rated.times, resampling)


def _check_number(n_categories: int) -> None:
    """Kappa works on tables of categories; measurements would fill the memory and mean nothing."""
    if n_categories > _MOST_CATEGORIES:
        raise ValueError(
            f"kappa is for at most {_MOST_CATEGORIES} categories, found {n_categories} different values; "
            "for measurements use the ICC or Krippendorff's alpha"
        )


def _given(labels: NDArray[np.generic]) -> NDArray[np.bool_]:
    if labels.dtype.kind in "OV":
        raise ValueError(f"labels must be numbers or strings, not {labels.dtype}")
    return np.isfinite(labels) if labels.dtype.kind == "f" else np.ones(labels.size, dtype=bool)


def _categories(
    first: NDArray[np.generic], second: NDArray[np.generic], categories: ArrayLike | None
) -> tuple[NDArray[np.generic], tuple[Ints, Ints]]:
    """The categories in order, and both raters' labels as places among them."""
    textual = {labels.dtype.kind in "US" for labels in (first, second)}
    if len(textual) > 1:
        raise ValueError(f"expected labels of one kind, found {first.dtype} and {second.dtype}")
    used, code = np.unique(np.concatenate([first, second]), return_inverse=True)
    order = used if categories is None else np.asarray(categories)
    if categories is not None:
        if order.ndim != 1 or np.unique(order).size != order.size:
            raise ValueError("categories must be a list of different labels")
        strange = used[~np.isin(used, order)]
        if strange.size:
            raise ValueError(f"labels that are not among the categories {order.tolist()}: {strange.tolist()}")
        place = np.argsort(order)
        code = place[np.searchsorted(order, used, sorter=place)][code]
    return order, (code[: first.size], code[first.size :])


def _unused_steps(labels: NDArray[np.generic]) -> tuple[str, ...]:
    """A warning where whole-numbered labels leave gaps that weights would not see."""
    if labels.size == 0 or labels.dtype.kind not in "iuf" or (labels != np.floor(labels)).any():
        return ()
    gaps = int(labels[-1] - labels[0]) + 1 - labels.size
    return (f"{gaps} unused categories between the used ones; pass categories to count them",) if gaps else ()


def _agreement_weights(k: int, weights: Weights) -> Floats:
    """1 on the diagonal, falling to 0 at the two ends of the scale."""
    if weights == "none" or k < 2:
        return np.eye(k)
    steps = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / (k - 1)
    return np.asarray(1 - (steps if weights == "linear" else steps**2))


def _cohen(facts: KappaResult, counts: Floats, resampling: Resampling) -> KappaResult:
    w = _agreement_weights(facts.n_categories, facts.weights)
    n = counts.sum()
    p = counts / n
    row, column = p.sum(axis=1), p.sum(axis=0)
    if np.count_nonzero(row + column) == 1:
        return replace(facts, observed=1.0, expected=1.0, reason=_ONE_CATEGORY)
    mean_row, mean_column = w @ column, row @ w  # w-bar of each row and of each column
    observed, expected = float((w * p).sum()), float(row @ mean_row)
    value = (observed - expected) / (1 - expected)
    means = mean_row[:, None] + mean_column
    variance = (p * np.square(w - means * (1 - value))).sum() - (value - expected * (1 - value)) ** 2
    variance0 = (np.outer(row, column) * np.square(w - means)).sum() - expected**2
    estimate = replace(
        facts,
        value=value,
        se=_root(variance) / (1 - expected) / math.sqrt(n),
        se0=_root(variance0) / (1 - expected) / math.sqrt(n),
        observed=observed,
        expected=expected,
    )
    samples = _cohen_replicates(counts, w, resampling) if resampling.n_replicates else None
    return _with_test_and_intervals(estimate, samples)


def _root(variance: float) -> float:
    """The square root of a difference that is zero where only rounding error is left."""
    return math.sqrt(variance) if variance > 1e-14 else 0.0


def _cohen_replicates(counts: Floats, w: Floats, resampling: Resampling) -> Floats:
    """Drawing items is drawing cells of the table: one multinomial over the cells in use."""
    n = int(counts.sum())
    i, j = np.nonzero(counts)
    share = counts[i, j] / n
    rows, row_starts = np.unique(i, return_index=True)  # nonzero() goes along the rows
    by_column = np.argsort(j, kind="stable")
    columns, column_starts = np.unique(j[by_column], return_index=True)
    w_used = w[np.ix_(rows, columns)]
    blocks = []
    step = max(1, _BLOCK // i.size)
    for start in range(0, resampling.n_replicates, step):
        size = min(step, resampling.n_replicates - start)
        drawn = resampling.rng.multinomial(n, share, size=size) / n
        row = np.add.reduceat(drawn, row_starts, axis=1)
        column = np.add.reduceat(drawn[:, by_column], column_starts, axis=1)
        expected = np.einsum("bj,bj->b", row @ w_used, column)
        blocks.append(_beyond_chance(drawn @ w[i, j], expected))
    return np.concatenate(blocks)


def _beyond_chance(observed: Floats, expected: Floats) -> Floats:
    chance = 1 - expected
    undefined: Floats = np.full(chance.shape, np.nan)
    return np.divide(observed - expected, chance, out=undefined, where=chance > _NO_CHANCE)


def _fleiss(table: Floats, times: Floats | None, resampling: Resampling) -> KappaResult:
    """Fleiss' kappa of (items, categories) counts; `times` says how many items have each row."""
    size = table.sum(axis=1)
    times = np.ones(size.size) if times is None else times
    several = size > 1
    dropped = int(times[~several].sum())
    table, size, times = table[several], size[several], times[several]
    n, n_ratings = int(times.sum()), float(times @ size)
    equal = bool(n and size.min() == size.max())
    notes = notes_of({"items with fewer than two ratings": dropped})
    if n == 1:
        notes += ("one item: no se and no interval",)
    if n and not equal:
        notes += ("items have unequal numbers of ratings: no se0 and no test",)
    facts = KappaResult(
        method="fleiss",
        confidence=resampling.confidence,
        n_items=n,
        n_categories=int((table.sum(axis=0) > 0).sum()),
        n_raters=int(size.max(initial=0)),
        dropped=dropped,
        notes=notes,
        reason="" if n else _NO_PAIR,
    )
    if facts.reason:
        return facts
    share = times @ table / n_ratings
    agreement = (np.square(table).sum(axis=1) - size) / (size * (size - 1))
    observed, expected = float(times @ agreement) / n, float(share @ share)
    if np.count_nonzero(share) == 1:
        return replace(facts, observed=1.0, expected=1.0, reason=_ONE_CATEGORY)
    value = (observed - expected) / (1 - expected)
    # what each item adds to kappa when its weight grows: through observed, and through the shares
    drift = 2 * (table @ share - size * expected) * n / n_ratings
    influence = (agreement - observed - (1 - value) * drift) / (1 - expected)
    samples = None
    if resampling.n_replicates:
        columns = np.column_stack([agreement, table])
        folded = times if (times > 1).any() else None
        sums = resample_sums(columns, resampling.n_replicates, resampling.rng, folded)
        shares = sums[:, 1:] / sums[:, 1:].sum(axis=1, keepdims=True)
        samples = _beyond_chance(sums[:, 0] / n, np.square(shares).sum(axis=1))
    variance = float(times @ influence**2) / (n - 1) if n > 1 else math.nan
    estimate = replace(
        facts,
        value=value,
        se=_root(variance) / math.sqrt(n) if n > 1 else math.nan,
        se0=_fleiss_se0(share, n, float(size[0])) if equal else math.nan,
        observed=observed,
        expected=expected,
    )
    return _with_test_and_intervals(estimate, samples)


def _fleiss_se0(share: Floats, n: int, m: float) -> float:
    """Fleiss, Nee & Landis (1979), for n items with m ratings each."""
    rest = 1 - share
    spread = float(share @ rest)
    squared = spread**2 - float((share * rest) @ (rest - share))
    return math.sqrt(2 * max(squared, 0.0) / (n * m * (m - 1))) / spread


def _with_test_and_intervals(estimate: KappaResult, samples: Floats | None) -> KappaResult:
    """The estimate with its test, its interval and, from bootstrap samples, their interval."""
    from scipy.special import ndtr

    z = estimate.value / estimate.se0 if estimate.se0 > 0 else math.nan
    notes = estimate.notes
    if estimate.se0 == 0:
        notes += ("the standard error under chance agreement is zero: no test",)
    low, high = _interval(estimate.value, estimate.se, estimate.confidence)
    return replace(
        estimate,
        z=z,
        p=2 * float(ndtr(-abs(z))),
        low=low,
        high=high,
        boot=None if samples is None else percentile_interval(samples, estimate.confidence),
        notes=notes,
        reason=_NO_SPREAD if estimate.se == 0 else "",
    )


def _interval(value: float, se: float, confidence: float) -> tuple[float, float]:
    """The interval of atanh(value), turned back; nan where there is no error to build it on."""
    from scipy.special import ndtri

    if not se > 0 or abs(value) >= 1:
        return math.nan, math.nan
    reach = float(ndtri(0.5 + confidence / 2)) * se / (1 - value**2)
    return math.tanh(math.atanh(value) - reach), math.tanh(math.atanh(value) + reach)
