"""Krippendorff's alpha for nominal, ordinal, interval and ratio values, with missing ratings.

Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", sections C and D: alpha = 1 - Do / De,
where Do is the mean difference of two ratings of one item (each item's pairs weighted by 1 / (m_u - 1))
and De that of any two ratings in the data. Only items with two or more ratings count.

No table of items x values is needed:
* interval: the pairs' squared differences of m ratings add up to 2 m times their squared deviations;
* ordinal: Krippendorff's rank difference of two values is the difference of their mid-ranks, so alpha is
  that of the interval level on mid-ranks;
* nominal, ratio: sums over the (item, value) pairs that occur.

The interval is a bootstrap over items: every replicate is weighed, ranked and compared afresh, unlike
Krippendorff's own (2006) scheme, which redraws single differences and keeps De as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics._agreement_inputs import (
    RatedItems,
    Rng,
    check_options,
    long_columns,
    notes_of,
    rated_items,
    wide_table,
)
from palaver.statistics._anova import centre
from palaver.statistics._value_counts import ValueCounts, alpha_of, count_values, resample_alpha
from palaver.statistics.bootstrap import Floats, Interval, Ints, percentile_interval, resample_sums
from palaver.statistics.codes import dense_codes, distinct_values

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaResult:
    """Krippendorff's alpha; `reason` says why `value` is nan where it is."""

    value: float
    low: float
    high: float
    boot: Interval | None
    """Percentile interval over resampled items; `low` and `high` are nan without replicates."""
    confidence: float
    observed: float
    expected: float
    level: Level
    n_items: int
    n_ratings: int
    """Ratings of the items that count."""
    n_raters: int
    """Columns with a rating; from codes, the largest number of ratings of an item."""
    dropped: int
    """Items with fewer than two ratings."""
    notes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratings:
    """The ratings that count, and the number of ratings of each item."""

    items: RatedItems
    size: Floats
    n: int
    n_raters: int
    dropped: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Disagreement:
    """Sums over ordered pairs of ratings: within items, each over m_u - 1, and over all ratings."""

    observed: float
    expected: float
    resample: Callable[[int, np.random.Generator], Floats]
    unit: float = 1.0
    """Squared unit of the sums."""


def krippendorff_alpha(
    ratings: ArrayLike,
    *,
    level: Level = "nominal",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng = None,
) -> AlphaResult:
    """Alpha of an (items, raters) table, nan where a rating is missing.

    >>> round(krippendorff_alpha([[1, 1], [1, 2], [3, 3], [4, 4]], level="interval").value, 3)
    0.926
    """
    _check_level(level)
    check_options(confidence, n_replicates, rng)
    table = wide_table(ratings)
    given = np.isfinite(table)
    items, _ = np.nonzero(given)
    n_raters = int(given.any(axis=0).sum())
    missing = given.size - items.size
    return _alpha(
        _pairable(items, table[given], len(table), missing, n_raters), level, confidence, n_replicates, rng
    )


def alpha_long(
    item: ArrayLike,
    value: ArrayLike,
    *,
    level: Level = "nominal",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng = None,
) -> AlphaResult:
    """The same from one row per rating: integer item codes and values (nan: missing).

    Who gave a rating does not matter to alpha.
    """
    _check_level(level)
    check_options(confidence, n_replicates, rng)
    item_column, value_column = long_columns(item=item, value=value)
    items, n_items = dense_codes("item", item_column)
    values = value_column.astype(np.float64, copy=False)
    given = np.isfinite(values)
    missing = int(given.size - given.sum())
    if missing:
        items, values = items[given], values[given]
    ratings = _pairable(items, values, n_items, missing, 0)
    return _alpha(ratings, level, confidence, n_replicates, rng)


def _check_level(level: str) -> None:
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")


def _pairable(item: Ints, value: Floats, n_items: int, missing: int, n_raters: int) -> _Ratings:
    """Leave out the items with fewer than two ratings."""
    items = rated_items(item, value, n_items)
    size = np.bincount(items.item, minlength=items.n_codes)
    keep = size > 1
    dropped = items.count(~keep)
    items = items.only(keep)
    kept_size = size[keep].astype(np.float64)
    return _Ratings(
        items=items,
        size=kept_size,
        n=int(items.total(kept_size)),
        n_raters=n_raters or int(size.max(initial=0)),
        dropped=dropped,
        notes=notes_of({"items with fewer than two ratings": dropped, "ratings missing": missing}),
    )


