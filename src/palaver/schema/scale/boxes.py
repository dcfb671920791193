"""Boxes to tick, and one of several choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from palaver.errors import Sentence
from palaver.schema.base import Name
from palaver.schema.scale.base import Choice, Form, Impressions, Level, Scale, Value, unexpected

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


class Checkboxes(Scale):
    """Any of several boxes; an `exclusive` one (such as "ok") stands alone."""

    level: ClassVar[Level] = "nominal"
    form: ClassVar[Form] = "boxes"
    widget: ClassVar[str] = "boxes"
    kind: Literal["checkboxes"] = "checkboxes"
    options: tuple[Name, ...] = Field(default=("added", "missing", "ok"), min_length=1)
    exclusive: tuple[Name, ...] = ("ok",)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(set(self.options)) != len(self.options):
            raise ValueError(f"options: one is named twice: {list(self.options)}")
        if any("|" in option or "\n" in option for option in self.options):
            raise ValueError("options: '|' and line breaks separate boxes in files and cannot be part of one")
        if any(option != option.strip() for option in self.options):
            raise ValueError("options: spaces around one get lost in files")
        if any("\0" in option for option in self.options):
            raise ValueError("options: a NUL character is in one, which no database takes")
        stray = [e for e in self.exclusive if e not in self.options]
        if stray:
            raise ValueError(f"exclusive: {stray} not among the options {list(self.options)}")
        return self

    def describe(self) -> str:
        options, alone = ", ".join(self.options), ", ".join(self.exclusive)
        if not alone:
            return Sentence("one or more of {options}, joined by |", options=options)
        return Sentence("one or more of {options} ({alone} alone), joined by |", options=options, alone=alone)

    def parse(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            ticked = {part.strip() for part in raw.replace("\n", "|").split("|") if part.strip()}
        elif isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw):
            ticked = set(raw)
        else:
            raise unexpected(self, raw)
        alone = len(ticked) == 1 or not ticked & set(self.exclusive)
        if not ticked or not ticked <= set(self.options) or not alone:
            raise unexpected(self, raw)
        return tuple(option for option in self.options if option in ticked)

    def score(self, value: Value) -> float:
        """How many boxes that report something: 0 when only exclusive ones ("ok") are ticked."""
        return float(len([v for v in self.parse(value) if v not in self.exclusive]))

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        return tuple(
            Choice(option, option, key=str(n) if n <= 9 else "", alone=option in self.exclusive)
            for n, option in enumerate(self.options, start=1)
        )

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        """A bad output has one fault, which those who notice it agree on; a good one is "ok"."""
        import numpy as np

        felt, careless = impressions.felt, impressions.careless
        faults = [o for o in self.options if o not in self.exclusive] or list(self.options)
        fine = self.exclusive[0] if self.exclusive else self.options[-1]
        n_outputs = int(impressions.output.max(initial=-1)) + 1
        fault = rng.integers(0, len(self.options), n_outputs)[impressions.output]
        noticed = np.where(careless, rng.random(felt.size) < 0.5, felt < -0.7)
        named = np.where(careless, rng.integers(0, len(faults), felt.size), fault % len(faults))
        return np.where(noticed, np.array(faults, dtype=object)[named], np.array(fine, dtype=object))


class SingleChoice(Checkboxes):
    """One of several options that have no order, such as a sentiment."""

    widget: ClassVar[str] = "choice"
    kind: Literal["choice"] = "choice"  # type: ignore[assignment]
    options: tuple[Name, ...] = Field(default=("yes", "no", "cannot tell"), min_length=2)
    exclusive: tuple[Name, ...] = Field(default=(), max_length=0)

    def describe(self) -> str:
        return Sentence("one of {options}", options=", ".join(self.options))

    def parse(self, raw: object) -> tuple[str, ...]:
        chosen = super().parse(raw)
        if len(chosen) != 1:
            raise unexpected(self, raw)
        return chosen
