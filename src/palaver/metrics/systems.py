"""What several systems answered, as sums over responses, and bootstrap replicates of these sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from palaver.metrics.blocks import RowTable, SideBySide
from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric
from palaver.statistics.bootstrap import Interval, Resampling, resample_rows


@dataclass(eq=False)
class SystemResponses:
    """What one system answered to which items."""

    name: str
    items: Sequence[Any]
    blocks: Iterable[Examples]
    """Gone through more than once; all in one block where a metric reads texts."""
    table: RowTable = field(default_factory=RowTable)
    """For each metric that has an interval: sums' columns, then whether the response has a score."""
    columns: list[slice] = field(default_factory=list)
    """Of each such metric."""
    total: Floats = field(default_factory=lambda: np.zeros(0))
    """The sums of the columns."""

    def __len__(self) -> int:
        return len(self.items)

    def count(self, metrics: Sequence[Metric], *, keep_rows: bool) -> None:
        """Fill the table, or only its sums; what was counted before goes."""
        self.table.clear()
        self.total = np.zeros(0)
        for block in self.blocks:
            tables = [_with_counts(metric.table(block)) for metric in metrics]
            ends = np.cumsum([table.shape[1] for table in tables]).tolist()
            self.columns = [slice(begin, end) for begin, end in pairwise([0, *ends])]
            totals = np.concatenate([table.sum(axis=0) for table in tables])
            self.total = self.total + totals if self.total.size else totals
            if keep_rows:
                self.table.append(np.hstack(tables))


def _with_counts(table: Floats) -> Floats:
    defined = ~np.isnan(table[:, :1])
    return np.hstack([np.where(defined, table, 0.0), defined])


def replicate_sums(
    systems: Sequence[SystemResponses], metrics: Sequence[Metric], resampling: Resampling
) -> list[Floats]:
    """Of each system: the sums of each replicate. Systems with the same items share the draws."""
    if not resampling.n_replicates or not metrics:
        return [np.empty((0, system.total.size)) for system in systems]
    if same_items(systems):
        return resample([system.table for system in systems], resampling)
    return [resample([system.table], resampling)[0] for system in systems]


def same_items(systems: Sequence[SystemResponses]) -> bool:
    """Whether all systems answered the same items, in the same order."""
    first = systems[0].items
    return all(s.items == first for s in systems[1:])


def resample(tables: Sequence[RowTable | Floats], resampling: Resampling) -> list[Floats]:
    """The sums of each replicate; row i of every table is about the same item."""
    together = SideBySide(tables)
    varies = together.varying()  # a column that is the same in every row needs no drawing
    sums = np.empty((resampling.n_replicates, together.shape[1]))
    sums[:, ~varies] = together[:1][0, ~varies] * len(together)
    if varies.any():
        drawn = SideBySide(tables, np.flatnonzero(varies))
        sums[:, varies] = resample_rows(drawn, resampling.n_replicates, resampling.rng)
    return np.split(sums, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def value_of(metric: Metric, sums: Floats) -> Floats:
    """The figure, given sums whose last column counts the responses."""
    return metric.value(sums[..., :-1], sums[..., -1])


def why_no_width(interval: Interval) -> str:
    """The reason to give; empty where the interval has a width. Sums of equal rows differ by rounding."""
    equal = math.isclose(interval.low, interval.high, rel_tol=1e-9, abs_tol=1e-12)
    return "all replicates are equal" if equal else ""
