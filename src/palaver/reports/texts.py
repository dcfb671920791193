"""What raters wrote, for the report and the terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from palaver.studies.results import Analysis, TextRow

MOST_LISTED = 200
"""Of one criterion; `results.json` has all of them."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The answers in free text to one question."""

    criterion: str
    n: int
    n_raters: int
    n_outputs: int
    repeated: tuple[tuple[str, int], ...]
    """Texts that were written more than once, the most frequent first."""
    listed: tuple[TextRow, ...]


def texts_of(analysis: Analysis, most: int = MOST_LISTED) -> list[Texts]:
    """The answers in free text by criterion, at most so many of each."""
    criteria: dict[str, list[TextRow]] = {}
    for row in analysis.texts:
        criteria.setdefault(row.criterion, []).append(row)
    return [
        Texts(
            criterion=criterion,
            n=len(rows),
            n_raters=len({row.rater for row in rows}),
            n_outputs=len({(row.item, row.system, row.turn) for row in rows}),
            repeated=tuple(_repeated(rows)),
            listed=tuple(rows[:most]),
        )
        for criterion, rows in criteria.items()
    ]


def _repeated(rows: list[TextRow]) -> list[tuple[str, int]]:
    counts = Counter(" ".join(row.text.split()).casefold() for row in rows)
    return [(text, n) for text, n in counts.most_common(5) if n > 1]
