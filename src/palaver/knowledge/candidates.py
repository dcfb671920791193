"""What could be said: the sentences of a speaker's reading set ([k_i] in section 4 of Topical-Chat)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from palaver.schema import Dialogue, ReadingSet
from palaver.text import words

# Facts and leads of popular entities come back in hundreds of reading sets.
_sentences = lru_cache(maxsize=100_000)(lambda text: tuple(words.sentences(text)))


@dataclass(frozen=True, slots=True)
class Candidates:
    """The distinct sentences of a reading set in reading order, and how many came more than once."""

    sentences: tuple[str, ...] = ()
    n_duplicates: int = 0


def candidates(dialogue: Dialogue, turn_index: int) -> list[str]:
    """The sentences that the speaker of turn `turn_index` had read; none without a reading set."""
    return list(candidates_of(reading_set_of(dialogue, dialogue.turns[turn_index].speaker)).sentences)


def candidates_of(reading_set: ReadingSet | None) -> Candidates:
    """Lead sections, facts and article parts, cut into sentences."""
    if reading_set is None:
        return Candidates()
    sentences = [sentence for text in reading_set.texts() for sentence in _sentences(text)]
    distinct = tuple(dict.fromkeys(sentences))
    return Candidates(distinct, len(sentences) - len(distinct))


def reading_set_of(dialogue: Dialogue, speaker: str) -> ReadingSet | None:
    """The reading set whose id is the speaker's name or ends in it ("t_17-agent_1").

    A single set is everybody's. Sets that name no speaker at all belong to the speakers in their order.
    """
    sets = dialogue.knowledge or ()
    if len(sets) == 1:
        return sets[0]
    owners = [next((s for s in dialogue.speakers if _names(r.id, s)), None) for r in sets]
    if speaker in owners:
        return sets[owners.index(speaker)]
    if not any(owners) and len(sets) == len(dialogue.speakers):
        return sets[dialogue.speakers.index(speaker)]
    return None


def reading_sentences(dialogues: Iterable[Dialogue]) -> list[str]:
    """Every distinct sentence of all reading sets: the documents that term weights are fitted on."""
    distinct: dict[str, None] = {}
    for dialogue in dialogues:
        for reading_set in dialogue.knowledge or ():
            distinct.update(dict.fromkeys(candidates_of(reading_set).sentences))
    return list(distinct)


def _names(id: str, speaker: str) -> bool:
    before = id[: -len(speaker)]
    return id.endswith(speaker) and (not before or not before[-1].isalnum())
