"""What is in a rating file, in one pass and constant memory (plus the distinct names)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from palaver.progress import Progress, no_progress
from palaver.readers.ratings import Source, typed_ratings
from palaver.schema.rating import KINDS, Kind
from palaver.tables import TableSource, open_table


@dataclass
class Cell:
    """Running moments of one criterion and system (Chan, Golub & LeVeque 1983: they merge without loss)."""

    criterion: str
    kind: str
    """Who rated."""
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
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    """By criterion, kind and system."""
    n_broken: int = 0


def describe(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    kind: Kind | None = None,
    progress: Progress = no_progress,
) -> Description:
    """Count, mean, spread and range per criterion, kind and system, without building a table.

    `kind` says who rated and overrules the column of that name.
    """
    table = source if isinstance(source, TableSource) else open_table(source)
    description = Description()

    def report(used: int) -> None:
        progress("reading ratings", used, table.size)

    who = pl.col("kind").fill_null("human") if kind is None else pl.lit(kind)
    value, given = pl.col("value"), pl.col("value").is_not_null() | pl.col("text").is_not_null()
    number = value.filter(value.is_finite())
    for layout, frame in typed_ratings(table, columns, report):
        description.layout = layout.describe()
        description.items.update(frame["item"].unique().drop_nulls())
        description.raters.update(frame["rater"].unique().drop_nulls())
        sums = (
            frame.filter(given)
            .group_by("criterion", who.cast(pl.String), "system")
            .agg(
                number.len().alias("n"),
                (pl.len() - number.len()).alias("words"),
                number.mean().alias("mean"),
                (number - number.mean()).pow(2).sum().alias("squares"),
                number.min().alias("low"),
                number.max().alias("high"),
            )
        )
        for criterion, named, system, n, words, *moments in sums.iter_rows():
            description.n_ratings += n + words
            if criterion is None or system is None or named not in KINDS:
                continue
            cell = description.cells.setdefault((criterion, named, system), Cell(criterion, named, system))
            cell.n_words += words
            if n:
                cell.add(n, *moments)
    description.n_broken = len(table.problems)
    return description
