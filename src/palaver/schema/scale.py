"""Scales: the only authority on a judgement.

A scale says which values are permitted, which widget asks for them, at which level they measure
(Stevens 1946: nominal, ordinal, interval, ratio) and how a raw value becomes a score.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from palaver.schema.base import Name, Noun, Text

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Value = float | Text | tuple[Text, ...]
"""A judgement as stored: a number, one of a pairwise scale's words, or the ticked boxes."""


class _Scale(Noun):
    level: ClassVar[Level]
    widget: ClassVar[str]
    numeric: ClassVar[bool]

    @abstractmethod
    def describe(self) -> str:
        """The permitted values in words, for pages, help texts and error messages."""

    @abstractmethod
    def parse(self, raw: object) -> Value:
        """The stored value for what was read or typed; ValueError says what was expected."""

    @abstractmethod
    def score(self, value: Value) -> float:
        """The number that statistics use."""


class _Numeric(_Scale):
    numeric: ClassVar[bool] = True

    @property
    @abstractmethod
    def minimum(self) -> float:
        """The lowest permitted value."""

    @property
    def maximum(self) -> float:
        return math.inf

    @property
    def whole(self) -> bool:
        return True

    def parse(self, raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        try:
            value = math.nan if isinstance(raw, str) and "_" in raw else float(raw)  # Python reads 1_0 as 10
        except (ValueError, OverflowError):
            raise ValueError(f"expected {self.describe()}, found {raw!r}") from None
        inside = math.isfinite(value) and self.minimum <= value <= self.maximum
        if not inside or (self.whole and value != int(value)):
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        return value

    def score(self, value: Value) -> float:
        return self.parse(value)


class _Steps(_Numeric):
    """Whole steps from `low` to `high`, perhaps with a word for each."""

    level: ClassVar[Level] = "ordinal"
    widget: ClassVar[str] = "radio"
    low: int
    high: int
    labels: tuple[Text, ...] = ()

    @property
    def minimum(self) -> float:
        return self.low

    @property
    def maximum(self) -> float:
        return self.high

    @model_validator(mode="after")
    def _check(self) -> _Steps:
        if self.high <= self.low:
            raise ValueError(f"high ({self.high}) must be above low ({self.low})")
        steps = self.high - self.low + 1
        if self.labels and len(self.labels) not in (2, steps):
            raise ValueError(
                f"labels: expected none, 2 (the ends) or {steps} (every step), found {len(self.labels)}"
            )
        return self

    def describe(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


class Likert(_Steps):
    """Agreement in equal-looking steps; the RankME paper uses six."""

    kind: Literal["likert"] = "likert"
    low: int = 1
    high: int = 6


class Ordinal(_Steps):
    """Graded categories such as 0 to 3."""

    kind: Literal["ordinal"] = "ordinal"
    low: int = 0
    high: int = 3


class Binary(_Numeric):
    """No or yes, stored as 0 or 1."""

    level: ClassVar[Level] = "nominal"
    widget: ClassVar[str] = "radio"
    kind: Literal["binary"] = "binary"
    labels: tuple[Name, Name] = ("no", "yes")

    @property
    def minimum(self) -> float:
        return 0

    @property
    def maximum(self) -> float:
        return 1

    def describe(self) -> str:
        return f"0 ({self.labels[0]}) or 1 ({self.labels[1]})"


class Magnitude(_Numeric):
    """Magnitude estimation (Bard et al. 1996): how many times as good as a reference of fixed value.

    RankME's forms took positive whole numbers of at most six digits with the reference at 100; with
    `whole_numbers = false` positive reals are permitted. Scores are logarithms of the ratio to the
    reference, because the judgement is a ratio.
    """

    level: ClassVar[Level] = "ratio"
    widget: ClassVar[str] = "number"
    kind: Literal["magnitude"] = "magnitude"
    reference: float = Field(default=100, gt=0)
    whole_numbers: bool = True
    max_digits: int = Field(default=6, ge=1, le=15)

    @property
    def minimum(self) -> float:
        return 1 if self.whole_numbers else math.ulp(0.0)

    @property
    def maximum(self) -> float:
        return float(10**self.max_digits - 1)

    @property
    def whole(self) -> bool:
        return self.whole_numbers

    def describe(self) -> str:
        number = "whole number" if self.whole_numbers else "number"
        return f"a positive {number} of at most {self.max_digits} digits"

    def score(self, value: Value) -> float:
        return math.log(self.parse(value)) - math.log(self.reference)  # the ratio itself may overflow


class RankMagnitude(Magnitude):
    """RankME (Novikova et al. 2018): magnitude estimation of all outputs of an item on one screen."""

    widget: ClassVar[str] = "rank-number"
    kind: Literal["rank-magnitude"] = "rank-magnitude"  # type: ignore[assignment]


class Pairwise(_Scale):
    """Which of two is better. The value is about the item's first output, whatever side it was shown on."""

    level: ClassVar[Level] = "nominal"
    widget: ClassVar[str] = "pair"
    numeric: ClassVar[bool] = False
    kind: Literal["pairwise"] = "pairwise"
    ties: bool = True
    tie_label: Name = "Cannot tell"

    SCORES: ClassVar[dict[str, float]] = {"win": 1.0, "tie": 0.5, "loss": 0.0}

    def describe(self) -> str:
        return "win, tie or loss" if self.ties else "win or loss"

    def parse(self, raw: object) -> str:
        word = raw.strip().casefold() if isinstance(raw, str) else raw
        if word in ("win", "loss") or (word == "tie" and self.ties):
            return str(word)
        raise ValueError(f"expected {self.describe()}, found {raw!r}")

    def score(self, value: Value) -> float:
        return self.SCORES[self.parse(value)]


class Checkboxes(_Scale):
    """Any of several boxes; an `exclusive` one (such as "ok") stands alone."""

    level: ClassVar[Level] = "nominal"
    widget: ClassVar[str] = "checkboxes"
    numeric: ClassVar[bool] = False
    kind: Literal["checkboxes"] = "checkboxes"
    options: tuple[Name, ...] = Field(default=("added", "missing", "ok"), min_length=1)
    exclusive: tuple[Name, ...] = ("ok",)

    @model_validator(mode="after")
    def _check(self) -> Checkboxes:
        if len(set(self.options)) != len(self.options):
            raise ValueError(f"options: one is named twice: {list(self.options)}")
        if any("|" in option or "\n" in option for option in self.options):
            raise ValueError("options: '|' and line breaks separate boxes in files and cannot be part of one")
        if any(option != option.strip() for option in self.options):
            raise ValueError("options: spaces around one get lost in files")
        stray = [e for e in self.exclusive if e not in self.options]
        if stray:
            raise ValueError(f"exclusive: {stray} not among the options {list(self.options)}")
        return self

    def describe(self) -> str:
        alone = f" ({', '.join(self.exclusive)} alone)" if self.exclusive else ""
        return f"one or more of {', '.join(self.options)}{alone}, joined by |"

    def parse(self, raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            ticked = {part.strip() for part in raw.replace("\n", "|").split("|") if part.strip()}
        elif isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw):
            ticked = set(raw)
        else:
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        alone = len(ticked) == 1 or not ticked & set(self.exclusive)
        if not ticked or not ticked <= set(self.options) or not alone:
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        return tuple(option for option in self.options if option in ticked)

    def score(self, value: Value) -> float:
        """How many boxes that report something: 0 when only exclusive ones ("ok") are ticked."""
        return float(len([v for v in self.parse(value) if v not in self.exclusive]))


Scale = Annotated[
    Likert | Magnitude | RankMagnitude | Pairwise | Binary | Ordinal | Checkboxes, Field(discriminator="kind")
]

SCALES: dict[str, type[_Scale]] = {
    "likert": Likert,
    "magnitude": Magnitude,
    "rank-magnitude": RankMagnitude,
    "pairwise": Pairwise,
    "binary": Binary,
    "ordinal": Ordinal,
    "checkboxes": Checkboxes,
}
