"""Rating files as a user names them, with what they say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from palaver.progress import Progress, no_progress
from palaver.readers.rating_options import RatingOptions
from palaver.schema import Study
from palaver.schema.rating import Kind
from palaver.studies.ratings import RatingTable, read_ratings
from palaver.tables import TableSource


def read_table(
    sources: Path | Sequence[Path | TableSource],
    file_options: RatingOptions,
    *,
    study: Study | None = None,
    kinds: Mapping[str, Kind] | None = None,
    skip_bad: bool = False,
    progress: Progress = no_progress,
) -> RatingTable:
    """The ratings of all files together; `file_options` are those of the command line."""
    return read_ratings(
        sources,
        study=study,
        columns=file_options.columns,
        shape=file_options.shape,
        criteria=file_options.criteria,
        labels=file_options.labels,
        missing=file_options.missing,
        sheet=file_options.sheet,
        kinds=kinds,
        skip_bad=skip_bad,
        progress=progress,
    )
