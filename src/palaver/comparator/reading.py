"""Rated dialogues and compared pairs from files, in every shape that `palaver.readers` takes.

A response is read as the dialogue that it ends; its id names the context, which several systems may answer.

`rating`, `rater`, `group` and `system` stand beside a dialogue or among its labels; whatever else does is a
label of the dialogue and is never trained on. Every speaker is "user" or "system" afterwards. Files on
different scales are brought onto that of the first, linearly from end to end.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from palaver.comparator.training_data import SYSTEM, USER, Pairs, RatedDialogue, RatedDialogues
from palaver.errors import DataError, nearest
from palaver.readers.dialogues import read_dialogues
from palaver.readers.rating_files import iter_ratings
from palaver.readers.responses import is_responses, read_responses
from palaver.readers.roles import is_silent, with_roles, without_empty_turns
from palaver.readers.rows import Problems, RowFile, Word
from palaver.readers.shapes import known_label, other_file
from palaver.schema import Dialogue
from palaver.schema.rating import pair_context

Scale = tuple[float, float]

_HUNDRED, _SCALE_OF_THUMBS = (0.0, 100.0), (0.0, 1.0)
_SCALES = ((1.0, 5.0), (1.0, 7.0), (1.0, 10.0), _SCALE_OF_THUMBS, (0.0, 10.0), (-1.0, 1.0), _HUNDRED)
"""What an undeclared scale may be; the first that holds all ratings is taken."""
_USED = 0.8
"""Where all ratings lie below this part of an undeclared scale, it may well be another."""
_THUMBS = dict.fromkeys(("up", "thumbs up", "thumbs_up", "like", "liked", "positive", "👍"), 1.0)
_THUMBS |= dict.fromkeys(("down", "thumbs down", "thumbs_down", "dislike", "disliked", "negative", "👎"), 0.0)
_SAY_SCALE = "say which scale it is with --scale LOW HIGH"
_LARGEST = 1e12
_UNDECIDED = frozenset({"tie", "equal", "same", "neither", "both", "cannot tell", "unsure", ""})
_OUTCOMES: dict[Any, int | None] = {"win": 1, "tie": None, "loss": -1, 1.0: 1, 0.5: None, 0.0: -1}
"""What a person says of a pair, as words or as numbers."""
SILENT_NOTE = "dialogues whose system says nothing: put at the bottom by rule"
_THUMBS_NOTE = "thumbs, read as 1 (up) and 0 (down)"
NOT_ENGLISH = "dialogues that do not look English: do not believe their scores"
WORDY = (
    "dialogues whose system says far more at a time than those it learnt from: do not believe their scores"
)
_COUNTED_HERE = ("turns without text", "dialogues with the id of an earlier one")
"""Notes of the reader about what has a note or a count of its own here."""


def read_rated(
    paths: str | Path | Sequence[str | Path],
    *,
    scale: Scale | None = None,
    min_turns: int = 2,
    need_rating: bool = True,
    keep_empty: bool = False,
    columns: Mapping[str, str] | None = None,
) -> RatedDialogues:
    """The rated dialogues of one or more files. `scale` is that of all of them; else each file shows its own.

    Dialogues with fewer than `min_turns` turns, with one speaker or, where it is needed, without a rating are
    left out and counted. What is broken (no text, a rating outside the scale, an id twice) is an error that
    lists the places. `keep_empty` and `columns` are those of `RatedReader`.
    """
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not files:
        raise DataError("no file of ratings was named", "give at least one with --ratings")
    if scale is not None and not -math.inf < scale[0] < scale[1] < math.inf:
        raise DataError(f"the scale must go from a lower to a higher number, found {_span(scale)}")
    reader = RatedReader(min_turns=min_turns, need_rating=need_rating, keep_empty=keep_empty, columns=columns)
    rows: list[RatedDialogue] = []
    common_scale = scale
    of_scales = []
    for path in files:
        n_thumbs = reader.notes[_THUMBS_NOTE]
        numbered = list(reader.read(path))
        own_rows = [row for _, row in numbered]
        own_scale = _scale_of(path, numbered, reader.word, scale)
        if reader.notes[_THUMBS_NOTE] > n_thumbs and own_scale != _SCALE_OF_THUMBS:
            raise DataError(
                f"{path}: some ratings are thumbs, others numbers", "name a column with one of the two"
            )
        common_scale = common_scale or own_scale
        if need_rating and scale is None and own_scale is not None:
            of_scales += _doubt(path, own_rows, own_scale)
        if own_scale is not None and common_scale is not None and own_scale != common_scale:
            of_scales.append(
                f"{path.name}: ratings from {_span(own_scale)} brought onto {_span(common_scale)}"
            )
            own_rows = [_rescale(row, own_scale, common_scale) for row in own_rows]
        rows += own_rows
    named = ", ".join(str(path) for path in files)
    if not rows:
        needs = f"each needs at least {min_turns} turns, a user and a system"
        if need_rating:
            needs += ", and a rating"
        raise DataError(f"{named}: no dialogue can be used", needs, reader.reasons)
    ratings = {row.rating for row in rows if row.rating is not None}
    if need_rating and len(ratings) == 1:
        raise DataError(
            f"{named}: all {len(rows)} ratings are equal ({ratings.pop():g}): there is nothing to compare",
            "is this the right column?",
        )
    notes = [f"{text} ({count})" for text, count in reader.notes.items()]
    return RatedDialogues(tuple(rows), common_scale or (0.0, 1.0), dict(reader.dropped), (*notes, *of_scales))


class RatedReader:
    """Reads rated dialogues one by one, and counts those that cannot be used.

    Ids must be unique over all files it reads. Nothing is learnt from turns without text; `keep_empty` keeps
    them for those who number turns, and with them dialogues whose system says nothing. `columns` are field ->
    name in the file.
    """

    def __init__(
        self,
        *,
        min_turns: int = 2,
        need_rating: bool = False,
        keep_empty: bool = False,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self.min_turns, self.need_rating = min_turns, need_rating
        self.keep_empty, self.columns = keep_empty, columns
        self.dropped: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self.word: Word = "line"
        """What numbers count in the file that was read last: lines, rows or entries."""
        self._seen: dict[str, tuple[str, int]] = {}

    @property
    def reasons(self) -> list[str]:
        return [f"{count} {reason}" for reason, count in self.dropped.items()]

    def read(self, path: Path) -> Iterator[tuple[int, RatedDialogue]]:
        """Each usable dialogue with the number of its row; after the last, an error if any row was wrong."""
        if is_responses(path, columns=self.columns):
            yield from self._read_responses(path)
            return
        reader = read_dialogues(path, columns=self.columns, skip_bad=True)
        reader.noun = "rated dialogue" if self.need_rating else "dialogue"
        self.word = reader.file.word
        for number, dialogue in reader.numbered():
            try:
                row = self._rated(dialogue, f"{path.name}, {self.word} {number}")
            except ValueError as error:
                reader.problems.add(number, str(error))
                continue
            if row is not None:
                yield number, row
        if reader.problems:
            raise reader.error()
        self.notes.update({what: n for what, n in reader.tally.items() if what not in _COUNTED_HERE})

    def _read_responses(self, path: Path) -> Iterator[tuple[int, RatedDialogue]]:
        """Each context with its response, numbered as they come: a row may hold several."""
        reader = read_responses(path, columns=self.columns)
        self.word = "entry"
        problems = Problems()
        for number, response in enumerate(reader, start=1):
            if response.response is None:
                self.dropped["no reply"] += 1
                continue
            dialogue = response.as_dialogue()
            try:
                row = self._rated(dialogue, f"{path.name}, response {number}", name=name_of(dialogue))
            except ValueError as error:
                problems.add(number, str(error))
                continue
            if row is not None:
                yield number, row
        if problems:
            raise problems.error(path, "response", self.word, reader.expected)
        self.notes.update(reader.tally)
        if reader.systems_in_columns:
            named = ", ".join(reader.systems_in_columns)
            self.notes[f"columns that are a system each: {named}"] = len(reader.systems_in_columns)

    def _rated(self, dialogue: Dialogue, place: str, name: str = "") -> RatedDialogue | None:
        """The dialogue as it is trained on, nothing where it cannot be used; ValueError where it is wrong.

        `name` is unique where ids are not: several systems answer one context.
        """
        n_turns = len(dialogue.turns)  # empty ones count
        labels = dialogue.labels
        spoken = with_roles(without_empty_turns(dialogue), self.notes)
        n_empty = n_turns - len(spoken.turns)
        if n_empty:
            self.notes["turns without text" if self.keep_empty else "turns without text, left out"] += n_empty
        given = known_label(labels, "rating")
        row = RatedDialogue(
            spoken,
            _rating(given),
            rater=_name(known_label(labels, "rater")),
            group=_name(known_label(labels, "group")),
            system=_name(known_label(labels, "system")),
        )
        content = hash((row.dialogue.model_dump_json(), row.rating, row.rater, row.group, row.system))
        earlier, its_content = self._seen.setdefault(name or dialogue.id, (place, content))
        if its_content != content:
            raise ValueError(
                f"the id {dialogue.id!r} is already that of {earlier}, which differs: give each its own"
            )
        silent = self.keep_empty and is_silent(dialogue)
        reason = "the same row again" if earlier != place else self._unusable(row, n_turns, silent)
        if reason is not None:
            self.dropped[reason] += 1
            return None
        if silent:
            self.notes[SILENT_NOTE] += 1
        if row.rating is not None and isinstance(given, bool | str):
            self.notes[_THUMBS_NOTE] += 1
        if self.keep_empty and n_empty:
            return dataclasses.replace(row, dialogue=with_roles(dialogue))
        return row

    def _unusable(self, row: RatedDialogue, n_turns: int, silent: bool) -> str | None:
        if not n_turns:
            return "no turns"
        if n_turns < self.min_turns:
            return "one turn only" if self.min_turns == 2 else f"fewer than {self.min_turns} turns"
        if len(row.dialogue.speakers) < 2 and not silent:
            return "only one speaker"
        if set(row.dialogue.speakers) != {USER, SYSTEM} and not silent:
            return "speakers that are not a user and a system"
        if self.need_rating and row.rating is None:
            of_turns = any(known_label(turn.labels, "rating") is not None for turn in row.dialogue.turns)
            return "no rating of the whole, only of turns" if of_turns else "no rating"
        return None


def name_of(dialogue: Dialogue) -> str:
    """`ID@SYSTEM`: tells the responses of several systems to one context apart."""
    system = dialogue.labels.get("system")
    return dialogue.id if system is None else f"{dialogue.id}@{system}"


def _rating(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and value.strip().lower() in _THUMBS:
        return _THUMBS[value.strip().lower()]
    if not isinstance(value, int | float) or not abs(value) <= _LARGEST:  # true and false are 1 and 0
        raise ValueError(f"rating: expected a number (or up or down), found {value!r}")
    return float(value)


def _name(value: Any) -> str | None:
    return None if value in (None, "") else str(value)


def _scale_of(
    path: Path, numbered: list[tuple[int, RatedDialogue]], word: Word, scale: Scale | None
) -> Scale | None:
    """The scale of a file's ratings, nothing where nobody rated; an error where a rating lies outside."""
    ratings = [(number, row.rating) for number, row in numbered if row.rating is not None]
    if not ratings:
        return None
    given = [rating for _, rating in ratings]
    low, high = min(given), max(given)
    if scale is None and any("rating100" in row.dialogue.labels for _, row in numbered):
        scale = _HUNDRED
    if scale is None:
        scale = next((known for known in _SCALES if known[0] <= low and high <= known[1]), None)
    if scale is None:
        raise DataError(f"{path}: ratings go from {low:g} to {high:g}: no scale we know", _SAY_SCALE)
    problems = Problems()
    for number, rating in ratings:
        if not scale[0] <= rating <= scale[1]:
            problems.add(number, f"the rating {rating:g} is outside {_span(scale)}")
    if problems:
        raise problems.error(path, f"rating from {_span(scale)}", word, _SAY_SCALE)
    return scale


