"""How much agreement hangs on one rater or one item: its value when each of them is left out.

Every measure here is a function of sums over what was judged. Leaving out a rater changes only what that
rater judged, so the sums of all raters come from one pass over the ratings, and the values are exactly
those of a file without the rater's rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics._agreement import long_columns
from palaver.statistics._anova import centre, two_way
from palaver.statistics.bootstrap import Floats, Ints, Resampling
from palaver.statistics.codes import dense_codes, distinct_values
from palaver.statistics.icc import absolute_agreement

Measure = Literal["ICC(1,k)", "ICC(2,k)", "alpha"]
"""Intraclass correlation with other or the same raters from item to item; Krippendorff's nominal alpha."""

_ROUNDING = 1e-12  # share of a sum of squares below which a difference is rounding error


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """The measure of all ratings, and without each rater and each item (in the order of their codes)."""

    measure: Measure
    value: float
    without_rater: Floats
    """nan where nothing can be measured without the rater."""
    without_item: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Ratings:
    """One row per rater and output, however often the rater judged it."""

    output: Ints
    rater: Ints
    item: Ints
    """The item of each output."""
    value: Floats
    n_outputs: int
    n_raters: int
    n_items: int


def leave_one_out(
    measure: Measure, output: ArrayLike, rater: ArrayLike, item: ArrayLike, value: ArrayLike
) -> Influence:
    """One row per rating: integer codes of the output, the rater and the output's item; the value or nan.

    Agreement is about outputs; an item may have several (one of each system), which are left out together.

    >>> result = leave_one_out("ICC(1,k)", [0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0] * 3 + [1] * 3,
    ...                        [1, 1, 5, 5, 5, 1])
    >>> result.without_rater.round(2).tolist()
    [-3.0, -3.0, 1.0]
    """
    columns = long_columns(output=output, rater=rater, item=item, value=value)
    values = columns[3].astype(np.float64, copy=False)
    given = np.isfinite(values)
    outputs, n_outputs = dense_codes("output", columns[0])
    raters, n_raters = dense_codes("rater", columns[1])
    items, n_items = dense_codes("item", columns[2])
    item_of_output = np.zeros(n_outputs, dtype=np.int64)
    item_of_output[outputs] = items
    ratings = _Ratings(
        output=outputs[given],
        rater=raters[given],
        item=item_of_output,
        value=values[given],
        n_outputs=n_outputs,
        n_raters=n_raters,
        n_items=n_items,
    )
    return _MEASURES[measure](ratings)


def _icc_one_way(ratings: _Ratings) -> Influence:
    """ICC(1,k) = 1 - within / between, from sums over outputs."""
    value = centre(ratings.value).values if ratings.value.size else ratings.value
    key, pair = np.unique(ratings.rater * ratings.n_outputs + ratings.output, return_inverse=True)
    rater, output = key // ratings.n_outputs, key % ratings.n_outputs

    def moments(code: Ints, n: int) -> Floats:  # number, sum and sum of squares of the ratings
        columns = (None, value, value**2)
        return np.column_stack([np.bincount(code, c, minlength=n).astype(float) for c in columns])

    def sums(moments: Floats) -> Floats:
        n, total, squares = moments.T
        between = np.divide(total**2, n, out=np.zeros_like(n), where=n > 0)
        return np.column_stack([n > 0, n, total, between, squares])

    def icc(sums: Floats) -> Floats:
        n_rated, n, total, between, squares = sums.T
        with np.errstate(invalid="ignore", divide="ignore"):
            within = _difference(squares, between) / (n - n_rated)
            among = _difference(between, total**2 / n) / (n_rated - 1)
            enough = (n_rated > 1) & (n > n_rated) & (among > 0)
            return np.where(enough, 1 - within / among, np.nan)

    whole = moments(ratings.output, ratings.n_outputs)
    rest = whole[output] - moments(pair, key.size)
    return _influence("ICC(1,k)", ratings, icc, sums(whole), (rater, output), sums(rest))


def _alpha_nominal(ratings: _Ratings) -> Influence:
    """Krippendorff's nominal alpha, from each output's disagreement and counts of its categories."""
    if not ratings.value.size:
        empty = np.full(ratings.n_raters, np.nan)
        return Influence("alpha", np.nan, empty, np.full(ratings.n_items, np.nan))
    labels, code = distinct_values(ratings.value)
    key, pair = np.unique(ratings.rater * ratings.n_outputs + ratings.output, return_inverse=True)
    rater, output = key // ratings.n_outputs, key % ratings.n_outputs

    def counts(place: Ints, n: int) -> Floats:
        cells = np.bincount(place * labels.size + code, minlength=n * labels.size)
        return cells.reshape(n, labels.size).astype(float)

    def sums(counts: Floats) -> Floats:
        n = counts.sum(axis=1)
        counts = np.where((n > 1)[:, None], counts, 0.0)  # a single rating agrees with nothing
        disagreement = (n**2 - np.square(counts).sum(axis=1)) / np.maximum(n - 1, 1)
        return np.column_stack([np.where(n > 1, disagreement, 0.0), counts])

    def alpha(sums: Floats) -> Floats:
        n = sums[:, 1:].sum(axis=1)
        expected = n**2 - np.square(sums[:, 1:]).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > 0.5, 1 - (n - 1) * sums[:, 0] / expected, np.nan)

    whole = counts(ratings.output, ratings.n_outputs)
    rest = whole[output] - counts(pair, key.size)
    return _influence("alpha", ratings, alpha, sums(whole), (rater, output), sums(rest))


