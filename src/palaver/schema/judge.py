"""Anything that turns responses or dialogues into ratings: a metric, a trained model, a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from palaver.schema.dialogue import Dialogue
from palaver.schema.rating import Kind, Rating
from palaver.schema.response import Response
from palaver.schema.scale import Scale

Direction = Literal["higher", "lower", "neither"]
Need = Literal["references", "knowledge", "context"]
Judged = Literal["responses", "dialogues"]


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """What a judge measures, on which scale, and which end of it is better."""

    name: str
    scale: Scale
    better: Direction = "higher"
    title: str = ""


@runtime_checkable
class Judge(Protocol):
    """`judge` gives ratings whose `rater` is the judge's name and whose `signature` is the judge's own.

    `item` is the response's or dialogue's id, `system` the response's `judged_system`. A judge that looks at
    dialogues only is given a response as its context with the reply as last turn. One whose figure is about
    all responses of a system together has `whole = True` and is given them in one batch.
    """

    name: str
    kind: Kind
    looks_at: frozenset[Judged]
    needs: frozenset[Need]
    criteria: tuple[Criterion, ...]
    signature: str
    """Whatever changes the judge's ratings changes it."""

    def judge(self, batch: Sequence[Response] | Sequence[Dialogue]) -> Iterable[Rating]:
        """Ratings of everything in the batch that can be rated."""
        ...
