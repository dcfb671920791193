"""The texts of a file one by one: the lines of a plain text, the turns of dialogues, or responses.

Also tables and JSON lines that have nothing but a text in each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from palaver.errors import DataError
from palaver.files import TextStream, check_readable, detect_format
from palaver.readers.dialogues import read_dialogues
from palaver.readers.responses import is_responses, read_responses
from palaver.readers.rows import RowFile
from palaver.readers.shapes import TEXT_KEYS, first_of, turn_list
from palaver.readers.turn_rows import is_exchange, is_turn_row

_TEXT_NAMES = (*TEXT_KEYS, "sentence")
_LOOK = 100
"""Rows that are looked at to tell what a file holds."""


class Text(NamedTuple):
    """What stands at one place of a file."""

    place: str
    """`line 3`, or `d1, turn 2`."""
    text: str


def read_texts(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Iterator[Text]:
    """Every text of a file, also the empty ones. `columns` are field -> name in the file."""
    path = Path(path)
    if is_plain_text(path):
        with TextStream(path) as stream:
            for number, line in enumerate(stream, start=1):
                yield Text(f"line {number}", line.decode().rstrip("\r\n"))
        return
    file = RowFile(path, columns)
    if next(file.rows(), None) is None and not file.problems:
        raise DataError(f"{path}: there is no text in it")
    if all(_is_text(row) for _, row in islice(file.rows(), _LOOK)) and not file.problems:
        for number, row in file.rows():
            name = first_of(row, _TEXT_NAMES) if isinstance(row, dict) else None
            yield Text(f"{file.word} {number}", "" if name is None else str(row[name]))
        if file.problems:
            raise file.problems.error(path, "text", file.word)
    elif is_responses(path, columns):
        for response in read_responses(path, columns=columns):
            yield Text(f"{response.id}, {response.judged_system}", response.response or "")
    else:
        for dialogue in read_dialogues(path, columns=columns):
            for number, turn in enumerate(dialogue.turns, start=1):
                yield Text(f"{dialogue.id}, turn {number}", turn.text)


def is_plain_text(path: Path) -> bool:
    """Whether a file is read line by line: `.txt`, and whatever neither its name nor its start calls data."""
    check_readable(path)
    name = path.name.lower().removesuffix(".gz")
    return detect_format(path) == "csv" and not name.endswith((".csv", ".tsv"))


def _is_text(row: Any) -> bool:
    """Whether a row has a text and is neither a turn, nor a dialogue, nor a response."""
    if not isinstance(row, dict) or is_turn_row(row) or is_exchange(row) or turn_list(row) is not None:
        return False
    return first_of(row, _TEXT_NAMES) is not None and "response" not in row