def _influence(
    measure: Measure,
    ratings: _Ratings,
    value: Callable[[Floats], Floats],
    by_output: Floats,
    pair: tuple[Ints, Ints],
    rest: Floats,
) -> Influence:
    """`value` of sums over outputs; `rest` is what is left of an output when the rater of a `pair` goes."""
    rater, output = pair
    total = by_output.sum(axis=0)
    change = rest - by_output[output]
    return Influence(
        measure,
        float(value(total[None])[0]),
        value(total + _grouped(change, rater, ratings.n_raters)),
        value(total - _grouped(by_output, ratings.item, ratings.n_items)),
    )


def _grouped(rows: Floats, group: Ints, n_groups: int) -> Floats:
    """Sums of the rows of each group, as (groups, columns)."""
    return np.column_stack([np.bincount(group, column, minlength=n_groups) for column in rows.T])


def _difference(whole: Floats, part: Floats) -> Floats:
    rest = whole - part
    return np.where(rest > _ROUNDING * whole, rest, 0.0)


def _icc_two_way(ratings: _Ratings) -> Influence:
    """ICC(2,k) of the outputs that every rater judged once; without a rater those of all the others."""
    table = np.full((ratings.n_outputs, ratings.n_raters), np.nan)
    table[ratings.output, ratings.rater] = ratings.value
    times = np.bincount(ratings.output * ratings.n_raters + ratings.rater, minlength=table.size)
    table[times.reshape(table.shape) > 1] = np.nan  # twice is not once
    n_missing = np.isnan(table).sum(axis=1)

    def icc(columns: Ints, rows: Ints) -> float:
        anova = two_way(
            table[np.ix_(rows, columns)], rows.size, Resampling(0.95, 0, np.random.default_rng(0))
        )
        return np.nan if anova.reason else float(absolute_agreement(anova)[1])

    everybody = np.arange(ratings.n_raters)
    complete = np.flatnonzero(n_missing == 0)
    without_rater = _icc_two_way_without_raters(table[complete])
    _, absent = np.nonzero(np.isnan(table[n_missing == 1]))
    for r in np.unique(absent):  # outputs that only this rater did not judge count when the rater is gone
        rows = np.flatnonzero(n_missing - np.isnan(table[:, r]) == 0)
        without_rater[r] = icc(np.delete(everybody, r), rows)
    without_item = _icc_two_way_without_items(table[complete], ratings.item[complete], ratings.n_items)
    return Influence("ICC(2,k)", icc(everybody, complete), without_rater, without_item)


def _icc_two_way_without_raters(table: Floats) -> Floats:
    """ICC(2,k) of a table without gaps and without one of its columns, for each column."""
    n, k = len(table), table.shape[1] - 1
    if k < 2 or n < 2:
        return np.full(k + 1, np.nan)
    x = centre(table).values
    means = (x.sum(axis=1, keepdims=True) - x) / k  # each output's without each rater
    by_rater = x.mean(axis=0)
    grand = (by_rater.sum() - by_rater) / k
    between = k * np.square(means - grand).sum(axis=0)
    raters = n * (np.square(by_rater).sum() - np.square(by_rater) - k * grand**2)
    squares = np.square(x).sum() - np.square(x).sum(axis=0)
    noise = _difference(squares - n * k * grand**2, between + raters)
    return _absolute(between / (n - 1), raters / (k - 1), noise / ((n - 1) * (k - 1)), np.full(k + 1, n))


def _icc_two_way_without_items(table: Floats, item: Ints, n_items: int) -> Floats:
    """The same without each item, from sums over the complete outputs."""
    k = table.shape[1]
    if k < 2 or len(table) < 2:
        return np.full(n_items, np.nan)
    centred = centre(table).values
    mean = centred.mean(axis=1)
    within = np.square(centred - mean[:, None]).sum(axis=1)
    rows = np.column_stack([np.ones(len(table)), mean**2, within, centred])
    sums = rows.sum(axis=0) - _grouped(rows, item, n_items)
    n, squares, within = sums[:, 0], sums[:, 1], sums[:, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_rater = sums[:, 3:] / n[:, None]
        grand = by_rater.mean(axis=1)
        raters = _difference(n * np.square(by_rater).sum(axis=1), n * k * grand**2)
        between = _difference(k * squares, k * n * grand**2) / (n - 1)
        noise = _difference(within, raters) / ((n - 1) * (k - 1))
        return _absolute(between, raters / (k - 1), noise, n)


def _absolute(between: Floats, raters: Floats, noise: Floats, n: Floats | Ints) -> Floats:
    """ICC(2,k) from mean squares; undefined where the estimated total variance is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = between + (raters - noise) / n
        return np.where((n > 1) & (whole > 0), (between - noise) / whole, np.nan)


_MEASURES: dict[str, Callable[[_Ratings], Influence]] = {
    "ICC(1,k)": _icc_one_way,
    "ICC(2,k)": _icc_two_way,
    "alpha": _alpha_nominal,
}
