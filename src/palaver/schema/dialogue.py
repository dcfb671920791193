"""Conversations: what corpora yield, models read, the chat server writes and the rating page shows."""

from __future__ import annotations

from pydantic import Field, model_validator

from palaver.schema.base import FrozenDict, Labels, Name, Noun, Text
from palaver.schema.knowledge import ReadingSet


class Turn(Noun):
    """One utterance, what it was grounded in (ids of facts or sections) and what was said about it."""

    speaker: Name
    text: Text
    knowledge: tuple[Text, ...] = ()
    labels: Labels = Field(default=FrozenDict())


class Dialogue(Noun):
    """A whole conversation. `id` is the source's own; `speakers` are in order of first appearance."""

    id: Name
    turns: tuple[Turn, ...]
    speakers: tuple[Name, ...] = ()
    source: Text = ""
    knowledge: tuple[ReadingSet, ...] | None = None
    labels: Labels = Field(default=FrozenDict())

    @model_validator(mode="before")
    @classmethod
    def _fill_speakers(cls, data: object) -> object:
        """Without `speakers` they are read off the turns, so that `Dialogue(id=…, turns=…)` is enough."""
        if not isinstance(data, dict) or data.get("speakers"):
            return data
        turns = data.get("turns")
        if not isinstance(turns, list | tuple):
            return data
        names = [
            turn.get("speaker") if isinstance(turn, dict) else getattr(turn, "speaker", "") for turn in turns
        ]
        speakers = dict.fromkeys(name for name in names if isinstance(name, str) and name)
        return {**data, "speakers": tuple(speakers)}

    @model_validator(mode="after")
    def _speakers_cover_turns(self) -> Dialogue:
        if len(set(self.speakers)) != len(self.speakers):
            raise ValueError(f"a speaker is named twice: {list(self.speakers)}")
        unknown = {t.speaker for t in self.turns} - set(self.speakers)
        if unknown:
            raise ValueError(
                f"turns by {sorted(unknown)}, who are not among the speakers {list(self.speakers)}"
            )
        return self