def _doubt(path: Path, rows: Sequence[RatedDialogue], scale: Scale) -> list[str]:
    """A note where nobody rates near the top of a scale that nobody declared."""
    if any("rating100" in row.dialogue.labels for row in rows):
        return []
    highest = max(row.rating for row in rows if row.rating is not None)
    if highest >= scale[0] + _USED * (scale[1] - scale[0]):
        return []
    return [f"{path.name}: no rating above {highest:g}, taken for a scale from {_span(scale)}: {_SAY_SCALE}"]


def _rescale(row: RatedDialogue, own: Scale, onto: Scale) -> RatedDialogue:
    if row.rating is None:
        return row
    share = (row.rating - own[0]) / (own[1] - own[0])
    return dataclasses.replace(row, rating=onto[0] + share * (onto[1] - onto[0]))


class _Vote(NamedTuple):
    """A comparison by rows: label 1 where `first` is better, -1 where `second` is."""

    first: int
    second: int
    label: int
    rater: str | None = None

    @property
    def better(self) -> int:
        return self.first if self.label > 0 else self.second


class _Comparison(NamedTuple):
    """One row of a file: which of two dialogues somebody called better."""

    a: str
    b: str
    label: int | None
    """1 for a, -1 for b, none where nobody could tell."""
    rater: str | None


