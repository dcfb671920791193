"""Whether a table of personalities fits the data (Xing & Fernández 2018, section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from palaver.corpora.personalities import Scores
from palaver.errors import DataError, nearest


def check_speakers(
    table: Mapping[str, Scores], speakers: Sequence[str], heard: Sequence[str], path: Path
) -> None:
    """Everybody who is wanted has scores, and everybody in the table speaks in the data."""
    problems = [
        f"{name!r} has no scores{nearest(name, list(table))}" for name in speakers if name not in table
    ]
    known = set(heard)
    problems += [
        f"{name!r} never speaks in the training data{nearest(name, list(heard))}"
        for name in table
        if name not in known
    ]
    if problems:
        raise DataError(f"{path} does not fit the data:", problems=problems)
