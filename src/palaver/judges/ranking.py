"""Systems ranked by a judge's ratings, with the statistics that rank by people's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from palaver.comparator.reading import NOT_ENGLISH, WORDY
from palaver.errors import DataError
from palaver.judges.catalogue import directions
from palaver.readers.rows import RowFile
from palaver.studies import Analysis, analyse, ratings_from_frame
from palaver.tables import open_table

_SCORE_COLUMNS = {"id", "score", "low", "high", "system", "group", "worst_turn", "english", "wordy"}


def rank_systems(
    ratings: pl.DataFrame, *, n_replicates: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Analysis:
    """The analysis of a judge's ratings. What shares a context (a sitting, a prompt) is compared within it.

    Several dialogues of one system in one sitting are repeats: none replaces another.
    """
    systems = ratings["system"].unique().to_list()
    if len(systems) < 2:
        raise DataError(
            f"expected ratings of at least two systems, found {len(systems)}: {', '.join(systems)}",
            "name the system of each dialogue or response in its field `system`",
        )
    shared = ratings.with_columns(item=pl.coalesce("context", "item"))
    place = pl.int_range(pl.len()).over("criterion", "item", "system", "rater").cast(pl.Int32)
    table = ratings_from_frame(shared.with_columns(repeat=place))
    return analyse(
        table,
        directions=directions(table.criteria),
        n_replicates=n_replicates,
        confidence=confidence,
        seed=seed,
    )


@dataclass(frozen=True)
class ScoreFile:
    """What `palaver compare score` wrote, as ratings, and what it warned of."""

    ratings: pl.DataFrame
    notes: tuple[str, ...]


def read_scores(path: Path) -> ScoreFile | None:
    """The file of `palaver compare score`; nothing where it holds something else."""
    _, first = next(RowFile(path).rows(), (0, None))
    if not isinstance(first, dict) or not {"id", "score"} <= first.keys() <= _SCORE_COLUMNS:
        return None
    source = open_table(path)
    rows = pl.concat(list(source.frames()), how="diagonal")
    nameless = rows.height - rows.drop_nulls(["system", "score"]).height if "system" in rows.columns else None
    if nameless is None or nameless == rows.height:
        raise DataError(f"{path} names no systems", "name each dialogue's system in its field `system`")
    named = rows.drop_nulls(["system", "score"])
    group = pl.col("group") if "group" in named.columns else pl.lit(None, dtype=pl.String)
    notes = []
    for column, doubtful, note in (("english", "false", NOT_ENGLISH), ("wordy", "true", WORDY)):
        if column in rows.columns:  # as text or as truth, depending on the file
            n = int((rows[column].cast(pl.String).str.to_lowercase() == doubtful).sum())
            notes += [f"{n:,} {note}"] if n else []
    ratings = named.select(
        pl.col("id").alias("item"),
        group.alias("context"),
        "system",
        pl.lit("comparator").alias("rater"),
        pl.lit("quality").alias("criterion"),
        pl.col("score").alias("value"),
        pl.lit("model").alias("kind"),
    )
    return ScoreFile(ratings, tuple(notes))