def _alpha(ratings: _Ratings, level: Level, confidence: float, n_replicates: int, rng: Rng) -> AlphaResult:
    value = observed = expected = low = high = math.nan
    boot = None
    n = ratings.n
    reason = _why_undefined(ratings, level)
    if not reason:
        parts = _DISAGREEMENT[level](ratings)
        value = 1 - (n - 1) * parts.observed / parts.expected
        observed = parts.observed / n * parts.unit
        expected = parts.expected / (n * (n - 1)) * parts.unit
        if n_replicates:
            samples = parts.resample(n_replicates, np.random.default_rng(rng))
            boot = percentile_interval(samples, confidence)
            low, high = boot.low, boot.high
    return AlphaResult(
        value=value,
        low=low,
        high=high,
        boot=boot,
        confidence=confidence,
        observed=observed,
        expected=expected,
        level=level,
        n_items=ratings.items.n_items,
        n_ratings=n,
        n_raters=ratings.n_raters,
        dropped=ratings.dropped,
        notes=ratings.notes,
        reason=reason,
    )


def _why_undefined(ratings: _Ratings, level: Level) -> str:
    value = ratings.items.value
    if value.size == 0:
        return "no item has two ratings"
    lowest = value.min()
    if level == "ratio" and lowest < 0:
        return f"the ratio level needs values of 0 or more, found {lowest:g}"
    return "all ratings are equal" if lowest == value.max() else ""


def _interval(ratings: _Ratings) -> _Disagreement:
    items, size = ratings.items, ratings.size
    data = centre(items.value, items.weights)
    sums, squares = _item_squares(items.item, data.values, size)
    observed = 2 * size * squares / (size - 1)

    def resample(n_replicates: int, rng: np.random.Generator) -> Floats:
        table = np.column_stack([observed, size, sums, squares + sums**2 / size])
        do, n, total, square = resample_sums(table, n_replicates, rng, items.times).T
        return alpha_of(do, 2 * (n * square - total**2), n, n * square)

    return _Disagreement(
        observed=items.total(observed),
        expected=2 * ratings.n * data.squares,
        resample=resample,
        unit=data.scale * data.scale,
    )


def _item_squares(item: Ints, x: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Each item's sum, and its sum of squared deviations from its own mean."""
    sums = np.bincount(item, x).astype(np.float64, copy=False)
    squares = np.bincount(item, np.square(x - (sums / size)[item])).astype(np.float64, copy=False)
    return sums, squares


def _ordinal(ratings: _Ratings) -> _Disagreement:
    items = ratings.items
    values, code = distinct_values(items.value)
    totals = np.bincount(code, items.weights, minlength=values.size)
    rank = np.cumsum(totals) - totals / 2 - ratings.n / 2
    _, squares = _item_squares(items.item, rank[code], ratings.size)
    observed = 2 * ratings.size * squares / (ratings.size - 1)
    expected = 2 * ratings.n * float(totals @ rank**2)  # mid-ranks have the mean n / 2
    return _counted("ordinal", ratings, None, observed, expected)


def _nominal(ratings: _Ratings) -> _Disagreement:
    counts = count_values(ratings.items, ratings.size)
    alike = np.bincount(counts.item, np.square(counts.count))
    observed = (np.square(ratings.size) - alike) / (ratings.size - 1)
    expected = float(ratings.n) ** 2 - float(counts.totals @ counts.totals)
    return _counted("nominal", ratings, counts, observed, expected)


def _ratio(ratings: _Ratings) -> _Disagreement:
    from palaver.statistics._agreement_kernels import ratio_pair_sums

    counts = count_values(ratings.items, ratings.size)
    counts = replace(counts, values=counts.values / counts.values[-1])  # so that no sum can overflow
    pairs = ratio_pair_sums(counts.starts(), counts.values[counts.code], counts.count)
    everything = np.array([0, counts.values.size])
    expected = float(ratio_pair_sums(everything, counts.values, counts.totals)[0])
    return _counted("ratio", ratings, counts, pairs / (ratings.size - 1), expected)


def _counted(
    level: Level, ratings: _Ratings, counts: ValueCounts | None, observed: Floats, expected: float
) -> _Disagreement:
    """A disagreement whose bootstrap needs the counts of values; they are made where they are not yet."""

    def resample(n_replicates: int, rng: np.random.Generator) -> Floats:
        table = counts or count_values(ratings.items, ratings.size)
        return resample_alpha(level, table, observed, n_replicates, rng)

    return _Disagreement(observed=ratings.items.total(observed), expected=expected, resample=resample)


_DISAGREEMENT: dict[Level, Callable[[_Ratings], _Disagreement]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "interval": _interval,
    "ratio": _ratio,
}
