"""Surface features of a dialogue: lengths, repetition, questions, and what users say when a system fails.

They need no model and see only the turns. Every feature is a mean, a share or an extreme over the turns of a
role, so that dialogues of any length compare. A turn is read once (`read_turn`); a dialogue without one of
its turns costs no second reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.schema import Dialogue

_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")
_END = re.compile(r"[.?!]+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CATEGORIES = {
    "pleased": _set(
        "haha lol cool nice great awesome thanks thank love fun funny wow amazing good interesting "
        "wonderful enjoy enjoyed glad happy lovely fantastic beautiful yes agree"
    ),
    "puzzled": _set(
        "what huh confused confusing sense understand weird strange random mean meant pardon sorry odd makes "
        "wrong confuse"
    ),
    "complains": _set(
        "already again repeat repeating repeated same keep stop asked answer question listen listening "
        "ignore ignoring contradict earlier before just told robot bot computer machine"
    ),
    "rude": _set(
        "stupid idiot dumb fuck fucking shit bitch hate boring bad sex crazy hell terrible rude liar "
        "lying lie"
    ),
    "first_person": _set("i my me mine i'm i've i'll myself"),
    "second_person": _set("you your yours you're"),
    "negation": _set("not no don't never can't cannot nothing none won't didn't doesn't isn't"),
    "function": _set(
        "the a an and or but i you he she it we they is am are was were be to of in on for with my your "
        "me do does did have has had that this so not no what how at as if "
        "just about all would can will from very "
        "too like get there when i'm don't it's s t m re"
    ),
}
_PRESENCE = ("pleased", "puzzled", "complains", "rude")
"""Of these the share of turns that hold one counts too."""
_NAMES = tuple(_CATEGORIES)
_IN: dict[str, tuple[int, ...]] = {
    word: tuple(i for i, name in enumerate(_NAMES) if word in _CATEGORIES[name])
    for word in frozenset().union(*_CATEGORIES.values())
}
_N_CATEGORIES = len(_NAMES)
_FUNCTION = _CATEGORIES["function"]
_NOT = _CATEGORIES["negation"]
_FIRST = _CATEGORIES["first_person"]
_BACKCHANNEL = _set("ok okay yes yeah no good nice fine sure k hmm oh yep nope cool really bye")
_GREETING = _set("hi hello hey")

_ROLE_FEATURES = (
    "length",
    "length_sd",
    "length_min",
    "length_max",
    "length_log",
    "length_trend",
    "length_last",
    "short",
    "word_length",
    "distinct_1",
    "distinct_2",
    "distinct_3",
    "repeat_turn",
    "repeat_2",
    "repeat_2_max",
    "repeat_start",
    "repeat_within",
    "repeat_within_max",
    "question",
    "exclaim",
    "commas",
    "stopped",
    "sentences",
    "capitals",
    "not_ascii",
    "digits",
    "apostrophes",
    "unknown",
    "backchannel",
    "greets_late",
    "does_not_know",
    "short_question",
    *_NAMES,
    *(f"{name}_turns" for name in _PRESENCE),
)
_BOTH_FEATURES = (
    "turns",
    "length_ratio",
    "system_overlap",
    "user_overlap",
    "question_for_question",
    "answers_directly",
    "echo",
    "shared_content",
)
FEATURES: tuple[str, ...] = (
    *(f"system_{name}" for name in _ROLE_FEATURES),
    *(f"user_{name}" for name in _ROLE_FEATURES),
    *_BOTH_FEATURES,
)


class ReadTurn(NamedTuple):
    """A turn taken apart once."""

    is_user: bool
    words: list[str]
    key: str
    pairs: frozenset[tuple[str, str]]
    content: frozenset[str]
    counts: tuple[int, ...]  # of each category
    within: float  # share of its words that it says again
    marks: tuple[float, ...]  # characters, ?, !, commas, ends with a stop, sentences, capitals, not ASCII
    asks: bool
    odd: tuple[int, int, bool]  # digits, apostrophes, an unknown word


def read_turn(is_user: bool, text: str) -> ReadTurn:
    lower = text.lower().replace("’", "'")
    words = _WORD.findall(lower)
    counts = [0] * _N_CATEGORIES
    for word in words:
        if word in _IN:
            for i in _IN[word]:
                counts[i] += 1
    n, asks = len(words), "?" in text
    upper = sum(map(str.isupper, text)) if text != lower else 0
    marks = (
        len(text),
        asks,
        "!" in text,
        text.count(","),
        text.rstrip()[-1:] in {".", "?", "!"},
        len(_END.findall(text)),
        upper / max(1, len(text)),
        not text.isascii(),
    )
    digits = sum(word[0].isdigit() for word in words) if any(map(str.isdigit, lower)) else 0
    return ReadTurn(
        is_user,
        words,
        " ".join(words),
        frozenset(pairwise(words)),
        frozenset(words) - _FUNCTION,
        tuple(counts),
        1 - len(set(words)) / n if n else 0.0,
        marks,
        asks,
        (digits, sum("'" in word for word in words) if "'" in lower else 0, "unk" in lower),
    )


def read_turns(dialogue: Dialogue) -> list[ReadTurn]:
    return [read_turn(turn.speaker == "user", turn.text) for turn in dialogue.turns]


def surface(dialogues: Sequence[Dialogue]) -> NDArray[np.float32]:
    """(N, F) the features of each dialogue, in the order of `FEATURES`."""
    return surface_of([read_turns(dialogue) for dialogue in dialogues])


def surface_of(dialogues: Sequence[Sequence[ReadTurn]]) -> NDArray[np.float32]:
    """`surface` of dialogues whose turns have been read."""
    if not dialogues:
        return np.zeros((0, len(FEATURES)), np.float32)
    return np.array([_features(turns) for turns in dialogues], dtype=np.float32)


def _features(turns: Sequence[ReadTurn]) -> list[float]:
    system = [turn for turn in turns if not turn.is_user]
    user = [turn for turn in turns if turn.is_user]
    of_system, of_user = _role(system), _role(user)
    return [*of_system, *of_user, *_both(turns, system, user, of_system[0], of_user[0])]


def _role(turns: Sequence[ReadTurn]) -> list[float]:
    if not turns:
        return [0.0] * len(_ROLE_FEATURES)
    m = len(turns)
    lengths = [len(turn.words) for turn in turns]
    total = sum(lengths)
    mean = total / m
    half = m // 2
    trend = sum(lengths[half:]) / (m - half) - sum(lengths[:half]) / half if half else 0.0
    n = max(1, total)
    repeats, said = _repeats(turns)
    distinct_1, distinct_2, distinct_3 = said
    marks = [sum(column) / m for column in zip(*(turn.marks for turn in turns), strict=True)]
    counts = [sum(column) for column in zip(*(turn.counts for turn in turns), strict=True)]
    return [
        mean,
        math.sqrt(max(0.0, sum(k * k for k in lengths) / m - mean * mean)),
        min(lengths),
        max(lengths),
        sum(map(math.log1p, lengths)) / m,
        trend,
        sum(lengths[-2:]) / len(lengths[-2:]),
        sum(k <= 2 for k in lengths) / m,
        marks[0] / (mean + 1),
        distinct_1 / math.sqrt(n),
        distinct_2,
        distinct_3,
        *repeats,
        sum(turn.within for turn in turns) / m,
        max(turn.within for turn in turns),
        *marks[1:],
        sum(turn.odd[0] for turn in turns) / n,
        sum(turn.odd[1] for turn in turns) / n,
        sum(turn.odd[2] for turn in turns) / m,
        sum(bool(turn.words) and _BACKCHANNEL.issuperset(turn.words) for turn in turns) / m,
        sum(map(_greets, turns[1:])) / max(1, m - 1),
        sum("know" in turn.words and not _NOT.isdisjoint(turn.words) for turn in turns) / m,
        sum(turn.asks and len(turn.words) <= 3 for turn in turns) / m,
        *(count / n for count in counts),
        *(sum(turn.counts[i] > 0 for turn in turns) / m for i in range(len(_PRESENCE))),
    ]


def _greets(turn: ReadTurn) -> bool:
    return bool(turn.words) and (turn.words[0] in _GREETING or turn.key.startswith("how are you"))


def _repeats(turns: Sequence[ReadTurn]) -> tuple[tuple[float, ...], tuple[float, ...]]:
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
    m = len(turns)
    share = sum(shares) / len(shares) if shares else 0.0
    distinct = (len(words), len(pairs) / max(1, n_pairs), len(triples) / max(1, n_triples))
    return (n_keys / m, share, max(shares, default=0.0), n_starts / m), distinct


def _both(
    turns: Sequence[ReadTurn],
    system: Sequence[ReadTurn],
    user: Sequence[ReadTurn],
    system_length: float,
    user_length: float,
) -> list[float]:
    overlap: tuple[list[float], list[float]] = ([], [])
    asked, direct, echo = [], [], []
    for before, turn in pairwise(turns):
        if turn.is_user == before.is_user:
            continue
        fewer = max(1, min(len(turn.content), len(before.content)))
        overlap[turn.is_user].append(len(turn.content & before.content) / fewer)
        if not turn.is_user:
            echo.append(len(turn.pairs & before.pairs) / max(1, len(turn.pairs)))
            if before.asks:
                asked.append(turn.asks)
                direct.append(bool(turn.words) and (turn.words[0] in _BACKCHANNEL or turn.words[0] in _FIRST))
    said = frozenset().union(*(turn.content for turn in system))
    heard = frozenset().union(*(turn.content for turn in user))
    return [
        len(turns),
        math.log((system_length + 1) / (user_length + 1)),
        _mean(overlap[0]),
        _mean(overlap[1]),
        _mean(asked),
        _mean(direct),
        _mean(echo),
        len(said & heard) / math.sqrt((len(said) + 1) * (len(heard) + 1)),
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
