"""Dialogues as CSV: one row per turn, `dialogue, turn, speaker, text, knowledge, labels, source, about`.

`turn` counts from 1. `knowledge` holds ids joined by | (or a JSON list, where an id is empty or holds a | itself),
`labels` a JSON object. What belongs to the dialogue as a whole stands in the first of its rows, in `about`: a
JSON object with its `labels`, its `knowledge`, and its `speakers` where the turns do not say them. A dialogue
without turns is a row without a turn number.

Files made elsewhere need only `dialogue, speaker, text`; columns not named above become labels of the turn.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

from palaver.errors import DataError, nearest
from palaver.files import TextStream
from palaver.schema import Dialogue
from palaver.tables import read_header

COLUMNS = ("dialogue", "turn", "speaker", "text", "knowledge", "labels", "source", "about")
_ABOUT = ("speakers", "labels", "knowledge")


def write_csv(dialogues: Iterable[Dialogue], file: IO[str]) -> int:
    """Write a header and the rows of each dialogue; how many dialogues there were."""
    writer = csv.writer(file)  # ends lines in CR LF, which also makes it quote a text with a lone CR
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
    return joined if _split(joined) == list(ids) else json.dumps(ids, ensure_ascii=False)


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


def read_csv(stream: BinaryIO, path: Path) -> Iterator[tuple[Sequence[int], dict[str, Any]]]:
    """The dialogues as plain values with the row of each turn. Rows of one dialogue stand together."""
    places: list[int] = []
    dialogue: dict[str, Any] = {}
    last = 0
    for number, row in _rows(stream, path):
        try:
            turn = _turn_number(row)
            key = {"id": row["dialogue"], "source": row.get("source", "")}
            goes_on = dialogue.items() >= key.items() and turn in (None, last + 1) and last > 0
            if not goes_on:
                if turn is not None and turn > 1:
                    same = dialogue.items() >= key.items()
                    raise ValueError(f"expected turn {last + 1 if same else 1}, found {turn}")
                if places:
                    yield places, dialogue
                places, dialogue = [], {**key, "turns": [], **_object(row, "about", _ABOUT)}
            places.append(number)
            ...
        except ValueError as error:
            raise DataError(f"{path}, row {number}: {error}") from None
    if places:
        yield places, dialogue
