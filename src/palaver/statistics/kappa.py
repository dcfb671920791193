"""Cohen's kappa of two raters, plain or weighted, and Fleiss' kappa of many, with standard errors.

Cohen (1960), Educational and Psychological Measurement 20:37-46; weights: Cohen (1968), Psychological
Bulletin 70:213-220. Standard errors, in general (`se`, for the interval) and where raters are independent
(`se0`, for the test): Fleiss, Cohen & Everitt (1969), Psychological Bulletin 72:323-327; plain kappa is
weighted kappa with identity weights.

Fleiss (1971), Psychological Bulletin 76:378-382. `se0`: Fleiss, Nee & Landis (1979), Psychological
Bulletin 86:974-977, for equal numbers of ratings only. That error holds where there is no agreement and
is no base for an interval; `se` is the linearised one over items (Gwet 2008, British Journal of
Mathematical and Statistical Psychology 61:29-48), which needs neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics._agreement import Agreement, long_columns, notes_of, wide_table
from palaver.statistics.bootstrap import (
    Floats,
    Ints,
    Resampling,
    Rng,
    percentile_interval,
    resample_sums,
)

Weights = Literal["none", "linear", "quadratic"]
WEIGHTS: tuple[Weights, ...] = get_args(Weights)

_NO_PAIR = "no item has two ratings"
_ONE_CATEGORY = "all ratings fall into one category"
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
    size = table.sum(axis=1)
    keep = size > 1
    dropped = int(keep.size - keep.sum())
    notes = notes_of({"items with fewer than two ratings": dropped})
    table, size = table[keep], size[keep]
    equal = bool(size.size and size.min() == size.max())
    if size.size == 1:
        notes += ("one item: no se and no interval",)
    if size.size and not equal:
        notes += ("items have unequal numbers of ratings: no se0 and no test",)
    facts = KappaResult(
        method="fleiss",
        confidence=confidence,
        n_items=size.size,
        n_categories=int((table.sum(axis=0) > 0).sum()),
        n_raters=int(size.max(initial=0)),
        dropped=dropped,
        notes=notes,
        reason="" if size.size else _NO_PAIR,
    )
    return facts if facts.reason else _fleiss(facts, table, size, equal, resampling)


def fleiss_kappa_ratings(
    ratings: ArrayLike, *, confidence: float = 0.95, n_replicates: int = 0, rng: Rng | None = None
) -> KappaResult:
    """The same from an (items, raters) table of category numbers, nan where a rating is missing."""
    table = wide_table(ratings)
    given = np.isfinite(table)
    items, _ = np.nonzero(given)
    labels, codes = np.unique(table[given], return_inverse=True)
    _check_number(labels.size)
    cells = np.bincount(items * labels.size + codes, minlength=len(table) * labels.size)
    counts = cells.reshape(len(table), labels.size)
    return fleiss_kappa(counts, confidence=confidence, n_replicates=n_replicates, rng=rng)


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


def _fleiss(
    facts: KappaResult, table: Floats, size: Floats, equal: bool, resampling: Resampling
) -> KappaResult:
    n, n_ratings = size.size, size.sum()
    share = table.sum(axis=0) / n_ratings
    agreement = (np.square(table).sum(axis=1) - size) / (size * (size - 1))
    observed, expected = float(agreement.mean()), float(share @ share)
    if np.count_nonzero(share) == 1:
        return replace(facts, observed=1.0, expected=1.0, reason=_ONE_CATEGORY)
    value = (observed - expected) / (1 - expected)
    # what each item adds to kappa when its weight grows: through observed, and through the shares
    drift = 2 * (table @ share - size * expected) / size.mean()
    influence = (agreement - observed - (1 - value) * drift) / (1 - expected)
    samples = None
    if resampling.n_replicates:
        columns = np.column_stack([agreement, table])
        sums = resample_sums(columns, resampling.n_replicates, resampling.rng)
        shares = sums[:, 1:] / sums[:, 1:].sum(axis=1, keepdims=True)
        samples = _beyond_chance(sums[:, 0] / n, np.square(shares).sum(axis=1))
    estimate = replace(
        facts,
        value=value,
        se=_root(float(influence @ influence) / (n - 1)) / math.sqrt(n) if n > 1 else math.nan,
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
    from scipy.special import ndtr, ndtri

    z = estimate.value / estimate.se0 if estimate.se0 > 0 else math.nan
    notes = estimate.notes
    if estimate.se0 == 0:
        notes += ("the standard error under chance agreement is zero: no test",)
    reach = float(ndtri(0.5 + estimate.confidence / 2)) * estimate.se
    return replace(
        estimate,
        z=z,
        p=2 * float(ndtr(-abs(z))),
        low=estimate.value - reach,
        high=estimate.value + reach,
        boot=None if samples is None else percentile_interval(samples, estimate.confidence),
        notes=notes,
    )
