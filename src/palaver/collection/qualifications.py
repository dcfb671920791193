"""What a platform says of its people, from a table that the owner gives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from palaver.collection.records import Person
from palaver.collection.standards import Qualification
from palaver.errors import DataError
from palaver.readers.rows import RowFile

COLUMNS = tuple(Qualification.model_fields)
"""approved: tasks that were approved; approval_rate: their share, as 0.99 or 99 %."""


def with_qualifications(people: Sequence[Person], path: Path) -> list[Person]:
    """People with what the table says of them: rows with `participant`, the platform's id or ours."""
    by_name: dict[str, dict[str, float]] = {}
    problems: list[str] = []
    for number, row in RowFile(path).rows():
        if not isinstance(row, dict) or "participant" not in row or not set(COLUMNS) & row.keys():
            raise DataError(
                f"{path} says nothing of people", f"expected the columns participant, {', '.join(COLUMNS)}"
            )
        values: dict[str, float] = {}
        for name in COLUMNS:
            text = str(row.get(name) or "").strip()
            if text:
                try:
                    values[name] = _number(name, text)
                except ValueError as error:
                    problems.append(f"row {number}: {name}: {error}")
        by_name[str(row["participant"])] = values
    if problems:
        raise DataError(f"{path}: some of it cannot be read", problems=problems)
    known = [by_name.get(person.external or "") or by_name.get(person.id) for person in people]
    if by_name and not any(known):
        raise DataError(f"nobody in {path} took part", "participant is the platform's id, or ours")
    return [
        person.model_copy(update={"qualifications": values}) if values else person
        for person, values in zip(people, known, strict=True)
    ]


def _number(name: str, text: str) -> float:
    is_percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError(f"expected a number, found {text!r}") from None
    value = value / 100 if is_percent else value
    if name == "approval_rate" and not 0 <= value <= 1:
        raise ValueError(f"expected a share such as 0.99 or 99%, found {text!r}")
    return value
