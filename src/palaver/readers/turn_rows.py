"""Dialogues whose turns are rows: tables with one turn a row, read and written, and ParlAI's exchanges."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from palaver.files import json_object
from palaver.readers.shapes import (
    FIELDS,
    ID_KEYS,
    REMARKS,
    SPEAKER_KEYS,
    TEXT_KEYS,
    TURN_LISTS,
    Tally,
    as_name,
    first_key,
    is_scalar,
    is_turn,
    is_turns,
    json_list,
    labels_of,
    turn_list,
)
from palaver.schema import Dialogue
from palaver.schema.response import SYSTEM, USER

COLUMNS = ("dialogue", "turn", "speaker", "text", "knowledge", "labels", "source", "about")
ABOUT = ("speakers", "labels", "knowledge")
_DIALOGUE_KEYS = (
    *("dialogue", *ID_KEYS[1:], "dialog", "conversation"),
    *("session_id", "thread_id", "chat_id", "ticket_id"),
)
_INTERNAL = {"public": "false", "is_public": "false", "internal": "true", "is_internal": "true"}
"""Columns of help desks, and what they say of a message that nobody outside has seen."""
_COLUMNS_OF_TURNS = frozenset(
    (*_DIALOGUE_KEYS, *SPEAKER_KEYS, *TEXT_KEYS, *FIELDS["system"], *FIELDS["rating"], *_INTERNAL)
)
_OF_DIALOGUES = (*FIELDS, "split")
"""Further columns about the whole dialogue, where all its rows that are not empty agree."""
_ANSWERS = ("response", "output", "answer")


@dataclass
class Draft:
    """A dialogue as plain values, and where it stands: its row, or the row of each of its turns."""

    places: list[int]
    fields: dict[str, Any]
    is_whole: bool = False
    """Whether no further row can belong to it."""
    row: Any = None
    """The row of a whole dialogue; the same object as `fields` where it looks like ours."""
    key: tuple[str, str] | None = None
    is_numbered: bool = False
    """Whether there is a column that says which turn a row is."""
    next_turn: int = 1
    extras: list[dict[str, Any]] = field(default_factory=list)
    """Further columns of each turn."""

    def place_of(self, location: Sequence[str | int]) -> int:
        """The row of whatever the check of the noun found at `location`."""
        match location:
            case ("turns", int(turn), *_) if turn < len(self.places):
                return self.places[turn]
        return self.places[0]

    def closed(self, tally: Tally) -> Draft:
        """Itself, when no more rows come: further columns become labels of the turns, or of the dialogue."""
        labels = {}
        for name in _OF_DIALOGUES:
            values = [extra[name] for extra in self.extras if extra.get(name) is not None]
            if not values or any(value != values[0] for value in values):
                continue
            if name == "rating" and len(values) < len(self.extras):
                if not self._rated_at_an_end(len(values)):
                    continue
                tally["ratings in one row of a dialogue, taken for the whole of it"] += 1
            labels[name] = values[0]
        for extra, turn in zip(self.extras, self.fields["turns"], strict=False):
            own = {name: value for name, value in extra.items() if name not in labels}
            if own:
                turn["labels"] = {**own, **turn["labels"]}
        if labels:
            self.fields["labels"] = {**labels, **self.fields.get("labels", {})}
        return self

    def _rated_at_an_end(self, n_rated: int) -> bool:
        """Whether a rating stands in the first or the last row alone; elsewhere it is about a turn."""
        first_and_last = (self.extras[0], self.extras[-1])
        return n_rated == 1 and any(extra.get("rating") is not None for extra in first_and_last)


def with_plain_names(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table with `Ticket ID` as `ticket_id`, `Model` as `model`, where no column is called so."""
    plain = {name: re.sub(r"[\s-]+", "_", name.strip().lower()) for name in row}
    known = {name: short for name, short in plain.items() if short in _COLUMNS_OF_TURNS and short not in row}
    return {known.get(name, name): cell for name, cell in row.items()} if known else row


def is_turn_row(row: Any) -> bool:
    """Whether a row names its dialogue, a speaker and a text."""
    if not isinstance(row, dict):
        return False
    dialogue, text = first_key(row, _DIALOGUE_KEYS), first_key(row, TEXT_KEYS)
    if dialogue is None or text is None or first_key(row, SPEAKER_KEYS) is None:
        return False
    if not all(is_scalar(row[name]) or row[name] is None for name in (dialogue, text)):
        return False
    if text in REMARKS and _has_content(row):
        return False
    # A whole dialogue may well have a summary called `text`, and a table has its turns as JSON text.
    return turn_list(row) is None and not any(_holds_turns(row[name]) for name in row if name != text)


def is_internal(row: dict[str, Any]) -> bool:
    """Whether a row is a note that a help desk kept to itself."""
    if "turn" in row:  # numbered turns have no gaps
        return False
    return any(str(row.get(name)).strip().lower() == mark for name, mark in _INTERNAL.items())


def _has_content(row: dict[str, Any]) -> bool:
    """Whether a row has an answer, or a dialogue as JSON text, be its turns texts alone."""
    has_answer = any(name in row for name in _ANSWERS)
    return has_answer or any(is_turns(json_list(row.get(name))) for name in TURN_LISTS)


def _holds_turns(cell: Any) -> bool:
    """Whether a cell of a table is a list of turns, each with a speaker and a text."""
    turns = json_list(cell)
    return turns is not None and len(turns) > 0 and all(map(is_turn, turns))


