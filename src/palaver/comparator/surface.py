"""Surface features of a dialogue: lengths, repetition, questions, and what users say when a system fails.

They need no model and see only the turns, normalised. Every feature is a mean, a share or an extreme over the
turns of a role, so that dialogues of any length compare. A turn is read once (`read_turn`); without
one of its turns a dialogue costs no second reading.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_END = re.compile(r"[.?!]+")
_LISTS = tomllib.loads(Path(__file__).with_name("surface_words.toml").read_text(encoding="utf-8"))
_BACKCHANNEL, _GREETING = (frozenset(_LISTS[name].split()) for name in ("backchannel", "greeting"))
_CATEGORIES = {name: frozenset(words.split()) for name, words in _LISTS["categories"].items()}
_NAMES = tuple(_CATEGORIES)
_PRESENCE = tuple(enumerate(_NAMES[:4]))
"""Of these the share of turns that hold one counts too."""
_IN: dict[str, tuple[int, ...]] = {
    word: tuple(i for i, name in enumerate(_NAMES) if word in _CATEGORIES[name])
    for word in frozenset().union(*_CATEGORIES.values())
}
_N_CATEGORIES = len(_NAMES)
_FUNCTION = _CATEGORIES["function"]
_NOT = _CATEGORIES["negation"]
_FIRST = _CATEGORIES["first_person"]


class Marks(NamedTuple):
    """What a turn's characters show; the means over a role's turns are features by these names."""

    question: float
    exclaim: float
    commas: float
    stopped: float
    sentences: float


class TurnSurface(NamedTuple):
    """A turn taken apart once."""

    is_user: bool
    words: list[str]
    key: str
    pairs: frozenset[tuple[str, str]]
    content: frozenset[str]
    counts: tuple[int, ...]  # of each category
    within: float  # share of its words that it says again
    marks: Marks
    n_letters: int
    n_digits: int
    has_unknown: bool  # a word that a system writes for one it does not know


def read_turn(is_user: bool, text: str) -> TurnSurface:
    """Take apart a turn whose text has been normalised (`text.normalisation`)."""
    words = _WORD.findall(text)
    counts = [0] * _N_CATEGORIES
    for word in words:
        if word in _IN:
            for i in _IN[word]:
                counts[i] += 1
    marks = Marks(
        question="?" in text,
        exclaim="!" in text,
        commas=text.count(","),
        stopped=text[-1:] in {".", "?", "!"},
        sentences=len(_END.findall(text)),
    )
    return TurnSurface(
        is_user,
        words,
        key=" ".join(words),
        pairs=frozenset(pairwise(words)),
        content=frozenset(words) - _FUNCTION,
        counts=tuple(counts),
        within=1 - len(set(words)) / len(words) if words else 0.0,
        marks=marks,
        n_letters=sum(map(len, words)),
        n_digits=sum(word[0].isdigit() for word in words) if any(map(str.isdigit, text)) else 0,
        has_unknown="unk" in words,
    )


def surface_features(dialogues: Sequence[Sequence[TurnSurface]]) -> NDArray[np.float32]:
    """(N, F) the features of dialogues whose turns have been read, in the order of `FEATURES`."""
    if not dialogues:
        return np.zeros((0, len(FEATURES)), np.float32)
    return np.array([list(_features(turns).values()) for turns in dialogues], dtype=np.float32)


def _features(turns: Sequence[TurnSurface]) -> dict[str, float]:
    """Every feature by its name; their order is that of a trained comparator's weights."""
    system = [turn for turn in turns if not turn.is_user]
    user = [turn for turn in turns if turn.is_user]
    of_system, of_user = _role(system), _role(user)
    return {
        **{f"system_{name}": value for name, value in of_system.items()},
        **{f"user_{name}": value for name, value in of_user.items()},
        "turns": len(turns),
        "length_ratio": math.log((of_system["length"] + 1) / (of_user["length"] + 1)),
        **_exchange(turns),
        "shared_content": _shared_content(system, user),
    }


