"""What is in a rating file, in one pass and constant memory (plus the distinct names)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from palaver.studies.ratings import Progress, long_frames
from palaver.tables import open_table


@dataclass
class Cell:
    """Running sums of one criterion and system."""

    criterion: str
    system: str
    n: int = 0
    n_words: int = 0
    """Values that are not numbers."""
    total: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else math.nan

    @property
    def sd(self) -> float:
        if self.n < 2:
            return math.nan
        return math.sqrt(max(0.0, (self.squares - self.total**2 / self.n) / (self.n - 1)))


@dataclass
class Description:
    """Counts and moments of a file."""

    layout: str = ""
    n_ratings: int = 0
    items: set[str] = field(default_factory=set)
    raters: set[str] = field(default_factory=set)
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    n_broken: int = 0


def describe(
    path: str | Path, *, columns: Mapping[str, str] | None = None, progress: Progress | None = None
) -> Description:
    """Count, mean, spread and range per criterion and system, without building a table."""
    source = open_table(path)
    report = (lambda used: progress(used, source.size)) if progress else None
    found = Description()
    for layout, frame in long_frames(source, columns, report):
        found.layout = layout.describe()
        found.n_ratings += frame.height
        found.items.update(frame["item"].unique().drop_nulls())
        found.raters.update(frame["rater"].unique().drop_nulls())
        number = pl.col("value").cast(pl.Float64, strict=False)
        good = number.filter(number.is_finite())
        sums = frame.group_by("criterion", "system").agg(
            good.len().alias("n"),
            (pl.col("value").is_not_null().sum() - good.len()).alias("words"),
            good.sum().alias("total"),
            (good * good).sum().alias("squares"),
            good.min().alias("low"),
            good.max().alias("high"),
        )
        for criterion, system, n, words, total, squares, low, high in sums.iter_rows():
            if criterion is None or system is None:
                continue
            cell = found.cells.setdefault((criterion, system), Cell(criterion, system))
            cell.n += n
            cell.n_words += words
            if n:
                cell.total += total
                cell.squares += squares
                cell.low, cell.high = min(cell.low, low), max(cell.high, high)
    found.n_broken = len(source.problems)
    return found
