"""What is in a rating file, in one pass and constant memory (plus the distinct names)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from palaver.progress import Progress, no_progress
from palaver.readers.ratings import Source, typed_ratings
from palaver.schema.rating import KINDS, Kind
from palaver.tables import TableSource, open_table

_CELL = ("criterion", "kind", "system")


@dataclass
class Description:
    """Counts and moments of a file."""

    layout: str = ""
    n_ratings: int = 0
    items: set[str] = field(default_factory=set)
    raters: set[str] = field(default_factory=set)
    cells: pl.DataFrame = field(default_factory=pl.DataFrame)
    """A row for each criterion, kind and system: n, n_words (no numbers), mean, sd, low, high."""
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

    who = pl.col("kind").fill_null("human") if kind is None else pl.lit(kind).alias("kind")
    value, given = pl.col("value"), pl.col("value").is_not_null() | pl.col("text").is_not_null()
    number = value.filter(value.is_finite())
    parts = []
    for layout, frame in typed_ratings(table, columns, report):
        description.layout = layout.describe()
        description.items.update(frame["item"].unique().drop_nulls())
        description.raters.update(frame["rater"].unique().drop_nulls())
        rows = frame.filter(given)
        description.n_ratings += rows.height
        parts.append(
            rows.group_by("criterion", who.cast(pl.String), "system").agg(
                number.len().alias("n"),
                (pl.len() - number.len()).alias("n_words"),
                number.mean().alias("mean"),
                (number - number.mean()).pow(2).sum().alias("squares"),
                number.min().alias("low"),
                number.max().alias("high"),
            )
        )
    if parts:
        description.cells = _merged(pl.concat(parts))
    description.n_broken = len(table.problems)
    return description


def _merged(parts: pl.DataFrame) -> pl.DataFrame:
    """The moments of all parts of a cell (Chan, Golub & LeVeque 1983: they merge without loss)."""
    n, mean = pl.col("n").cast(pl.Int64), pl.col("mean")
    of_all = ((n * mean).sum() / n.sum()).alias("mean")
    squares = (pl.col("squares") + n * (mean - of_all) ** 2).sum()
    cells = parts.group_by(_CELL).agg(
        n.sum(),
        pl.col("n_words").sum(),
        of_all,
        (squares / (n.sum() - 1)).sqrt().alias("sd"),
        pl.col("low").min(),
        pl.col("high").max(),
    )
    named = pl.all_horizontal(pl.col("criterion", "system").is_not_null())
    cells = cells.filter(named, pl.col("kind").is_in(KINDS)).cast({pl.Categorical: pl.String})
    return cells.sort("criterion", "system", "kind")
