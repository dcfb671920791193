"""What can be measured of one side of a conversation. A measure is None where nothing is there to measure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from palaver.collection.duplicates import find_twins
from palaver.collection.labels import grade_number
from palaver.collection.records import PERSONAL, Conversation, Participant
from palaver.knowledge.articles import is_profane
from palaver.knowledge.candidates import reading_set_of
from palaver.schema import ReadingSet, Turn
from palaver.text.language import looks_english
from palaver.text.words import words

RUN = 8
"""So many words in a row that stand in a text were copied from it."""
FEWEST_TURNS = 4
"""Fewer messages of one side are not judged."""
_LONG = 6
"""Shorter messages say nothing about their language."""


@dataclass(frozen=True)
class Side:
    """What one participant said, and what had been said before."""

    conversation: Conversation
    participant: Participant | None
    """None where nobody knows who it was."""
    seat: str
    turns: tuple[Turn, ...]
    repeats: int
    """Messages that nearly repeat an earlier one of the conversation."""
    reused: int
    """Messages that nearly repeat one of the same person in an earlier conversation."""

    @property
    def name(self) -> str:
        return self.participant.id if self.participant is not None else self.seat

    @property
    def reading_set(self) -> ReadingSet | None:
        dialogue = self.conversation.dialogue
        return reading_set_of(dialogue, self.seat) if self.seat in dialogue.speakers else None


def sides_of(conversations: Sequence[Conversation]) -> list[list[Side]]:
    """The sides of each conversation that people took."""
    earlier: dict[str, list[str]] = {}  # person -> what they said in the conversations so far
    sides = []
    for conversation in conversations:
        turns = conversation.dialogue.turns
        twins = find_twins([turn.text for turn in turns])
        own = []
        for participant, seat, places in _seats(conversation):
            texts = [turns[place].text for place in places]
            before = earlier.setdefault(participant.id, []) if participant is not None else []
            own.append(
                Side(
                    conversation=conversation,
                    participant=participant,
                    seat=seat,
                    turns=tuple(turns[place] for place in places),
                    repeats=sum(twins[place] is not None for place in places),
                    reused=_count_reused(before, texts),
                )
            )
            before += texts
        sides.append(own)
    return sides


def _count_reused(before: Sequence[str], texts: Sequence[str]) -> int:
    if not before:
        return 0
    twins = find_twins([*before, *texts])[len(before) :]
    return sum(twin is not None and twin < len(before) for twin in twins)


def _seats(conversation: Conversation) -> Iterable[tuple[Participant | None, str, list[int]]]:
    """Each person with the numbers of their turns; of unknown people, each speaker."""
    turns = conversation.dialogue.turns
    taken = [participant.seat for participant in conversation.participants]
    for seat in dict.fromkeys([*conversation.dialogue.speakers, *taken]):
        places = [place for place, turn in enumerate(turns) if turn.speaker == seat]
        if seat not in taken:
            yield None, seat, places
        for person in conversation.people:
            if person.seat == seat:
                own = [place for place in places if place >= person.first_turn]
                yield person, seat, own[: person.n_turns]


def _share(side: Side, holds: Callable[[Turn], bool]) -> float | None:
    if len(side.turns) < FEWEST_TURNS:
        return None
    return sum(map(holds, side.turns)) / len(side.turns)


def _turns(side: Side) -> float:
    return len(side.conversation.dialogue.turns)


def _length(side: Side) -> float | None:
    if len(side.turns) < FEWEST_TURNS:
        return None
    return sum(len(turn.text.split()) for turn in side.turns) / len(side.turns)


def _repeats(side: Side) -> float | None:
    return side.repeats / len(side.turns) if len(side.turns) >= FEWEST_TURNS else None


def _reuse(side: Side) -> float | None:
    if side.participant is None or len(side.turns) < FEWEST_TURNS:
        return None
    return side.reused / len(side.turns)


def _copied(side: Side) -> float | None:
    reading_set = side.reading_set
    if reading_set is None or len(side.turns) < FEWEST_TURNS:
        return None
    read: frozenset[tuple[str, ...]] = frozenset().union(*map(_runs, reading_set.texts()))
    n_words = n_copied = 0
    for turn in side.turns:
        tokens = _tokens(turn.text)
        is_copied = [False] * len(tokens)
        for start in range(len(tokens) - RUN + 1):
            if tokens[start : start + RUN] in read:
                is_copied[start : start + RUN] = [True] * RUN
        n_words += len(tokens)
        n_copied += sum(is_copied)
    return n_copied / n_words if n_words else None


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(word for word in words(text) if word[0].isalnum())


@lru_cache(maxsize=20_000)  # facts and leads come back in many reading sets
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    tokens = _tokens(text)
    return frozenset(tokens[start : start + RUN] for start in range(len(tokens) - RUN + 1))


def _sources(side: Side) -> float | None:
    if side.reading_set is None:
        return None
    return _share(side, lambda turn: any(source != PERSONAL for source in turn.knowledge))


def _annotated(side: Side) -> float | None:
    return _share(side, _is_annotated)


def _is_annotated(turn: Turn) -> bool:
    return bool(turn.knowledge or turn.labels.get("sentiment"))


def _straight_lining(side: Side) -> float | None:
    annotations = [
        (turn.labels.get("sentiment"), turn.knowledge) for turn in side.turns if _is_annotated(turn)
    ]
    if len(annotations) <= FEWEST_TURNS:
        return None
    same = [before == after for before, after in pairwise(annotations)]
    return sum(same) / len(same)


def _profanity(side: Side) -> float | None:
    return _share(side, lambda turn: is_profane(turn.text))


def _seconds(side: Side) -> float | None:
    seconds = [turn.labels.get("seconds") for turn in side.turns]
    known = [value for value in seconds if isinstance(value, int | float) and not isinstance(value, bool)]
    return float(statistics.median(known)) if len(known) >= FEWEST_TURNS else None


def _language(side: Side) -> float | None:
    long = [turn.text for turn in side.turns if len(turn.text.split()) >= _LONG]
    return sum(not looks_english(text) for text in long) / len(long) if len(long) >= FEWEST_TURNS else None


def _pasted(side: Side) -> float | None:
    counts = [turn.labels.get("pasted") for turn in side.turns]
    if not any(isinstance(count, int | float) for count in counts):
        return None
    n_letters = sum(len(turn.text) for turn in side.turns)
    n_pasted = sum(
        min(float(count), len(turn.text))
        for count, turn in zip(counts, side.turns, strict=True)
        if isinstance(count, int | float)
    )
    return n_pasted / n_letters if n_letters else None


def _partner(side: Side) -> float | None:
    grades = [grade_number(turn.labels.get("turn_rating")) for turn in side.turns]
    known = [grade for grade in grades if grade is not None]
    return sum(known) / len(known) if len(known) >= FEWEST_TURNS else None


MEASURES: dict[str, Callable[[Side], float | None]] = {
    "turns": _turns,
    "length": _length,
    "repeats": _repeats,
    "reuse": _reuse,
    "copied": _copied,
    "sources": _sources,
    "annotated": _annotated,
    "straight_lining": _straight_lining,
    "profanity": _profanity,
    "seconds": _seconds,
    "language": _language,
    "pasted": _pasted,
    "partner": _partner,
}
WHOLE = ("turns",)
"""Measures of the conversation, for which no side is to blame."""
OF_ANNOTATIONS = ("sources", "annotated", "straight_lining")
"""Not measured where nobody annotated anything: then it was not asked for."""
