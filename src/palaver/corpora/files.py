"""Dialogue files: JSON lines, CSV or Parquet, read and written as a stream, packed where the name says `.gz`.

JSON lines hold one `Dialogue` a line, fields left out where they have their default. The two kinds of table
are described in `palaver.corpora.csv_rows` and `palaver.corpora.parquet_rows`. What is written is read back
to equal values from each of them.

A row of the plain layout `{id, split, turns: [{s, t}]}` is read as well: `s` is the speaker, `t` the text,
and whatever else stands in the row or in a turn becomes a label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from palaver.config import dotted
from palaver.corpora.csv_rows import read_csv, write_csv
from palaver.corpora.parquet_rows import read_parquet, write_parquet
from palaver.errors import DataError
from palaver.files import (
    Encoding,
    TextStream,
    check_readable,
    detect_format,
    format_by_name,
    json_object,
    write_atomically,
)
from palaver.schema import Dialogue

Row = tuple[Sequence[int], dict[str, Any]]
"""A dialogue as it stands in a file, and where: its line or row, in a CSV the row of each turn."""


class DialogueReader(Iterator[Dialogue]):
    """Dialogues one by one. The counts are about those taken so far; no dialogue is left out."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        check_readable(self.path)
        self.format = detect_format(self.path)
        self.encoding = Encoding()
        self.n_dialogues = 0
        self.n_duplicates = 0
        """Dialogues with the id of an earlier one."""
        self._ids: set[str] = set()
        self._rows = self._read()

    def __next__(self) -> Dialogue:
        try:
            places, row = next(self._rows)
        except StopIteration:
            if not self.n_dialogues:
                raise DataError(f"{self.path}: there is no dialogue in it") from None
            raise
        dialogue = self._build(places, row)
        self.n_dialogues += 1
        self.n_duplicates += dialogue.id in self._ids
        self._ids.add(dialogue.id)
        return dialogue

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the dialogues should know about the file."""
        notes = []
        if self.n_duplicates:
            notes.append(f"{self.n_duplicates} dialogues have the id of an earlier one")
        if self.encoding.recoded_lines:
            notes.append(f"{self.encoding.recoded_lines} lines were not UTF-8 and were read as Windows-1252")
        return tuple(notes)

    def _read(self) -> Iterator[Row]:
        if self.format == "parquet":
            yield from read_parquet(self.path)
            return
        with TextStream(self.path) as stream:
            self.encoding = stream.encoding
            yield from (read_csv if self.format == "csv" else _read_json)(stream, self.path)

    def _build(self, places: Sequence[int], row: dict[str, Any]) -> Dialogue:
        try:
            return Dialogue.model_validate(_from_plain(row) if _is_plain(row) else row)
        except ValidationError as error:
            mistakes = [(mistake["loc"], mistake["msg"]) for mistake in error.errors()]
        word = "line" if self.format == "jsonl" else "row"
        problems = [
            f"{word} {_place(places, location)}: {dotted(location) or 'dialogue'}: {text}"
            for location, text in mistakes
        ]
        raise DataError(f"{self.path}, {word} {places[0]}: this is not a dialogue", problems=problems)


def _place(places: Sequence[int], location: tuple[str | int, ...]) -> int:
    match location:
        case ("turns", int(turn), *_) if len(places) > 1:
            return places[turn]
    return places[0]


def read_dialogues(path: str | Path) -> DialogueReader:
    """The dialogues of a file, one by one; after the last, `n_duplicates` and `notes` are complete."""
    return DialogueReader(path)


def write_dialogues(dialogues: Iterable[Dialogue], path: str | Path) -> int:
    """Write dialogues in the format the name's ending says; how many there were."""
    path = Path(path)
    kind = format_by_name(path)
    with write_atomically(path, "wb" if kind == "parquet" else "w") as file:
        if kind == "parquet":
            count = write_parquet(dialogues, file)
        elif kind == "csv":
            count = write_csv(dialogues, file, "\t" if ".tsv" in path.suffixes else ",")
        else:
            count = _write_json(dialogues, file)
        if not count:
            raise DataError(f"there are no dialogues to write to {path}")
    return count


def _read_json(lines: Iterable[bytes], path: Path) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                row = json_object(line)
            except ValueError as error:
                raise DataError(
                    f"{path}, line {number}: {error}", "expected one JSON object per line"
                ) from None
            yield (number,), row


def _write_json(dialogues: Iterable[Dialogue], file: IO[str]) -> int:
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):  # noqa: B007
        file.write(dialogue.model_dump_json(exclude_defaults=True) + "\n")
    return count


def _is_plain(row: dict[str, Any]) -> bool:
    turns = row.get("turns")
    if not turns or not isinstance(turns, list):
        return "split" in row
    return isinstance(turns[0], dict) and "t" in turns[0]


def _from_plain(row: dict[str, Any]) -> dict[str, Any]:
    turns = row.get("turns")
    return {
        "id": row.get("id"),
        "turns": [_plain_turn(turn) for turn in turns] if isinstance(turns, list) else turns,
        "labels": {key: _label(value) for key, value in row.items() if key not in ("id", "turns")},
    }


def _plain_turn(turn: Any) -> Any:
    if not isinstance(turn, dict):
        return turn
    labels = {key: _label(value) for key, value in turn.items() if key not in ("s", "t")}
    return {"speaker": turn.get("s"), "text": turn.get("t"), "labels": labels}


def _label(value: Any) -> Any:
    """Labels are single values; a list or an object is kept as JSON text."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
