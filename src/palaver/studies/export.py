"""The ratings that were analysed, in the long format, with the score that statistics used beside each."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from palaver.files import write_atomically
from palaver.studies.judgements import judgements_of
from palaver.studies.ratings import ORDER, RatingTable

_NAMES = ("item", "system", "against", "rater", "criterion")
_COLUMNS = (*_NAMES, "value", "score", "given_at", "seconds", "shown_position")


def write_long(table: RatingTable, path: str | Path, *, normalise: str = "auto") -> None:
    """Write Parquet. `value` is a number unless some criterion's values are words; then it is text."""
    worded = any(t.kind != "number" for t in table.treatments.values())
    parts = []
    for criterion in table.criteria:
        judged = judgements_of(table, criterion, normalise)
        score = judged.score if judged.treatment.kind != "boxes" else None
        parts.append(
            table.of(criterion).with_columns(
                pl.Series("score", score, dtype=pl.Float64)
                if score is not None
                else pl.lit(None, dtype=pl.Float64).alias("score")
            )
        )
    value = pl.col("value")
    if worded:
        number = value.cast(pl.String).str.replace(r"\.0$", "")
        value = pl.coalesce(pl.col("text").cast(pl.String).str.replace_all("\n", "|"), number).alias("value")
    frame = pl.concat(parts).sort(ORDER).with_columns(value)
    names = pl.col(_NAMES).cast(pl.String)
    with write_atomically(Path(path), "wb") as file:
        frame.with_columns(names).select(_COLUMNS).write_parquet(file)
