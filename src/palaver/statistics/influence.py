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
from palaver.statistics._anova import centre
from palaver.statistics._icc_sums import (
    absolute_agreement,
    one_way_icc,
    one_way_rows,
    rating_moments,
    sums_of_groups,
    two_way_icc,
    two_way_rows,
)
from palaver.statistics.bootstrap import Floats, Ints
from palaver.statistics.codes import dense_codes, distinct_values

Measure = Literal["ICC(1,k)", "ICC(2,k)", "alpha"]
"""Intraclass correlation with other or the same raters from item to item; Krippendorff's nominal alpha."""


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
    output_column, rater_column, item_column, value_column = long_columns(
        output=output, rater=rater, item=item, value=value
    )
    values = value_column.astype(np.float64, copy=False)
    given = np.isfinite(values)
    outputs, n_outputs = dense_codes("output", output_column)
    raters, n_raters = dense_codes("rater", rater_column)
    items, n_items = dense_codes("item", item_column)
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

    whole = rating_moments(ratings.output, value, ratings.n_outputs)
    rest = whole[output] - rating_moments(pair, value, key.size)
    pairs = (rater, output)
    return _influence(
        "ICC(1,k)", ratings, lambda s: one_way_icc(s)[1], one_way_rows(whole), pairs, one_way_rows(rest)
    )


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
        value(total + sums_of_groups(change, rater, ratings.n_raters)),
        value(total - sums_of_groups(by_output, ratings.item, ratings.n_items)),
    )


def _icc_two_way(ratings: _Ratings) -> Influence:
    """ICC(2,k) of the outputs that every rater judged once; without a rater those of all the others."""
    table = np.full((ratings.n_outputs, ratings.n_raters), np.nan)
    table[ratings.output, ratings.rater] = ratings.value
    times = np.bincount(ratings.output * ratings.n_raters + ratings.rater, minlength=table.size)
    table[times.reshape(table.shape) > 1] = np.nan  # twice is not once
    n_missing = np.isnan(table).sum(axis=1)

    def icc(columns: Ints, rows: Ints) -> float:
        if rows.size < 2 or columns.size < 2:
            return np.nan
        sums = two_way_rows(table[np.ix_(rows, columns)]).sum(axis=0)
        return float(two_way_icc(sums[None])[1][0])

    everybody = np.arange(ratings.n_raters)
    complete = np.flatnonzero(n_missing == 0)
    without_rater = _without_raters(table[complete])
    _, absent = np.nonzero(np.isnan(table[n_missing == 1]))
    for r in np.unique(absent):  # outputs that only this rater did not judge count when the rater is gone
        rows = np.flatnonzero(n_missing - np.isnan(table[:, r]) == 0)
        without_rater[r] = icc(np.delete(everybody, r), rows)
    without_item = _without_items(table[complete], ratings.item[complete], ratings.n_items)
    return Influence("ICC(2,k)", icc(everybody, complete), without_rater, without_item)


def _without_raters(table: Floats) -> Floats:
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
    noise = np.maximum(squares - n * k * grand**2 - between - raters, 0.0)
    mean_squares = (between / (n - 1), raters / (k - 1), noise / ((n - 1) * (k - 1)))
    return absolute_agreement(*mean_squares, np.full(k + 1, n), k)[1]


def _without_items(table: Floats, item: Ints, n_items: int) -> Floats:
    if table.shape[1] < 2 or len(table) < 2:
        return np.full(n_items, np.nan)
    rows = two_way_rows(table)
    return two_way_icc(rows.sum(axis=0) - sums_of_groups(rows, item, n_items))[1]


_MEASURES: dict[str, Callable[[_Ratings], Influence]] = {
    "ICC(1,k)": _icc_one_way,
    "ICC(2,k)": _icc_two_way,
    "alpha": _alpha_nominal,
}
