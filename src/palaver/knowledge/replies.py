"""The sentence for the next turn of a dialogue, out of what its speaker had read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from palaver.errors import UserError
from palaver.knowledge.candidates import candidates_of, reading_set_of
from palaver.knowledge.selector import Group, Query, Selector, best
from palaver.schema import Dialogue


@dataclass(frozen=True, slots=True)
class NextTurn:
    """A dialogue so far, who speaks next, and for the oracle what is said."""

    dialogue: Dialogue
    speaker: str | None = None
    """None: the one who did not speak last."""
    response: str | None = None


class ReplyKnowledge:
    """Chooses with a selector, and counts the turns for which there was nothing to choose."""

    def __init__(self, selector: Selector) -> None:
        self.selector = selector
        self.n_turns = 0
        self.n_without_sentences = 0
        """The speaker had no reading set, or one without a sentence."""

    def choose(self, turns: Sequence[NextTurn]) -> list[str | None]:
        """One sentence for each turn; none where its speaker has read nothing."""
        groups = [self._group(turn) for turn in turns]
        self.n_turns += len(groups)
        self.n_without_sentences += sum(not group.candidates for group in groups)
        choosing = [group for group in groups if group.candidates]
        tables = iter(self.selector.scores(choosing) if choosing else [])
        sentences: list[str | None] = []
        for group in groups:
            table = next(tables) if group.candidates else None
            sentences.append(None if table is None else best(table[0], group.candidates).sentence)
        return sentences

    def _group(self, turn: NextTurn) -> Group:
        dialogue = turn.dialogue
        if self.selector.sees_response and turn.response is None:
            raise UserError(
                f"the selector {self.selector.name} needs the true reply; dialogue {dialogue.id!r} has none",
                "give --every-turn, which takes each turn as the true reply to its history",
            )
        speaker = turn.speaker or _replier(dialogue)
        reading_set = reading_set_of(dialogue, speaker) if speaker is not None else None
        history = [said.text for said in dialogue.turns]
        return Group([Query(history, turn.response)], candidates_of(reading_set).sentences)


def _replier(dialogue: Dialogue) -> str | None:
    """Who is to answer the last turn: of those who did not say it, the one who spoke last."""
    last = dialogue.turns[-1].speaker if dialogue.turns else None
    others = [turn.speaker for turn in reversed(dialogue.turns) if turn.speaker != last]
    others += [speaker for speaker in dialogue.speakers if speaker != last]
    return others[0] if others else last