def read_pairs(
    path: str | Path,
    index: Mapping[str, int],
    *,
    every_vote: bool = False,
    criteria: Sequence[str] | None = None,
) -> Pairs:
    """Compared pairs `{a, b, better: "a" | "b"}`, or the ratings of a pairwise study in the long format.

    `index` gives each dialogue's row by its id. In a study the id is that of the context and the system,
    ID@SYSTEM; `criteria` are those to read where it has several. Pairs that name unknown dialogues, pairs
    nobody could decide and a dialogue against itself are left out and counted; so are, unless `every_vote`
    is to count, a pair again and pairs of which both sides were called better.
    """
    file = RowFile(path)
    dropped: Counter[str] = Counter()
    unknown: dict[str, None] = {}
    votes: list[_Vote] = []
    _, first_row = next(RowFile(path).rows(), (0, None))
    is_study = isinstance(first_row, dict) and {"system", "against", "value"} <= first_row.keys()
    comparisons = _study_comparisons(Path(path), criteria, dropped) if is_study else _comparisons(file)
    for comparison in comparisons:
        strangers = [name for name in (comparison.a, comparison.b) if name not in index]
        if comparison.label is None:
            dropped["nobody could tell"] += 1
        elif strangers:
            unknown.update(dict.fromkeys(strangers))
            dropped["names a dialogue that is not there"] += 1
        elif index[comparison.a] == index[comparison.b]:
            dropped["a dialogue compared with itself"] += 1
        else:
            rows = index[comparison.a], index[comparison.b]
            votes.append(_Vote(*rows, comparison.label, comparison.rater))
    if file.problems:
        hint = 'expected one comparison a row: {"a": "d1", "b": "d2", "better": "a"}'
        if isinstance(first_row, dict) and not {"a", "b", "better"} <= first_row.keys():
            hint = "\n".join(filter(None, [hint, other_file(first_row)]))
        raise file.problems.error(file.path, "compared pair", file.word, hint)
    kept = votes if every_vote else _undisputed(votes, dropped)
    if not kept:
        reasons = [f"{count} {reason}" for reason, count in dropped.items()]
        listed = f"the dialogues are missing: {', '.join(list(unknown)[:5])} …" if unknown else ""
        response = next((name for name in index if name.rpartition("@")[0] in unknown), None)
        if response is not None:
            listed += f"\na response is named ID@SYSTEM, such as {response}"
        raise DataError(f"{path}: no compared pair can be used", listed, reasons)
    return Pairs(
        np.array([vote.first for vote in kept], np.int64),
        np.array([vote.second for vote in kept], np.int64),
        np.array([vote.label for vote in kept], np.int8),
        dict(dropped),
        tuple(unknown),
        tuple(vote.rater for vote in kept),
    )


