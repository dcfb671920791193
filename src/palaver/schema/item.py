"""What raters are asked, and what they are asked about."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from palaver.schema.base import Name, Noun, Text
from palaver.schema.condition import Condition
from palaver.schema.dialogue import Dialogue
from palaver.schema.scale import Scale

Part = Literal["context", "knowledge", "reference", "output"]


class Question(Noun):
    """What is asked, and which parts of the item the rater sees (naturalness hides the context)."""

    criterion: Name
    text: str = Field(min_length=1)
    scale: Scale
    shows: tuple[Part, ...] = ("context", "knowledge", "reference", "output")
    help: Text = ""
    required: bool = Field(default=True, strict=True)
    beside: Text | None = None
    """Another criterion whose screen this one shares even when the layout is separate."""
    shown_if: Condition | None = None
    """Asked only if another question of the screen was answered so."""
    per: Literal["output", "turn"] = "output"
    """What is judged: an output as a whole, or each turn of a dialogue."""
    turns: Literal["system", "user", "all"] = "system"
    """With `per = "turn"`: whose turns."""

    @model_validator(mode="after")
    def _check(self) -> Question:
        if self.per == "turn" and self.scale.side_by_side:
            raise ValueError(f"per: {self.scale.kind!r} compares whole outputs, not turns")
        if self.scale.relative and self.shown_if is not None:
            raise ValueError(
                f"shown_if: {self.scale.kind!r} is about all outputs at once, so it is asked always"
            )
        if self.per == "output" and self.turns != "system":
            raise ValueError('turns: only a question with per = "turn" is about turns')
        if "output" not in self.shows:
            raise ValueError("shows: the output is what is judged and must be among them")
        return self


class Output(Noun):
    """What one system said: a text, or a whole dialogue."""

    system: Name
    text: Text | None = None
    dialogue: Dialogue | None = None
    id: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Output:
        if (self.text is None) == (self.dialogue is None):
            raise ValueError("an output is either a text or a dialogue: give exactly one of them")
        return self


class Item(Noun):
    """What is judged: one output, several side by side, or two dialogues, in a shared context."""

    id: Name
    context: Text | Dialogue | None = None
    """What the outputs answer: a meaning representation, a question, the dialogue so far."""
    knowledge: Text | None = None
    """The sentence the outputs should draw on."""
    reference: Text | None = None
    """The standard of a magnitude estimation."""
    sampling_probability: float | None = Field(default=None, gt=0, le=1)
    """With which the item was drawn for the study, where not all had the same; ratings count 1 / this."""
    outputs: tuple[Output, ...] = Field(min_length=1)
