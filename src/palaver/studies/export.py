"""The ratings that were analysed, in the long format, with the score that statistics used beside each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from palaver.files import write_atomically
from palaver.readers.ratings import TYPES
from palaver.studies.judgements import judgements_of, normalisation_of
from palaver.studies.ratings import RatingTable, names_in_files

_SELDOM = ("signature", "context", "turn", "repeat", "version", "probability", "sampling_probability")
"""Columns that are written only where something is in them."""


def write_long(table: RatingTable, path: str | Path, *, normalise: str = "auto") -> None:
    """Write Parquet. `value` is a number unless some criterion's values are words; then it is text."""
    value = pl.col("value")
    if any(treatment.kind != "number" for treatment in table.treatments.values()):
        number = value.cast(pl.String).str.replace(r"\.0$", "")
        value = pl.coalesce(pl.col("text").cast(pl.String).str.replace_all("\n", "|"), number)
    empty = [name for name in _SELDOM if table.frame[name].null_count() == table.frame.height]
    columns = [name for name in TYPES if name not in ("text", "value", *empty)]
    frame = names_in_files(table).with_columns(_scores(table, normalise)).lazy()
    rows = frame.with_columns(value.alias("value")).select(*columns, "value", "score")
    with write_atomically(Path(path), "wb") as file:
        rows.sink_parquet(file, compression_level=1)  # as a stream, names as categories


def _scores(table: RatingTable, normalise: str) -> pl.Series:
    """The score of each row; nothing for boxes, which are words."""
    raw = all(
        t.kind == "number" and normalisation_of(t, normalise) == "raw" for t in table.treatments.values()
    )
    if raw:
        return table.frame["value"].alias("score")
    scores = np.full(table.frame.height, np.nan)
    for criterion, treatment in table.treatments.items():
        if treatment.kind != "boxes":
            rows = (table.frame["criterion"] == criterion).to_numpy()
            scores[rows] = judgements_of(table, criterion, normalise).score
    return pl.Series("score", scores, nan_to_null=True)