def _comparisons(file: RowFile) -> Iterator[_Comparison]:
    """The rows `{a, b, better}` of a file; what is wrong with others is told to the file."""
    for number, row in file.rows():
        if not isinstance(row, dict):
            file.problems.add(number, f"expected a JSON object, found {type(row).__name__}")
            continue
        missing = [name for name in ("a", "b", "better") if name not in row]
        if missing:
            for name in missing:
                file.problems.add(number, f"there is no {name!r}{nearest(name, list(row))}")
            continue
        a, b, better = str(row["a"]), str(row["b"]), row["better"]
        label = None
        if better is not None and not (isinstance(better, str) and better.strip().lower() in _UNDECIDED):
            label = {a: 1, b: -1, "a": 1, "b": -1}.get(str(better))
            if label is None:
                file.problems.add(number, f"better: expected 'a' or 'b', found {better!r}")
                continue
        yield _Comparison(a, b, label, _name(known_label(row, "rater")))


def _study_comparisons(
    path: Path, criteria: Sequence[str] | None, dropped: Counter[str]
) -> Iterator[_Comparison]:
    """The choices of people in a pairwise study, in the long format."""
    seen: dict[str, None] = {}
    problems = Problems()
    for number, rating in enumerate(iter_ratings(path), start=1):
        if rating.against is None:
            dropped["a rating that compares nothing"] += 1
            continue
        if rating.kind not in ("human", "user"):
            dropped["a judgement that no person made"] += 1
            continue
        if criteria is not None and rating.criterion not in criteria:
            dropped["about another criterion"] += 1
            continue
        seen[rating.criterion] = None
        if rating.value not in _OUTCOMES:
            problems.add(number, f"value: expected win, tie or loss, found {rating.value!r}")
            continue
        context = rating.context or pair_context(rating.item, rating.system, rating.against) or rating.item
        yield _Comparison(
            f"{context}@{rating.system}",
            f"{context}@{rating.against}",
            _OUTCOMES[rating.value],
            rating.rater,
        )
    if problems:
        raise problems.error(path, "choice of a pairwise study", "entry", "see palaver study export")
    absent = [name for name in criteria or () if name not in seen]
    if absent:
        raise DataError(f"{path}: nobody compared by {', '.join(absent)}")
    if criteria is None and len(seen) > 1:
        raise DataError(
            f"{path} compares by several criteria: {', '.join(seen)}", "say which with --criteria"
        )


def _undisputed(votes: Sequence[_Vote], dropped: Counter[str]) -> list[_Vote]:
    """Each pair once, and only where all who compared it agree."""
    by_pair: dict[tuple[int, int], list[_Vote]] = {}
    for vote in votes:
        pair = (min(vote.first, vote.second), max(vote.first, vote.second))
        by_pair.setdefault(pair, []).append(vote)
    kept: list[_Vote] = []
    for same_pair in by_pair.values():
        if len({vote.better for vote in same_pair}) > 1:
            dropped["contradicts another comparison of the same pair"] += len(same_pair)
            continue
        if len(same_pair) > 1:
            dropped["the same comparison again"] += len(same_pair) - 1
        kept.append(same_pair[0])
    return kept


def _span(scale: Scale) -> str:
    return f"{scale[0]:g} to {scale[1]:g}"
