"""The ratings that were analysed, in the long format, with the score that statistics used beside each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from palaver.files import write_atomically
from palaver.studies.judgements import judgements_of, normalisation_of
from palaver.studies.ratings import RatingTable

_NAMES = ("item", "system", "against", "rater", "criterion")
_COLUMNS = (*_NAMES, "value", "score", "given_at", "seconds", "shown_position")


def write_long(table: RatingTable, path: str | Path, *, normalise: str = "auto") -> None:
    """Write Parquet. `value` is a number unless some criterion's values are words; then it is text."""
    worded = any(t.kind != "number" for t in table.treatments.values())
    value = pl.col("value")
    if worded:
        number = value.cast(pl.String).str.replace(r"\.0$", "")
        value = pl.coalesce(pl.col("text").cast(pl.String).str.replace_all("\n", "|"), number)
    frame = table.frame.with_columns(_scores(table, normalise)).lazy()
    texts = frame.with_columns(value.alias("value"), pl.col(_NAMES).cast(pl.String)).select(_COLUMNS)
    with write_atomically(Path(path), "wb") as file:
        texts.sink_parquet(file)  # as a stream: never all names as text at once


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
