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
    """Running moments of one criterion and system (Chan, Golub & LeVeque 1983: they merge without loss)."""

    criterion: str
    system: str
    n: int = 0
    n_words: int = 0
    """Values that are not numbers."""
    mean: float = math.nan
    squares: float = 0.0
    """Squared distances from the mean, summed."""
    low: float = math.inf
    high: float = -math.inf

    @property
    def sd(self) -> float:
        return math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else math.nan

    def add(self, n: int, mean: float, squares: float, low: float, high: float) -> None:
        """Take in `n` more values with these moments."""
        apart = mean - self.mean if self.n else 0.0
        self.squares += squares + apart**2 * self.n * n / (self.n + n)
        self.mean = self.mean + apart * n / (self.n + n) if self.n else mean
        self.n += n
        self.low, self.high = min(self.low, low), max(self.high, high)


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
        found.n_ratings += frame.height - frame["value"].null_count()
        found.items.update(frame["item"].unique().drop_nulls())
        found.raters.update(frame["rater"].unique().drop_nulls())
        number = pl.col("value").cast(pl.Float64, strict=False)
        good = number.filter(number.is_finite())
        sums = frame.group_by("criterion", "system").agg(
            good.len().alias("n"),
            (pl.col("value").is_not_null().sum() - good.len()).alias("words"),
            good.mean().alias("mean"),
            (good - good.mean()).pow(2).sum().alias("squares"),
            good.min().alias("low"),
            good.max().alias("high"),
        )
        for criterion, system, n, words, *moments in sums.iter_rows():
            if criterion is None or system is None:
                continue
            cell = found.cells.setdefault((criterion, system), Cell(criterion, system))
            cell.n_words += words
            if n:
                cell.add(n, *moments)
    found.n_broken = len(source.problems)
    return found