def _role(turns: Sequence[TurnSurface]) -> dict[str, float]:
    """The features of one role; all are 0 where it says nothing."""
    if not turns:
        return dict.fromkeys(_role([_NOTHING]), 0.0)
    m = len(turns)
    lengths = [len(turn.words) for turn in turns]
    total = sum(lengths)
    mean = total / m
    half = m // 2
    n = max(1, total)
    marks = Marks(*(sum(column) / m for column in zip(*(turn.marks for turn in turns), strict=True)))
    counts = [sum(column) for column in zip(*(turn.counts for turn in turns), strict=True)]
    return {
        "length": mean,
        "length_sd": math.sqrt(max(0.0, sum(k * k for k in lengths) / m - mean * mean)),
        "length_min": min(lengths),
        "length_max": max(lengths),
        "length_log": sum(map(math.log1p, lengths)) / m,
        "length_trend": sum(lengths[half:]) / (m - half) - sum(lengths[:half]) / half if half else 0.0,
        "length_last": sum(lengths[-2:]) / len(lengths[-2:]),
        "short": sum(k <= 2 for k in lengths) / m,
        "word_length": sum(turn.n_letters for turn in turns) / n,
        **_repeats(turns, n),
        "repeat_within": sum(turn.within for turn in turns) / m,
        "repeat_within_max": max(turn.within for turn in turns),
        **marks._asdict(),
        "digits": sum(turn.n_digits for turn in turns) / n,
        "unknown": sum(turn.has_unknown for turn in turns) / m,
        "backchannel": sum(bool(turn.words) and _BACKCHANNEL.issuperset(turn.words) for turn in turns) / m,
        "greets_late": sum(map(_greets, turns[1:])) / max(1, m - 1),
        "does_not_know": sum("know" in t.words and not _NOT.isdisjoint(t.words) for t in turns) / m,
        "short_question": sum(bool(turn.marks.question) and len(turn.words) <= 3 for turn in turns) / m,
        **{name: count / n for name, count in zip(_NAMES, counts, strict=True)},
        **{f"{name}_turns": sum(turn.counts[i] > 0 for turn in turns) / m for i, name in _PRESENCE},
    }


def _greets(turn: TurnSurface) -> bool:
    return bool(turn.words) and (turn.words[0] in _GREETING or turn.key.startswith("how are you"))


def _repeats(turns: Sequence[TurnSurface], n_words: int) -> dict[str, float]:
    """What a speaker says again (turns, pairs of words, beginnings), and their distinct 1- to 3-grams."""
    keys: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    starts: set[tuple[str, ...]] = set()
    triples: set[tuple[str, str, str]] = set()
    words: set[str] = set()
    n_keys = n_starts = n_pairs = n_triples = 0
    shares = []
    for turn in turns:
        n_keys += turn.key in keys
        keys.add(turn.key)
        if turn.pairs:
            shares.append(len(turn.pairs & pairs) / len(turn.pairs))
            pairs |= turn.pairs
        start = tuple(turn.words[:3])
        n_starts += start in starts
        starts.add(start)
        words.update(turn.words)
        triples.update(zip(turn.words, turn.words[1:], turn.words[2:], strict=False))
        n_pairs += max(0, len(turn.words) - 1)
        n_triples += max(0, len(turn.words) - 2)
    return {
        "distinct_1": len(words) / math.sqrt(n_words),
        "distinct_2": len(pairs) / max(1, n_pairs),
        "distinct_3": len(triples) / max(1, n_triples),
        "repeat_turn": n_keys / len(turns),
        "repeat_2": _mean(shares),
        "repeat_2_max": max(shares, default=0.0),
        "repeat_start": n_starts / len(turns),
    }


def _exchange(turns: Sequence[TurnSurface]) -> dict[str, float]:
    """How each role takes up what the other has just said."""
    overlap: dict[bool, list[float]] = {True: [], False: []}
    asked, direct, echo = [], [], []
    for before, turn in pairwise(turns):
        if turn.is_user == before.is_user:
            continue
        fewer = max(1, min(len(turn.content), len(before.content)))
        overlap[turn.is_user].append(len(turn.content & before.content) / fewer)
        if not turn.is_user:
            echo.append(len(turn.pairs & before.pairs) / max(1, len(turn.pairs)))
            if before.marks.question:
                asked.append(turn.marks.question)
                direct.append(bool(turn.words) and (turn.words[0] in _BACKCHANNEL or turn.words[0] in _FIRST))
    return {
        "system_overlap": _mean(overlap[False]),
        "user_overlap": _mean(overlap[True]),
        "question_for_question": _mean(asked),
        "answers_directly": _mean(direct),
        "echo": _mean(echo),
    }


def _shared_content(system: Sequence[TurnSurface], user: Sequence[TurnSurface]) -> float:
    said = frozenset().union(*(turn.content for turn in system))
    heard = frozenset().union(*(turn.content for turn in user))
    return len(said & heard) / math.sqrt((len(said) + 1) * (len(heard) + 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


_NOTHING = read_turn(False, "")
FEATURES: tuple[str, ...] = tuple(_features([_NOTHING]))
