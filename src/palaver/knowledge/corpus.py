"""Knowledge selection for whole corpora, streamed: dialogues in blocks, each distinct text weighed once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from palaver.knowledge.candidates import candidates_of, reading_set_of
from palaver.knowledge.selector import Group, Query, Selection, Selector, best
from palaver.schema import Dialogue

BLOCK = 256


@dataclass
class Tally:
    """What happened to the turns that `select_for` has seen so far."""

    n_turns: int = 0
    n_selected: int = 0
    n_without_candidates: int = 0
    """The speaker had nothing to read."""
    n_zero: int = 0
    """No candidate had anything in common: the first one was taken, with score 0."""
    n_tied: int = 0
    """Several candidates had the best score above 0: the first one was taken."""
    n_duplicates: int = 0
    """Sentences that a reading set held more than once; they count as one candidate."""


class Share(NamedTuple):
    """The turns of one speaker in one dialogue, by their numbers, and what they choose from."""

    turns: list[int]
    group: Group
    n_duplicates: int


def shares_of(dialogue: Dialogue) -> list[Share]:
    """A dialogue's turns, put together by speaker."""
    texts = [turn.text for turn in dialogue.turns]
    shares = []
    for speaker in dialogue.speakers:
        turns = [i for i, turn in enumerate(dialogue.turns) if turn.speaker == speaker]
        sentences = candidates_of(reading_set_of(dialogue, speaker))
        queries = [Query(texts[:i], texts[i]) for i in turns]
        shares.append(Share(turns, Group(queries, sentences.sentences), sentences.n_duplicates))
    return shares


def in_blocks(dialogues: Iterable[Dialogue], size: int = BLOCK) -> Iterator[list[Dialogue]]:
    """The dialogues in lists of at most `size`."""
    rest = iter(dialogues)
    while block := list(islice(rest, size)):
        yield block


def select_for(
    dialogues: Iterable[Dialogue], selector: Selector, *, tally: Tally | None = None, block: int = BLOCK
) -> Iterator[tuple[Dialogue, list[Selection | None]]]:
    """Each dialogue with one selection per turn; `None` where the speaker had nothing to read."""
    tally = Tally() if tally is None else tally
    for some in in_blocks(dialogues, block):
        shares = [shares_of(dialogue) for dialogue in some]
        tables = iter(selector.scores([share.group for own in shares for share in own]))
        for dialogue, own in zip(some, shares, strict=True):
            chosen: list[Selection | None] = [None] * len(dialogue.turns)
            for share in own:
                table = next(tables)
                tally.n_duplicates += share.n_duplicates
                if table is not None and share.group.candidates:
                    for turn, scores in zip(share.turns, table, strict=True):
                        chosen[turn] = best(scores, share.group.candidates)
                elif not share.group.candidates:
                    tally.n_without_candidates += len(share.turns)
            _count(tally, chosen)
            yield dialogue, chosen


def _count(tally: Tally, chosen: list[Selection | None]) -> None:
    selections = [selection for selection in chosen if selection is not None]
    tally.n_turns += len(chosen)
    tally.n_selected += len(selections)
    tally.n_zero += sum(selection.score == 0 for selection in selections)
    tally.n_tied += sum(selection.score != 0 and selection.n_tied > 0 for selection in selections)
