"""Mean squares of (items, raters) ratings, one-way and two-way, and those of bootstrap samples of items.

One-way: sum of squares between items over n - 1, within items over N - n. Two-way without interaction,
on complete tables: between items, between raters, and the rest over (n - 1)(k - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from palaver.statistics._agreement import RatedItems, notes_of
from palaver.statistics.bootstrap import Floats, Resampling, resample_sums

_ROUNDING = (8 * float(np.finfo(np.float64).eps)) ** 2  # share of squared ratings that is rounding error
_CANCELLED = 1e-4  # a difference of sums of squares below this share is taken from residuals instead
_NO_VARIANCE = 1e-12  # share of a replicate's sum of squares below which a difference is rounding error


@dataclass(frozen=True, slots=True, kw_only=True)
class Centred:
    """Deviations from the mean in units of `scale`, and their sum of squares."""

    values: Floats
    squares: float
    rounding: float
    """A sum of squares as small as this is rounding error of the ratings themselves."""
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicates:
    """Mean squares of bootstrap samples, one number per replicate."""

    between: Floats
    noise: Floats
    raters: Floats
    k: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Anova:
    """Mean squares, or the `reason` why there are none."""

    n_items: int
    n_raters: int
    dropped: int
    notes: tuple[str, ...]
    reason: str = ""
    k: float = math.nan
    between: float = math.nan
    noise: float = math.nan
    """Within items (one-way) or the rest (two-way)."""
    raters: float = math.nan
    """Two-way only."""
    df1: int = 0
    df2: int = 0
    replicates: Replicates | None = None


def two_way(table: Floats, n_all: int, resampling: Resampling) -> Anova:
    """Analysis of a table without gaps: the complete items out of `n_all`."""
    n, k = table.shape
    facts = Anova(
        n_items=n,
        n_raters=k,
        dropped=n_all - n,
        notes=notes_of({"items not rated once by every rater": n_all - n}),
        reason=_why_no_two_way(n, k),
        k=float(k),
    )
    if facts.reason:
        return facts
    data = centre(table)
    centred, total, rounding = data.values, data.squares, data.rounding
    item = centred @ np.full(k, 1 / k)
    rater = np.full(n, 1 / n) @ centred
    mean = item.mean()
    between = k * float(np.square(item - mean).sum())
    raters = n * float(np.square(rater - mean).sum())
    within = total - k * float(item @ item)
    if within < _CANCELLED * total:
        within = float(np.square(centred - item[:, None]).sum())
    error = within - raters
    if error < _CANCELLED * within:
        error = float(np.square(centred - item[:, None] - (rater - mean)).sum())
    df2 = (n - 1) * (k - 1)
    return replace(
        facts,
        between=_above(rounding, between) / (n - 1),
        raters=_above(rounding, raters) / (k - 1),
        noise=_above(rounding, error) / df2,
        df1=n - 1,
        df2=df2,
        replicates=_two_way_replicates(centred, item, resampling) if resampling.n_replicates else None,
    )


def one_way_of(two: Anova) -> Anova:
    """The one-way analysis of a complete table from its two-way one; they share bootstrap samples."""
    n, k = two.n_items, two.n_raters
    facts = replace(two, reason=_why_no_one_way(n, n * (k - 1)))
    if facts.reason:
        return facts
    df2 = n * (k - 1)

    def pooled(raters: Floats | float, rest: Floats | float) -> Floats | float:
        return (raters * (k - 1) + rest * two.df2) / df2

    replicates = two.replicates
    if replicates is not None:
        replicates = replace(replicates, noise=np.asarray(pooled(replicates.raters, replicates.noise)))
    return replace(facts, noise=float(pooled(two.raters, two.noise)), df2=df2, replicates=replicates)


def one_way(items: RatedItems, n_missing: int, resampling: Resampling) -> Anova:
    """Analysis of ratings grouped by item; codes that have none are left out."""
    counts = np.bincount(items.item, minlength=items.n_codes)
    rated = counts > 0
    n_all, n = items.n_items, items.count(rated)
    n_ratings = int(items.total(counts))
    facts = Anova(
        n_items=n,
        n_raters=int(counts.max(initial=0)),
        dropped=n_missing,
        notes=notes_of(
            {
                "ratings missing": n_missing,
                "items without a rating": n_all - n,
                "items with a single rating (used between items, not within)": items.count(counts == 1),
            }
        ),
        reason=_why_no_one_way(n, n_ratings - n),
    )
    if facts.reason:
        return facts
    items = items.only(rated)
    size = counts[rated].astype(np.float64)
    data = centre(items.value, items.weights)
    sums = np.bincount(items.item, data.values).astype(np.float64, copy=False)
    grand_mean = items.total(sums) / n_ratings
    deviations = np.square(data.values - (sums / size)[items.item])
    within = np.bincount(items.item, deviations).astype(np.float64, copy=False)
    replicates = None
    if resampling.n_replicates:
        table = np.column_stack([size, size**2, sums, sums**2 / size, within])
        replicates = _one_way_replicates(items, table, resampling)
    between = items.total(size * np.square(sums / size - grand_mean))
    return replace(
        facts,
        k=float((n_ratings - items.total(size**2) / n_ratings) / (n - 1)),
        between=_above(data.rounding, between) / (n - 1),
        noise=_above(data.rounding, items.total(within)) / (n_ratings - n),
        df1=n - 1,
        df2=n_ratings - n,
        replicates=replicates,
    )


def _why_no_one_way(n_items: int, df_within: int) -> str:
    if n_items < 2:
        return "fewer than two items with ratings"
    return "" if df_within > 0 else "no item has two ratings"


def _why_no_two_way(n: int, k: int) -> str:
    if k < 2:
        return "fewer than two raters"
    return "" if n > 1 else "fewer than two items were rated by every rater"


def centre(values: Floats, weights: Floats | None = None) -> Centred:
    """Values minus their mean, because a large common offset eats the digits of a sum of squares.

    `weights` says how often each value counts. Values whose squares would leave the range of a double are
    divided by the largest: no statistic of agreement depends on the scale.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        centred = _centre(values, weights, 1.0)
        if not 1e-200 < centred.squares < 1e200:
            centred = _centre(values, weights, float(np.abs(values).max()) or 1.0)
    return centred


