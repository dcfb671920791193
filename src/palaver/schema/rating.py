"""One judgement, whoever made it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field, field_serializer

from palaver.schema.base import Name, Noun, Text
from palaver.schema.scale import Value

Kind = Literal["human", "user", "metric", "model", "llm"]
"""Who judged: a rater, the chatter, a formula, a trained model, a language model."""
KINDS: tuple[Kind, ...] = ("human", "user", "metric", "model", "llm")


class Rating(Noun):
    """One judgement. Rows are only ever added: a changed mind is a later row.

    `system` is whose output was judged. In a pairwise judgement `against` is the other system and the
    value (win, tie, loss) is `system`'s; its item is `id|A|B` and `context` is the id that both answer.
    """

    study: Text = ""
    item: Name
    system: Name
    against: Text | None = None
    output: Text | None = None
    rater: Name
    criterion: Name
    value: Value
    given_at: datetime | None = None
    seconds: float | None = Field(default=None, ge=0)
    shown_position: int | None = Field(default=None, ge=0)
    kind: Kind = "human"
    signature: Text | None = None
    """Of whatever made it: equal signatures were made in the same way."""
    context: Text | None = None
    """What the item is about, where several items share it: judgements are joined by it."""
    turn: int | None = Field(default=None, ge=0)
    """The turn judged, where it is not the whole."""
    repeat: int | None = Field(default=None, ge=0)
    """Which of several askings of the same judge."""
    version: Text | None = None
    """Of the study under which it was given."""
    probability: float | None = Field(default=None, ge=0, le=1)
    """How sure the judge was of `value`."""
    sampling_probability: float | None = Field(default=None, gt=0, le=1)
    """With which the item was drawn for the study, where not all had the same."""

    @field_serializer("value", when_used="json")
    def _plain(self, value: Value) -> float | int | str | list[str]:
        if isinstance(value, tuple):
            return list(value)
        return (
            int(value) if isinstance(value, float) and value == int(value) and abs(value) < 2**53 else value
        )


def pair_context(item: str, system: str, against: str | None) -> str | None:
    """The context of a pair's item, `id` of `id|A|B`; None for any other item."""
    for ending in (f"|{system}|{against}", f"|{against}|{system}"):
        if against is not None and item.endswith(ending):
            return item.removesuffix(ending) or None
    return None


def value_text(value: Value) -> str:
    """A value as one CSV cell; `Scale.parse` reads it back."""
    if isinstance(value, tuple):
        return "|".join(value)
    return value if isinstance(value, str) else repr(value).removesuffix(".0")
