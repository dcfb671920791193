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

from palaver.statistics._agreement import (
    Agreement,
    RatedItems,
    long_columns,
    notes_of,
    rated_items,
    wide_table,
)
from palaver.statistics._anova import centre
from palaver.statistics._value_counts import ValueCounts, alpha_of, count_values, resample_alpha
from palaver.statistics.bootstrap import (
    Floats,
    Ints,
    Resampling,
    Rng,
    percentile_interval,
    resample_sums,
)
from palaver.statistics.codes import dense_codes, distinct_values

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = get_args(Level)
_NO_DISAGREEMENT = "no interval: raters never differ on an item, which does not show how sure this is"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AlphaResult(Agreement):
    """Krippendorff's alpha; `low` and `high` are those of `boot`, and `dropped` items had no two ratings."""

    observed: float = math.nan
    expected: float = math.nan
    level: Level
    n_ratings: int
    """Ratings of the items that count."""

    @property
    def measure(self) -> str:
        return f"Krippendorff's alpha, {self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratings:
    """The ratings that count, and the number of ratings of each item."""

    items: RatedItems
    size: Floats
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Disagreement:
    """Sums over ordered pairs of ratings: within items, each over m_u - 1, and over all ratings."""

    observed: float
    expected: float
    resample: Callable[[Resampling], Floats]
    unit: float = 1.0
    """Squared unit of the sums."""


def krippendorff_alpha(
    ratings: ArrayLike,
    *,
    level: Level = "nominal",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> AlphaResult:
    """Alpha of an (items, raters) table, nan where a rating is missing.

    >>> round(krippendorff_alpha([[1, 1], [1, 2], [3, 3], [4, 4]], level="interval").value, 3)
    0.926
    """
    resampling = Resampling.of(confidence, n_replicates, rng)
    table = wide_table(ratings)
    given = np.isfinite(table)
    item, _ = np.nonzero(given)
    result = _alpha(item, table[given], len(table), given.size - item.size, level, resampling)
    return replace(result, n_raters=int(given.any(axis=0).sum()))


def alpha_long(
    item: ArrayLike,
    value: ArrayLike,
    *,
    level: Level = "nominal",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> AlphaResult:
    """The same from one row per rating: integer item codes and values (nan: missing).

    Who gave a rating does not matter to alpha.
    """
    resampling = Resampling.of(confidence, n_replicates, rng)
    item_column, value_column = long_columns(item=item, value=value)
    items, n_items = dense_codes("item", item_column)
    values = value_column.astype(np.float64, copy=False)
    given = np.isfinite(values)
    missing = int(given.size - given.sum())
    if missing:
        items, values = items[given], values[given]
    return _alpha(items, values, n_items, missing, level, resampling)


def _alpha(
    item: Ints, value: Floats, n_items: int, missing: int, level: Level, resampling: Resampling
) -> AlphaResult:
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    items = rated_items(item, value, n_items)
    size = np.bincount(items.item, minlength=items.n_codes)
    several = size > 1
    dropped = items.count(~several)
    items = items.only(several)
    ratings_of_item = size[several].astype(np.float64)
    n = int(items.total(ratings_of_item))
    facts = AlphaResult(
        confidence=resampling.confidence,
        level=level,
        n_items=items.n_items,
        n_ratings=n,
        n_raters=int(size.max(initial=0)),
        dropped=dropped,
        notes=notes_of({"items with fewer than two ratings": dropped, "ratings missing": missing}),
        reason=_why_undefined(items.value, level),
    )
    if facts.reason:
        return facts
    parts = _DISAGREEMENT[level](_Ratings(items=items, size=ratings_of_item, n=n))
    result = replace(
        facts,
        value=1 - (n - 1) * parts.observed / parts.expected,
        observed=parts.observed / n * parts.unit,
        expected=parts.expected / (n * (n - 1)) * parts.unit,
    )
    if not resampling.n_replicates:
        return result
    boot = percentile_interval(parts.resample(resampling), resampling.confidence)
    undefined = notes_of({"replicates in which all ratings are equal, left out": boot.n_undefined})
    result = replace(result, notes=result.notes + undefined)
    if parts.observed == 0:
        return replace(result, boot=boot, reason=_NO_DISAGREEMENT)
    return replace(result, boot=boot, low=boot.low, high=boot.high)


def _why_undefined(value: Floats, level: Level) -> str:
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

    def resample(resampling: Resampling) -> Floats:
        table = np.column_stack([observed, size, sums, squares + sums**2 / size])
        do, n, total, square = resample_sums(table, resampling.n_replicates, resampling.rng, items.times).T
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
    from palaver.statistics._kernels import ratio_pair_sums

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

    def resample(resampling: Resampling) -> Floats:
        table = counts or count_values(ratings.items, ratings.size)
        return resample_alpha(level, table, observed, resampling)

    return _Disagreement(observed=ratings.items.total(observed), expected=expected, resample=resample)


_DISAGREEMENT: dict[Level, Callable[[_Ratings], _Disagreement]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "interval": _interval,
    "ratio": _ratio,
}
