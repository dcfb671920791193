"""Dialogues as CSV: one row per turn, `dialogue, turn, speaker, text, knowledge, labels, source, about`.

`turn` counts from 1. `knowledge` holds ids joined by | (or a JSON list, where an id is empty or holds a |
itself), `labels` a JSON object. What belongs to the dialogue as a whole stands in the first of its rows, in
`about`: a JSON object with its `labels`, its `knowledge`, and its `speakers` where the turns do not say them.
A dialogue without turns is a row without a turn number.

Files made elsewhere need only `dialogue, speaker, text`; columns not named above become labels of the turn.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from palaver.errors import DataError, nearest
from palaver.files import TextStream, json_object
from palaver.schema import Dialogue

COLUMNS = ("dialogue", "turn", "speaker", "text", "knowledge", "labels", "source", "about")
_ABOUT = ("speakers", "labels", "knowledge")


def write_csv(dialogues: Iterable[Dialogue], file: IO[str], delimiter: str = ",") -> int:
    """Write a header and the rows of each dialogue; how many dialogues there were."""
    # Its lines end in CR LF, which also makes it quote a text with a lone CR.
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(COLUMNS)
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):  # noqa: B007
        about = _json(_about(dialogue))
        for number, turn in enumerate(dialogue.turns, start=1):
            cells = (turn.speaker, turn.text, _join(turn.knowledge), _json(turn.labels))
            writer.writerow((dialogue.id, number, *cells, dialogue.source, about if number == 1 else ""))
        if not dialogue.turns:
            writer.writerow((dialogue.id, "", "", "", "", "", dialogue.source, about))
    return count


def _about(dialogue: Dialogue) -> dict[str, Any]:
    about: dict[str, Any] = {}
    if dialogue.speakers != tuple(dict.fromkeys(turn.speaker for turn in dialogue.turns)):
        about["speakers"] = dialogue.speakers
    if dialogue.labels:
        about["labels"] = dialogue.labels
    if dialogue.knowledge is not None:
        about["knowledge"] = [k.model_dump(mode="json", exclude_defaults=True) for k in dialogue.knowledge]
    return about


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if value else ""


def _join(ids: Sequence[str]) -> str:
    joined = "|".join(ids)
    plain = not joined.startswith("[") and _split(joined) == list(ids)
    return joined if plain else json.dumps(ids, ensure_ascii=False)


def _split(cell: str) -> list[str]:
    if not cell.startswith("["):
        return cell.split("|") if cell else []
    try:
        ids = json.loads(cell)
    except (ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list) or not all(isinstance(part, str) for part in ids):
        raise ValueError(f"knowledge: expected ids joined by |, or a JSON list of them, found {cell!r}")
    return ids


@dataclass
class _Open:
    """The dialogue whose rows are being read."""

    key: tuple[str, str]
    fields: dict[str, Any]
    next_turn: int
    places: list[int] = field(default_factory=list)


def read_csv(stream: BinaryIO, path: Path) -> Iterator[tuple[Sequence[int], dict[str, Any]]]:
    """The dialogues as plain values with the row of each turn. Rows of one dialogue stand together."""
    current: _Open | None = None
    for number, row in _rows(stream, path):
        try:
            follows = _follow(current, row)
            if follows is not current:
                if current is not None:
                    yield current.places, current.fields
                current = follows
            current.places.append(number)
            if row.get("turn") != "":
                current.fields["turns"].append(_turn(row))
                current.next_turn += 1
            elif row["speaker"] or row["text"]:
                raise ValueError("turn: expected a number, for there is a speaker or a text")
        except ValueError as error:
            raise DataError(f"{path}, row {number}: {error}") from None
    if current is not None:
        yield current.places, current.fields


def _follow(current: _Open | None, row: dict[str, str]) -> _Open:
    """The dialogue that `row` goes on with: the current one, or a new one that it begins."""
    key = row["dialogue"], row.get("source", "")
    if current is not None and (current.key != key or not current.fields["turns"]):
        current = None  # one without turns is whole with its only row
    expected = current.next_turn if current is not None else 1
    turn = _number(row["turn"]) if row.get("turn") else expected
    if current is not None and turn == expected and row.get("turn") != "":
        if row.get("about"):
            raise ValueError("about: expected nothing, for this is not the first row of its dialogue")
        return current
    if turn > 1 and row.get("turn"):
        raise ValueError(f"turn: expected {expected} of dialogue {key[0]!r}, found {turn}")
    about = _object(row, "about")
    if not about.keys() <= set(_ABOUT):
        raise ValueError(f"about: expected {', '.join(_ABOUT)}, found {', '.join(about)}")
    return _Open(key, {"id": key[0], "source": key[1], "turns": [], **about}, next_turn=turn)


def _number(cell: str) -> int:
    if not cell.isdecimal():
        raise ValueError(f"turn: expected a number, found {cell!r}")
    return int(cell)


def _turn(row: dict[str, str]) -> dict[str, Any]:
    extra = {name: cell for name, cell in row.items() if name not in COLUMNS and cell}
    return {
        "speaker": row["speaker"],
        "text": row["text"],
        "knowledge": _split(row.get("knowledge", "")),
        "labels": {**extra, **_object(row, "labels")},
    }


def _object(row: dict[str, str], name: str) -> dict[str, Any]:
    cell = row.get(name)
    if not cell:
        return {}
    try:
        return json_object(cell.encode())
    except ValueError as error:
        raise ValueError(f"{name}: expected a JSON object, found {cell!r} ({error})") from None


def _rows(stream: BinaryIO, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column name, numbered as a spreadsheet does; blank ones are passed over."""
    from palaver.tables import read_header  # brings polars, which corpora in their own layouts do without

    with TextStream(path) as peek:
        header = read_header(peek, path)
    for name in ("dialogue", "speaker", "text"):
        if name not in header.names:
            raise DataError(
                f"{path}: there is no column {name!r}{nearest(name, header.names)}",
                f"expected {', '.join(COLUMNS)}; found {', '.join(header.names)}",
            )
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    number = 0
    try:
        for number, cells in enumerate(csv.reader(text, delimiter=header.delimiter, strict=True), start=1):
            if number <= header.row or not cells:
                continue
            if len(cells) != len(header.names):
                raise DataError(
                    f"{path}, row {number}: expected {len(header.names)} fields, found {len(cells)}"
                )
            yield number, {name: cell for name, cell in zip(header.names, cells, strict=True) if name}
    except csv.Error as error:
        raise DataError(f"{path}, row {number + 1}: not a CSV row: {error}") from None
    finally:
        text.detach()