def _centre(values: Floats, weights: Floats | None, scale: float) -> Centred:
    scaled = values if scale == 1.0 else values / scale
    n = values.size if weights is None else float(weights.sum())
    mean = float(np.average(scaled, weights=weights))
    deviations = scaled - mean
    squares = float(np.vdot(deviations if weights is None else deviations * weights, deviations))
    rounding = _ROUNDING * (squares + n * mean * mean)
    return Centred(values=deviations, squares=squares, rounding=rounding, scale=scale)


def _above(rounding: float, squares: float) -> float:
    return squares if squares > rounding else 0.0


def _two_way_replicates(centred: Floats, item: Floats, resampling: Resampling) -> Replicates:
    n, k = centred.shape
    within_item = np.square(centred - item[:, None]).sum(axis=1)
    table = np.column_stack([item**2, within_item, centred])
    sums = resample_sums(table, resampling.n_replicates, resampling.rng)
    squares, within, rater = sums[:, 0], sums[:, 1], sums[:, 2:] / n
    mean = rater.mean(axis=1)
    raters = difference(n * np.square(rater).sum(axis=1), n * k * mean**2)
    return Replicates(
        between=difference(k * squares, k * n * mean**2) / (n - 1),
        raters=raters / (k - 1),
        noise=difference(within, raters) / ((n - 1) * (k - 1)),
        k=np.full(resampling.n_replicates, float(k)),
    )


def _one_way_replicates(items: RatedItems, table: Floats, resampling: Resampling) -> Replicates:
    """The table holds each item's number of ratings, its square, sum, squared sum / number, deviations."""
    n = items.n_items
    sums = resample_sums(table, resampling.n_replicates, resampling.rng, items.times)
    total_size, size2, total, squares, noise = sums.T
    df2 = np.where(total_size > n, total_size - n, np.nan)  # all drawn items have one rating: undefined
    return Replicates(
        between=difference(squares, total**2 / total_size) / (n - 1),
        noise=noise / df2,
        raters=np.full(resampling.n_replicates, np.nan),
        k=(total_size - size2 / total_size) / (n - 1),
    )


def difference(whole: Floats, part: Floats) -> Floats:
    """whole - part of sums of squares, zero where only rounding error is left."""
    rest = whole - part
    return np.where(rest > _NO_VARIANCE * whole, rest, 0.0)
