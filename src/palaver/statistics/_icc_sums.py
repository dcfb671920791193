"""The intraclass correlation from sums over outputs: what is left out or drawn again changes sums only."""

from __future__ import annotations

import numpy as np

from palaver.statistics._anova import centre, difference
from palaver.statistics.bootstrap import Floats, Ints


def rating_moments(code: Ints, value: Floats, n_codes: int) -> Floats:
    """Number, sum and sum of squares of the (centred) ratings of each code."""
    columns = (None, value, value**2)
    return np.column_stack([np.bincount(code, c, minlength=n_codes).astype(np.float64) for c in columns])


def one_way_rows(moments: Floats) -> Floats:
    """What each output adds to the sums of `one_way_icc`."""
    n, total, squares = moments.T
    between = np.divide(total**2, n, out=np.zeros_like(n), where=n > 0)
    return np.column_stack([n > 0, n, n**2, total, between, squares])


def one_way_icc(sums: Floats) -> tuple[Floats, Floats]:
    """ICC(1,1) and ICC(1,k) of each row of sums, nan where there are none."""
    n_rated, n, n_squared, total, between, squares = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        within = difference(squares, between) / (n - n_rated)
        among = difference(between, total**2 / n) / (n_rated - 1)
        k = (n - n_squared / n) / (n_rated - 1)
        defined = (n_rated > 1) & (n > n_rated)
        single, average = among + (k - 1) * within, among
        return (
            np.where(defined & (single > 0), (among - within) / single, np.nan),
            np.where(defined & (average > 0), (among - within) / average, np.nan),
        )


def two_way_rows(table: Floats) -> Floats:
    """What each output of an (outputs, raters) table without gaps adds to the sums of `two_way_icc`."""
    centred = centre(table).values
    mean = centred.mean(axis=1)
    within = np.square(centred - mean[:, None]).sum(axis=1)
    return np.column_stack([np.ones(len(table)), mean**2, within, centred])


def two_way_icc(sums: Floats) -> tuple[Floats, Floats]:
    """ICC(2,1) and ICC(2,k) of each row of sums, nan where there are none."""
    k = sums.shape[1] - 3
    n, squares, within = sums[:, 0], sums[:, 1], sums[:, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_rater = sums[:, 3:] / n[:, None]
        grand = by_rater.mean(axis=1)
        raters = difference(n * np.square(by_rater).sum(axis=1), n * k * grand**2)
        between = difference(k * squares, k * n * grand**2) / (n - 1)
        noise = difference(within, raters) / ((n - 1) * (k - 1))
        return absolute_agreement(between, raters / (k - 1), noise, n, k)


def absolute_agreement(
    between: Floats, raters: Floats, noise: Floats, n: Floats | Ints, k: int
) -> tuple[Floats, Floats]:
    """ICC(2,1) and ICC(2,k) from mean squares; nan where the estimated total variance is not positive."""
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = (raters - noise) / n
        single, average = between + (k - 1) * noise + k * bias, between + bias
        return (
            np.where((n > 1) & (single > 0), (between - noise) / single, np.nan),
            np.where((n > 1) & (average > 0), (between - noise) / average, np.nan),
        )


def sums_of_groups(rows: Floats, group: Ints, n_groups: int) -> Floats:
    """Sums of the rows of each group, as (groups, columns)."""
    return np.column_stack([np.bincount(group, column, minlength=n_groups) for column in rows.T])
