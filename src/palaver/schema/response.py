"""One reply of one system to one context: what `palaver generate` writes and every other command reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_serializer, field_validator

from palaver.errors import short_repr
from palaver.schema.base import FrozenDict, Labels, Name, Noun, Text
from palaver.schema.dialogue import Dialogue, Turn

USER, SYSTEM = "user", "system"
"""The two sides of a conversation with a system, where a file names nobody."""


class Response(Noun):
    """Unique by (`id`, `system`, `speaker`); `id` names the context.

    `context` is the whole history; a plain text is one turn of the user. `response` is None where the system
    gave no reply; the reason stands in the label `skipped`.
    """

    id: Name
    system: Name
    context: tuple[Turn, ...] = ()
    response: Text | None
    speaker: Text | None = None
    """The character the system spoke as."""
    ocean: tuple[float, ...] | None = None
    """The personality it spoke with: five OCEAN scores from 1 to 7."""
    reference: Text | tuple[Text, ...] | None = None
    """What was really said next."""
    knowledge: Text | None = None
    """The sentence it was to draw on."""
    logprob: float | None = None
    labels: Labels = Field(default=FrozenDict())

    @field_validator("context", mode="before")
    @classmethod
    def _one_text_is_one_turn(cls, context: object) -> object:
        if isinstance(context, str):
            return (Turn(speaker=USER, text=context),)
        return context

    @field_validator("reference", mode="before")
    @classmethod
    def _one_text_or_several(cls, reference: object) -> object:
        texts = reference if isinstance(reference, list | tuple) else [reference]
        if reference is not None and not all(isinstance(text, str) for text in texts):
            raise ValueError(f"expected a text or a list of texts, found {short_repr(reference)}")
        return reference

    @field_serializer("context", when_used="json")
    def _short_turns(self, context: Sequence[Turn]) -> list[dict[str, Any]]:
        return [turn.model_dump(mode="json", exclude_defaults=True) for turn in context]

    @property
    def judged_system(self) -> str:
        """The name under which judgements of it are filed: the system, and who it spoke as."""
        return f"{self.system}/{self.speaker}" if self.speaker else self.system

    @property
    def references(self) -> tuple[str, ...]:
        if self.reference is None:
            return ()
        return (self.reference,) if isinstance(self.reference, str) else self.reference

    def as_dialogue(self) -> Dialogue:
        """The history with the response as its last turn.

        The system is whoever spoke before the last speaker, also where the history gives them a name;
        everybody else is the user.
        """
        last = self.context[-1].speaker if self.context else USER
        others = [turn.speaker for turn in reversed(self.context) if turn.speaker != last]
        answerer = others[0] if others else SYSTEM
        turns = [
            turn.model_copy(update={"speaker": SYSTEM if turn.speaker == answerer else USER})
            for turn in self.context
        ]
        turns.append(Turn(speaker=SYSTEM, text=self.response or ""))
        return Dialogue(id=self.id, turns=tuple(turns), labels={**self.labels, "system": self.judged_system})
