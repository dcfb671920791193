"""Pairs of systems compared by metrics, on the items that both answered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from palaver.metrics.blocks import ROWS, RowTable
from palaver.metrics.metric import Floats, Metric
from palaver.metrics.systems import SystemResponses, resample, same_items, value_of, why_no_width
from palaver.metrics.tokens import Ints
from palaver.statistics.bootstrap import Resampling, percentile_interval
from palaver.statistics.significance import holm

ALPHA = 0.05
"""A pair whose corrected p lies below is clearly apart."""
MOST_EXACT = 12
"""Items on which two systems differ, up to which all ways to swap them are listed."""
_TIE = 1e-12
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """Two systems compared by one metric on the items that both answered."""

    metric: str
    system: str
    other: str
    difference: float
    """`system` minus `other`."""
    low: float
    high: float
    p: float
    """Two-sided; `test` says of which test."""
    p_holm: float
    """Corrected for all pairs of this metric."""
    n: int
    """Items for which both have a score; a test needs two."""
    test: Literal["bootstrap", "exact", ""] = ""
    """The paired bootstrap under the shifted null, or, where the two differ on at most `MOST_EXACT` items,
    all ways to swap them: a bootstrap of so few items finds p too small."""
    reason: str = ""
    """Why there is no test, or why the interval has no width; empty otherwise."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two systems on the items that both answered."""

    systems: tuple[SystemResponses, SystemResponses]
    tables: Sequence[RowTable | Floats]
    totals: Sequence[Floats]
    replicates: Sequence[Floats]


def compare_pairs(
    systems: Sequence[SystemResponses],
    metrics: Sequence[Metric],
    replicates: Sequence[Floats],
    resampling: Resampling,
) -> Iterator[MetricDifference]:
    """Each pair of systems that share items, by each metric; `replicates` are the sums of each system."""
    if not metrics or not resampling.n_replicates:
        return
    rows: list[list[MetricDifference]] = [[] for _ in metrics]
    for pair in _pairs(systems, replicates, resampling):
        for place, metric in enumerate(metrics):
            rows[place].append(_difference(metric, pair, pair.systems[0].columns[place], resampling))
    for of_metric in rows:
        adjusted = holm([row.p for row in of_metric]).adjusted
        for row, p in zip(of_metric, adjusted, strict=True):
            yield replace(row, p_holm=float(p))


def _pairs(
    systems: Sequence[SystemResponses], replicates: Sequence[Floats], resampling: Resampling
) -> Iterator[_Pair]:
    shared = same_items(systems)
    for a, b in combinations(range(len(systems)), 2):
        pair = (systems[a], systems[b])
        if shared:
            tables: list[RowTable | Floats] = [system.table for system in pair]
            yield _Pair(pair, tables, [system.total for system in pair], [replicates[a], replicates[b]])
            continue
        common = _common_rows(*pair)
        if common[0].size:
            tables = [system.table.take(rows) for system, rows in zip(pair, common, strict=True)]
            totals = [table[:].sum(axis=0) for table in tables]
            yield _Pair(pair, tables, totals, resample(tables, resampling))


def _common_rows(one: SystemResponses, other: SystemResponses) -> tuple[Ints, Ints]:
    """The rows of both that are about the same item."""
    places = {item: row for row, item in enumerate(other.items)}
    pairs = [(row, places[item]) for row, item in enumerate(one.items) if item in places]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _difference(metric: Metric, pair: _Pair, columns: slice, resampling: Resampling) -> MetricDifference:
    totals = [total[columns] for total in pair.totals]
    values = [float(value_of(metric, total)) if total[-1] else math.nan for total in totals]
    one, other = pair.systems
    n = _n_of_both(pair.tables, columns.stop - 1)
    nan = math.nan
    result = MetricDifference(metric.name, one.name, other.name, values[0] - values[1], nan, nan, nan, nan, n)
    if n < 2:
        return replace(result, reason=f"a test needs two items for which both have a score, found {n}")
    if not math.isfinite(result.difference):
        return replace(result, reason="the figure of one of the two is undefined")
    drawn = value_of(metric, pair.replicates[0][:, columns]) - value_of(
        metric, pair.replicates[1][:, columns]
    )
    drawn = drawn[np.isfinite(drawn)]
    interval = percentile_interval(drawn, resampling.confidence)
    reason = why_no_width(interval)
    result = replace(result, low=interval.low, high=interval.high, reason=reason)
    rows = _few_changes(pair.tables, columns)
    if rows is not None:
        return replace(result, p=_exact_p(metric, totals, rows), test="exact")
    n_as_large = int((np.abs(drawn - result.difference) >= abs(result.difference) - _TIE).sum())
    return replace(result, p=(1 + n_as_large) / (1 + drawn.size), test="bootstrap")


def _n_of_both(tables: Sequence[RowTable | Floats], column: int) -> int:
    """Items for which both have a score."""
    n = 0
    for begin in range(0, len(tables[0]), ROWS):
        one, other = (table[begin : begin + ROWS][:, column] for table in tables)
        n += int((one * other).sum())
    return n


def _few_changes(tables: Sequence[RowTable | Floats], columns: slice) -> Floats | None:
    """Of each item on which the two differ, the first minus the second; None of more than `MOST_EXACT`."""
    few: list[Floats] = []
    for begin in range(0, len(tables[0]), ROWS):
        one, other = (table[begin : begin + ROWS][:, columns] for table in tables)
        changes = one - other
        few.extend(changes[changes.any(axis=1)][: MOST_EXACT + 1])
        if len(few) > MOST_EXACT:
            return None
    return np.array(few).reshape(len(few), columns.stop - columns.start)


def _exact_p(metric: Metric, totals: Sequence[Floats], changes: Floats) -> float:
    """The share of all ways to swap the two on these items in which they are as far apart as they are."""
    n = len(changes)
    swaps = (np.arange(2**n)[:, None] >> np.arange(n)) & 1  # (2^n, n); the first swaps nothing
    moved = swaps @ changes
    gaps = np.abs(value_of(metric, totals[0] - moved) - value_of(metric, totals[1] + moved))
    gaps = gaps[np.isfinite(gaps)]
    return float((gaps >= gaps[0] * (1 - _ROUNDING) - _TIE).mean())