def is_exchange(row: Any) -> bool:
    """Whether a row has a text and the replies that would be right, as in ParlAI."""
    if not isinstance(row, dict) or "turns" in row or not isinstance(row.get("text"), str):
        return False
    return isinstance(row.get("labels", row.get("eval_labels")), list)


def add_exchange(current: Draft | None, number: int, row: dict[str, Any], tally: Tally) -> Draft:
    """The draft that goes on with the row: an episode ends where a row says so, or says nothing."""
    draft = current if current is not None and not current.is_whole else None
    if draft is None:
        taken = {"text", "labels", "eval_labels", "episode_done", "id"}
        draft = Draft([], {"turns": [], "labels": labels_of({**row, "labels": {}}, taken)})
    replies = [reply for reply in row.get("labels") or row.get("eval_labels") or () if isinstance(reply, str)]
    draft.fields["turns"].append({"speaker": str(row.get("id") or USER), "text": row["text"]})
    draft.places.append(number)
    if replies:
        draft.fields["turns"].append({"speaker": SYSTEM, "text": replies[0]})
        draft.places.append(number)
    if len(replies) > 1:
        tally["replies besides the first of an exchange, left out"] += len(replies) - 1
    draft.is_whole = row.get("episode_done") is not False
    return draft


def add_turn(current: Draft | None, number: int, row: dict[str, Any]) -> Draft:
    """The draft that the row goes on with: the current one, or a new one that it begins."""
    draft = _follow(current, row)
    has_turn = row.get("turn") != ""
    speaker, text = _cell(row, SPEAKER_KEYS), _cell(row, TEXT_KEYS)
    if not has_turn and (speaker or text):
        raise ValueError("turn: expected a number, for there is a speaker or a text")
    if has_turn:
        turn = {
            "speaker": as_name(speaker),
            "text": text,
            "knowledge": _ids(row.get("knowledge")),
            "labels": _object(row, "labels"),
        }
        draft.fields["turns"].append(turn)
        taken = {
            *COLUMNS,
            *(first_key(row, keys) or "" for keys in (_DIALOGUE_KEYS, SPEAKER_KEYS, TEXT_KEYS)),
        }
        further = {name: value for name, value in row.items() if value != "" and name != "labels"}
        draft.extras.append(labels_of(further, taken))
        draft.next_turn += 1
    draft.places.append(number)
    return draft


def _follow(current: Draft | None, row: dict[str, Any]) -> Draft:
    key = str(as_name(_cell(row, _DIALOGUE_KEYS))), str(row.get("source") or "")
    if current is not None and (current.key != key or not current.fields["turns"]):
        current = None  # one without turns is whole with its only row
    expected = current.next_turn if current is not None else 1
    has_number = row.get("turn") not in (None, "")
    turn = _number(row["turn"]) if has_number else expected
    if current is not None and turn == expected and row.get("turn") != "":
        if row.get("about"):
            raise ValueError("about: expected nothing, for this is not the first row of its dialogue")
        return current
    if turn > 1 and has_number:
        raise ValueError(f"turn: expected {expected} of dialogue {key[0]!r}, found {turn}")
    about = _object(row, "about")
    if not about.keys() <= set(ABOUT):
        raise ValueError(f"about: expected {', '.join(ABOUT)}, found {', '.join(about)}")
    return Draft(
        [],
        {"id": key[0], "source": key[1], "turns": [], **about},
        key=key,
        is_numbered="turn" in row,
        next_turn=turn,
    )


def _cell(row: dict[str, Any], names: Sequence[str]) -> Any:
    value = row[first_key(row, names) or names[0]]
    return "" if value is None else value


def _number(cell: Any) -> int:
    text = str(as_name(cell))
    if not text.isdecimal():
        raise ValueError(f"turn: expected a number, found {cell!r}")
    return int(text)


def _ids(cell: Any) -> list[str]:
    """Ids joined by |, or a JSON list of them."""
    if isinstance(cell, list) or not cell:
        return cell or []
    if not cell.startswith("["):
        return str(cell).split("|")
    ids = json_list(cell)
    if ids is None or not all(isinstance(part, str) for part in ids):
        raise ValueError(f"knowledge: expected ids joined by |, or a JSON list of them, found {cell!r}")
    return ids


def _join_ids(ids: Sequence[str]) -> str:
    """The cell that `_ids` reads back."""
    joined = "|".join(ids)
    if not joined.startswith("[") and _ids(joined) == list(ids):
        return joined
    return json.dumps(ids, ensure_ascii=False)


def _object(row: dict[str, Any], name: str) -> dict[str, Any]:
    cell = row.get(name)
    if not cell:
        return {}
    if isinstance(cell, dict):
        return cell
    try:
        return json_object(str(cell).encode())
    except ValueError as error:
        raise ValueError(f"{name}: expected a JSON object, found {cell!r} ({error})") from None


def write_csv(dialogues: Iterable[Dialogue], file: IO[str], delimiter: str = ",") -> int:
    """Write a header and the rows of each dialogue; how many dialogues there were."""
    # Its lines end in CR LF, which also makes it quote a text with a lone CR.
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(COLUMNS)
    count = 0
    for count, dialogue in enumerate(dialogues, start=1):  # noqa: B007
        about = _json(_about(dialogue))
        for number, turn in enumerate(dialogue.turns, start=1):
            cells = (turn.speaker, turn.text, _join_ids(turn.knowledge), _json(turn.labels))
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
