"""Rated dialogues and compared pairs as they come: JSON lines, packed or not.

Two layouts of a rated dialogue are read. `Dialogue` rows hold `rating`, `rater`, `group`, `system` beside the
dialogue's own fields or among its labels. Rows of the chat exports hold turns of `{spk, text}`, `rating` or
`rating100`, `worker` or `user`, `hit`, `bot`. Whatever else a row holds becomes a label of the dialogue and
is never trained on.

Every speaker is "user" or "system" afterwards. Files on different scales are brought onto that of the first,
linearly from end to end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from palaver.comparator.training_data import SYSTEM, USER, Pairs, RatedDialogue, RatedDialogues
from palaver.config import dotted
from palaver.errors import DataError, nearest
from palaver.files import TextStream, json_object
from palaver.schema import Dialogue

_ROLES = dict.fromkeys(("user", "human", "person", "customer", "you", "chatter"), USER)
_ROLES |= dict.fromkeys(("system", "bot", "chatbot", "assistant", "agent", "robot"), SYSTEM)
_FIELDS = {
    "rating": ("rating", "rating100"),
    "rater": ("rater", "worker", "user"),
    "group": ("group", "hit", "sitting"),
    "system": ("system", "bot"),
}
_SCALES = ((1.0, 5.0), (1.0, 7.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
"""What an undeclared scale may be; the first that holds all ratings is taken."""
_LISTED = 40
_LARGEST = 1e12
_UNDECIDED = frozenset({"tie", "equal", "same", "neither", "both", "cannot tell", "unsure", ""})

_OWN = frozenset(Dialogue.model_fields)


def read_rated(
    paths: str | Path | Sequence[str | Path],
    *,
    scale: tuple[float, float] | None = None,
    min_turns: int = 2,
    need_rating: bool = True,
) -> RatedDialogues:
    """The rated dialogues of one or more files. `scale` is that of all of them; else each file shows its own.

    Dialogues with fewer than `min_turns` turns, with one speaker or, where it is needed, without a rating are
    left out and counted. What is broken (no JSON, no text, a rating outside the scale, an id twice) is an
    error that lists every such line of a file.
    """
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not files:
        raise DataError("no file of ratings was named", "give at least one with --ratings")
    if scale is not None and not (
        math.isfinite(scale[0]) and math.isfinite(scale[1]) and scale[0] < scale[1]
    ):
        raise DataError(
            f"the scale must go from a lower to a higher number, found {scale[0]:g} to {scale[1]:g}"
        )
    rows: list[RatedDialogue] = []
    seen: dict[str, tuple[str, RatedDialogue]] = {}
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    onto: tuple[float, float] | None = scale
    for path in files:
        found, own = RatedFile(path, scale, min_turns, need_rating, seen, dropped, notes).read()
        if own is None:  # nobody rated anything in it
            rows += found
            continue
        onto = onto or own
        if own != onto:
            notes[f"{path.name}: ratings from {_span(own)} brought onto {_span(onto)}"] = 0
            found = [_rescaled(row, own, onto) for row in found]
        rows += found
    reasons = [f"{count} {reason}" for reason, count in dropped.items()]
    named = ", ".join(str(path) for path in files)
    if not rows:
        hint = f"each needs at least {min_turns} turns, two speakers" + (" and a rating" * need_rating)
        raise DataError(f"{named}: no dialogue can be used", hint, reasons)
    given = {row.rating for row in rows if row.rating is not None}
    if need_rating and len(given) == 1:
        value = next(iter(given))
        raise DataError(
            f"{named}: all {len(rows)} ratings are equal ({value:g}): there is nothing to compare",
            "is this the right column?",
        )
    told = tuple(f"{text} ({count})" if count else text for text, count in notes.items())
    return RatedDialogues(tuple(rows), onto or (0.0, 1.0), dict(dropped), told)


class RatedFile:
    """One file being read: every problem is kept until the end."""

    def __init__(
        self,
        path: Path,
        scale: tuple[float, float] | None,
        min_turns: int,
        need_rating: bool,
        seen: dict[str, tuple[str, RatedDialogue]],
        dropped: Counter[str],
        notes: Counter[str],
    ) -> None:
        self.path, self.scale, self.min_turns, self.need_rating = path, scale, min_turns, need_rating
        self.seen, self.dropped, self.notes = seen, dropped, notes
        self.problems: list[str] = []
        self.of_hundred = False
        self.lines: list[int] = []

    def read(self) -> tuple[list[RatedDialogue], tuple[float, float] | None]:
        """The usable rows and the file's own scale, if anything in it is rated."""
        rows = [row for number, line in _lines(self.path, self.problems) if (row := self.parse(number, line))]
        values = [row.rating for row in rows if row.rating is not None]
        own = self._scale(values) if values else None
        if own is not None:
            for number, row in zip(self.lines, rows, strict=True):
                if row.rating is not None and not own[0] <= row.rating <= own[1]:
                    self.problems.append(f"line {number}: the rating {row.rating:g} is outside {_span(own)}")
        if self.problems:
            raise DataError(
                f"{self.path}: {these_lines(len(self.problems))}", problems=first_of(self.problems)
            )
        return rows, own

    def parse(self, number: int, row: dict[str, Any]) -> RatedDialogue | None:
        place = f"line {number}"
        labels = found if isinstance(found := row.get("labels"), dict) else {}
        given = {what: self._given(row, labels, names) for what, names in _FIELDS.items()}
        wrong = len(self.problems)
        rating = self._rating(given["rating"], place)
        dialogue = self._dialogue(row, place)
        if dialogue is None or len(self.problems) > wrong:
            return None
        others = {
            what: None if given[what] in (None, "") else str(given[what])
            for what in ("rater", "group", "system")
        }
        rated = RatedDialogue(dialogue, rating, **others)
        earlier = self.seen.get(dialogue.id)
        if earlier is not None:
            if earlier[1] == rated:
                self.dropped["the same row again"] += 1
            else:
                self.problems.append(f"{place}: the id {dialogue.id!r} is already that of {earlier[0]}")
            return None
        self.seen[dialogue.id] = (f"{self.path.name}, {place}", rated)
        if reason := self._unusable(rated, len(row["turns"])):
            self.dropped[reason] += 1
            return None
        self.lines.append(number)
        return rated

    @staticmethod
    def _given(row: dict[str, Any], labels: dict[str, Any], names: tuple[str, ...]) -> Any:
        places = ((place, name) for name in names for place in (row, labels))
        return next((place[name] for place, name in places if place.get(name) is not None), None)

    def _rating(self, value: Any, place: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
            self.problems.append(f"{place}: rating: expected a number, found {value!r}")
            return None
        return float(value)

    def _scale(self, values: Sequence[float]) -> tuple[float, float]:
        if self.scale is not None:
            return self.scale
        low, high = min(values), max(values)
        known = _SCALES[-1:] if self.of_hundred else _SCALES
        for scale in known:
            if scale[0] <= low and high <= scale[1]:
                return scale
        if self.of_hundred:
            return _SCALES[-1]
        self.problems.append(
            f"ratings go from {low:g} to {high:g}: no scale we know; say which it is (scale)"
        )
        return low, high

    def _dialogue(self, row: dict[str, Any], place: str) -> Dialogue | None:
        self.of_hundred |= "rating100" in row
        turns = row.get("turns")
        if not isinstance(turns, list):
            self.problems.append(f"{place}: there are no turns{nearest('turns', list(row))}")
            return None
        fields = {key: value for key, value in row.items() if key in _OWN}
        free = {key: value for key, value in row.items() if key not in _OWN}
        fields["turns"] = [_turn(turn) for turn in turns]
        own = fields.get("labels") or {}
        fields["labels"] = _scalars(free) | own if isinstance(own, dict) else own
        fields.setdefault("source", str(row.get("src") or ""))
        if isinstance(fields.get("id"), int):
            fields["id"] = str(fields["id"])
        spoken = [turn for turn in fields["turns"] if not _is_empty(turn)]
        if len(spoken) < len(turns):
            self.notes["turns without text, left out"] += len(turns) - len(spoken)
        fields["turns"] = self._with_roles(spoken)
        fields.pop("speakers", None)
        try:
            return Dialogue.model_validate(fields)
        except ValidationError as error:
            found = [f"{dotted(e['loc']) or 'dialogue'}: {e['msg']}" for e in error.errors()]
            self.problems += [f"{place}: {text}" for text in found]
            return None

    def _with_roles(self, turns: list[Any]) -> list[Any]:
        """Speakers as user and system: by name, or by who is left, or by who spoke first."""
        names = list(dict.fromkeys(t["speaker"] for t in turns if isinstance(t, dict) and "speaker" in t))
        if not all(isinstance(name, str) and name for name in names):
            return turns  # the dialogue's own check says what is wrong
        roles = {name: _ROLES[name.lower()] for name in names if name.lower() in _ROLES}
        left = [name for name in names if name not in roles]
        if left and len(names) <= 2:
            free = [role for role in (USER, SYSTEM) if role not in roles.values()] or [SYSTEM]
            roles |= dict(zip(left, free, strict=False))
            if len(left) == 2:
                self.notes["dialogues whose first speaker was taken for the user"] += 1
        return [
            {**t, "speaker": roles.get(t["speaker"], t["speaker"])} if isinstance(t, dict) else t
            for t in turns
        ]

    def _unusable(self, rated: RatedDialogue, n_turns: int) -> str | None:
        dialogue = rated.dialogue
        if n_turns < self.min_turns:
            return "one turn only" if self.min_turns == 2 else f"fewer than {self.min_turns} turns"
        if len(dialogue.speakers) < 2:
            return "only one speaker"
        if set(dialogue.speakers) != {USER, SYSTEM}:
            return "speakers that are not a user and a system"
        if self.need_rating and rated.rating is None:
            return "no rating"
        return None


def read_pairs(path: str | Path, index: Mapping[str, int]) -> Pairs:
    """Compared pairs `{a, b, better: "a" | "b"}`; `index` gives each dialogue's row by its id.

    Pairs that name unknown dialogues, pairs nobody could decide, a dialogue against itself, a pair again and
    pairs of which both sides were called better are left out and counted.
    """
    path = Path(path)
    problems: list[str] = []
    dropped: Counter[str] = Counter()
    unknown: dict[str, None] = {}
    votes: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for number, row in _lines(path, problems):
        a, b, better = row.get("a"), row.get("b"), row.get("better")
        missing = [name for name in ("a", "b", "better") if name not in row]
        if missing:
            problems += [f"line {number}: there is no {n!r}{nearest(n, list(row))}" for n in missing]
            continue
        if better is None or (isinstance(better, str) and better.strip().lower() in _UNDECIDED):
            dropped["nobody could tell"] += 1
            continue
        side = {str(a): 1, str(b): -1, "a": 1, "b": -1}.get(str(better))
        if side is None:
            problems.append(f"line {number}: better: expected 'a' or 'b', found {better!r}")
            continue
        strangers = [str(name) for name in (a, b) if str(name) not in index]
        if strangers:
            unknown.update(dict.fromkeys(strangers))
            dropped["names a dialogue that is not there"] += 1
        elif a == b:
            dropped["a dialogue compared with itself"] += 1
        else:
            i, j = index[str(a)], index[str(b)]
            votes.setdefault((min(i, j), max(i, j)), []).append((i, j, side))
    if problems:
        raise DataError(f"{path}: {these_lines(len(problems))}", problems=first_of(problems))
    kept: list[tuple[int, int, int]] = []
    for found in votes.values():
        if len({i if side > 0 else j for i, j, side in found}) > 1:
            dropped["contradicts another comparison of the same pair"] += len(found)
            continue
        if len(found) > 1:
            dropped["the same comparison again"] += len(found) - 1
        kept.append(found[0])
    if not kept:
        reasons = [f"{count} {reason}" for reason, count in dropped.items()]
        listed = f"the dialogues are missing: {', '.join(list(unknown)[:5])} …" if unknown else ""
        raise DataError(f"{path}: no compared pair can be used", listed, reasons)
    first, second, label = (np.array(column) for column in zip(*kept, strict=True))
    return Pairs(
        first.astype(np.int64), second.astype(np.int64), label.astype(np.int8), dict(dropped), tuple(unknown)
    )


def _lines(path: Path, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    with TextStream(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    row = json_object(line)
                except ValueError as error:
                    problems.append(f"line {number}: {error}")
                    continue
                yield number, row


def _turn(turn: Any) -> Any:
    if not isinstance(turn, dict) or ("spk" not in turn and "s" not in turn):
        return turn
    speaker, text = ("spk", "text") if "spk" in turn else ("s", "t")
    labels = _scalars({key: value for key, value in turn.items() if key not in (speaker, text)})
    return {"speaker": turn[speaker], "text": turn.get(text), "labels": labels}


def _scalars(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))
    }


def _is_empty(turn: Any) -> bool:
    return isinstance(turn, dict) and isinstance(turn.get("text"), str) and not turn["text"].strip()


def _rescaled(row: RatedDialogue, own: tuple[float, float], onto: tuple[float, float]) -> RatedDialogue:
    if row.rating is None:
        return row
    share = (row.rating - own[0]) / (own[1] - own[0])
    return RatedDialogue(
        row.dialogue, onto[0] + share * (onto[1] - onto[0]), row.rater, row.group, row.system
    )


def _span(scale: tuple[float, float]) -> str:
    return f"{scale[0]:g} to {scale[1]:g}"


def these_lines(count: int) -> str:
    return "this is wrong" if count == 1 else f"these {count} things are wrong"


def first_of(problems: list[str]) -> list[str]:
    rest = len(problems) - _LISTED
    return [*problems[:_LISTED], f"… and {rest} more"] if rest > 0 else problems
