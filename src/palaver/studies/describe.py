"""What is in a rating file, in one pass and constant memory (plus the distinct names)."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from palaver.progress import Progress, no_progress
from palaver.readers.rating_options import RatingOptions
from palaver.readers.ratings import RatingReader, Source, check_criteria
from palaver.schema.rating import KINDS, Kind

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
    n_missing: int = 0
    """Cells without a value."""
    notes: list[str] = field(default_factory=list)
    """How the file was read, and which columns were not."""


def describe(
    source: Source,
    options: RatingOptions | None = None,
    *,
    kind: Kind | None = None,
    progress: Progress = no_progress,
) -> Description:
    """Count, mean, spread and range per criterion, kind and system, without building a table.

    `kind` says who rated and overrules the column of that name.
    """
    reader = RatingReader(source, options)
    description = Description()

    def report(used: int) -> None:
        progress("reading ratings", used, reader.table.size)

    who = pl.col("kind").fill_null("human") if kind is None else pl.lit(kind).alias("kind")
    value = pl.col("value")
    number = value.filter(value.is_finite())
    parts = []
    n_unnamed = 0
    for frame in reader.typed_frames(report):
        description.items.update(frame["item"].unique().drop_nulls())
        description.raters.update(frame["rater"].unique().drop_nulls())
        description.n_ratings += frame.height
        parts.append(
            frame.group_by("criterion", who.cast(pl.String), "system").agg(
                number.len().alias("n"),
                (pl.len() - number.len()).alias("n_words"),
                number.mean().alias("mean"),
                (number - number.mean()).pow(2).sum().alias("squares"),
                number.min().alias("low"),
                number.max().alias("high"),
            )
        )
    if parts:
        cells = pl.concat(parts)
        description.cells = _merged(cells.filter(_is_named()))
        unnamed = cells.filter(~_is_named())
        n_unnamed = int(unnamed["n"].sum()) + int(unnamed["n_words"].sum())
    check_criteria([reader])
    description.layout = reader.layout.describe()
    description.n_broken = len(reader.table.problems)
    description.n_missing = reader.n_missing
    description.notes = list(reader.notes(describe_layout=False))
    if n_unnamed:
        description.notes.append(
            f"ratings without a known kind, criterion or system, in no cell: {n_unnamed:,}"
        )
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
    return cells.cast({pl.Categorical: pl.String}).sort("criterion", "system", "kind")


def _is_named() -> pl.Expr:
    return pl.all_horizontal(pl.col("criterion", "system").is_not_null()) & pl.col("kind").is_in(KINDS)
