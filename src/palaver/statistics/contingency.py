"""Tests on counts: Pearson's chi-square on contingency tables (1900; Yates' correction for 2 x 2, 1934;
Cramér's V, 1946) and McNemar's test of paired yes/no answers (1947), exact for small numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats
from palaver.statistics.significance import SignificanceTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquareTest(SignificanceTest):
    """Independence of the rows and columns of a contingency table; `dropped` ones have no counts."""

    statistic: float = math.nan
    df: int
    expected: Floats
    """Same shape as the table; 0 in empty rows and columns."""
    smallest_expected: float
    cramers_v: float = math.nan
    """From the statistic without Yates' correction."""
    corrected: bool
    n: float


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemarTest(SignificanceTest):
    """Change between paired yes/no answers, from the two discordant counts."""

    statistic: float = math.nan
    """min(b, c) if exact, else chi-square with one degree of freedom."""
    b: int
    c: int
    exact: bool


def chi_square(
    table: ArrayLike,
    *,
    correction: bool | None = None,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> ChiSquareTest:
    """Pearson's chi-square. Yates' correction applies to 2 x 2 tables only, unless `correction=False`.

    Rows and columns without any count are left out, and named by `rows` and `columns` or their numbers.
    """
    counts = np.asarray(table, dtype=np.float64)
    if counts.ndim != 2 or not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError(
            f"expected a 2-D table of counts of 0 or more, found shape {counts.shape}: {counts.tolist()}"
        )
    notes: list[str] = []
    kept = []
    for axis, kind, names in ((0, "row", rows), (1, "column", columns)):
        if names is not None and len(names) != counts.shape[axis]:
            raise ValueError(f"expected {counts.shape[axis]} {kind} names, found {len(names)}")
        filled = counts.sum(axis=1 - axis) > 0
        labels = names if names is not None else range(1, filled.size + 1)
        notes += [f"{kind} {labels[i]} has no counts" for i in np.flatnonzero(~filled).tolist()]
        kept.append(np.flatnonzero(filled))
    cells = np.ix_(*kept)
    observed = counts[cells]
    df = max(kept[0].size - 1, 0) * max(kept[1].size - 1, 0)
    total = float(observed.sum())
    expected = np.zeros(counts.shape)
    smallest = math.nan
    if total > 0:
        expected[cells] = np.outer(observed.sum(axis=1), observed.sum(axis=0)) / total
        smallest = float(expected[cells].min())
    result = ChiSquareTest(
        df=df,
        expected=expected,
        smallest_expected=smallest,
        corrected=df == 1 and correction is not False,
        n=total,
        dropped=len(notes),
        notes=tuple(notes),
    )
    if df == 0:
        shape = f"{kept[0].size} x {kept[1].size}"
        return replace(result, reason=f"fewer than 2 rows or columns have counts ({shape})")
    from scipy.special import chdtrc

    gap = np.abs(observed - expected[cells])
    plain = float((gap**2 / expected[cells]).sum())
    if result.corrected:
        gap = np.maximum(gap - 0.5, 0.0)
    statistic = float((gap**2 / expected[cells]).sum())
    if smallest < 5:
        notes.append(f"smallest expected count {smallest:.2g} is below 5: p is approximate")
    return replace(
        result,
        statistic=statistic,
        p=float(chdtrc(df, statistic)),
        cramers_v=math.sqrt(plain / total / (min(observed.shape) - 1)),
        notes=tuple(notes),
    )


def mcnemar(table_or_b: ArrayLike, c: int | None = None, *, exact: bool | None = None) -> McNemarTest:
    """McNemar's test from a 2 x 2 table of paired answers, or from its discordant counts `b` and `c`.

    Exact binomial when b + c < 25 (or `exact=True`), else chi-square with continuity correction.
    """
    given = np.asarray(table_or_b, dtype=np.float64)
    if given.shape != ((2, 2) if c is None else ()):
        raise ValueError(f"expected a 2 x 2 table, or counts b and c; found shape {given.shape} and c={c}")
    pair = np.array([given[0, 1], given[1, 0]] if c is None else [given, c], dtype=np.float64)
    if not np.isfinite(pair).all() or (pair < 0).any() or (pair != np.floor(pair)).any():
        raise ValueError(f"discordant counts must be whole numbers of 0 or more, found {pair.tolist()}")
    first, second = int(pair[0]), int(pair[1])
    total = first + second
    result = McNemarTest(b=first, c=second, exact=total < 25 if exact is None else exact)
    if total == 0:
        return replace(result, reason="no discordant pairs")
    if result.exact:
        from scipy.special import bdtr

        statistic = float(min(first, second))
        return replace(result, statistic=statistic, p=min(1.0, 2 * float(bdtr(statistic, total, 0.5))))
    from scipy.special import chdtrc

    statistic = max(abs(first - second) - 1, 0) ** 2 / total
    return replace(result, statistic=statistic, p=float(chdtrc(1, statistic)))
