"""Scales of numbers: steps, yes and no, a place on a line, any number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    model_validator,
)

from palaver.errors import Sentence
from palaver.schema.base import Name, Text
from palaver.schema.scale.base import (
    LARGEST,
    Bounds,
    Choice,
    Form,
    Impressions,
    Level,
    Scale,
    Value,
    unexpected,
)

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


class Numeric(Scale):
    """Numbers within `bounds`."""

    form: ClassVar[Form] = "number"
    widget: ClassVar[str] = "number"

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        low, high = self.bounds.low, self.bounds.high
        if high <= low:
            raise ValueError(f"high ({high:g}) must be above low ({low:g})")
        return self

    def describe(self) -> str:
        low, high, step = self.bounds.low, self.bounds.high, self.bounds.step
        is_whole = self.bounds.whole and step == 1
        number = Sentence("a whole number") if is_whole else Sentence("a number")
        if low == -LARGEST:
            if high == LARGEST:
                return Sentence("a finite number below 1e50")
            return Sentence("{number} up to {high:g}", number=number, high=high)
        if high == LARGEST:
            limits = Sentence("{number} from {low:g}", number=number, low=low)
        else:
            limits = Sentence("{number} from {low:g} to {high:g}", number=number, low=low, high=high)
        if step is None or is_whole:
            return limits
        return Sentence("{number} in steps of {step:g}", number=limits, step=step)

    def parse(self, raw: object) -> float:
        value = math.nan
        if isinstance(raw, int | float | str) and not isinstance(raw, bool):
            with suppress(ValueError, OverflowError):
                value = (
                    math.nan if isinstance(raw, str) and "_" in raw else float(raw)
                )  # Python reads 1_0 as 10
        if not self.bounds.permit(value):
            raise unexpected(self, raw)
        return value

    def score(self, value: Value) -> float:
        return self.parse(value)

    def scores(self, values: ArrayLike) -> Floats:
        import numpy as np

        return np.asarray(values, dtype=np.float64)

    @property
    def pattern(self) -> str:
        """The regular expression of what may be typed, for the browser; the server parses again."""
        sign = "-?" if self.bounds.low < 0 else ""
        digits = "[0-9]+" if self.bounds.whole else "(?=.*[0-9])[0-9]*([.,][0-9]+)?"
        return rf"\s*{sign}{digits}\s*"

    @property
    def keyboard(self) -> str:
        """The keyboard that a phone shows; those for numbers have no minus."""
        if self.bounds.low < 0:
            return "text"
        return "numeric" if self.bounds.whole else "decimal"

    @property
    def hint(self) -> str:
        """What stands beside the field."""
        return self.describe()

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        import numpy as np

        felt, careless = impressions.felt, impressions.careless
        low, high, n = self.bounds.low, self.bounds.high, felt.size
        if low == -LARGEST or high == LARGEST:
            return np.clip(np.where(careless, rng.normal(0, 1, n), felt), low, high)
        middle, half = (low + high) / 2, (high - low) / 2
        honest = middle + half * felt / 1.8
        top_heavy = np.where(felt > -0.6, high, np.where(felt < -1.6, low, middle + half * 0.5))
        value = np.where(impressions.j_shaped & (high - low > 1), top_heavy, honest)
        step = self.bounds.step
        if step is None:
            return np.clip(np.where(careless, rng.uniform(low, high, n), value), low, high)
        most = round((high - low) / step)
        steps = np.where(careless, rng.integers(0, most + 1, n), np.round((value - low) / step))
        return low + np.clip(steps, 0, most) * step


class _Steps(Numeric):
    """Whole steps from `low` to `high`, perhaps with a word for each."""

    level: ClassVar[Level] = "ordinal"
    widget: ClassVar[str] = "radio"
    low: int
    high: int
    labels: tuple[Text, ...] = ()

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.low, self.high, step=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        steps = self.high - self.low + 1
        if self.labels and len(self.labels) not in (2, steps):
            raise ValueError(
                f"labels: expected none, 2 (the ends) or {steps} (every step), found {len(self.labels)}"
            )
        return self

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        values = range(self.low, self.high + 1)
        words: Sequence[str] = [str(value) for value in values]
        captions: dict[int, str] = {}
        if len(self.labels) == len(values):
            words = self.labels
        elif self.labels:
            captions = {self.low: self.labels[0], self.high: self.labels[1]}
        has_keys = self.low >= 0 and self.high <= 9
        return tuple(
            Choice(str(value), word, key=str(value) if has_keys else "", caption=captions.get(value, ""))
            for value, word in zip(values, words, strict=True)
        )


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


class Binary(Numeric):
    """No or yes, stored as 0 or 1."""

    level: ClassVar[Level] = "nominal"
    widget: ClassVar[str] = "radio"
    kind: Literal["binary"] = "binary"
    labels: tuple[Name, Name] = ("no", "yes")

    @property
    def bounds(self) -> Bounds:
        return Bounds(0, 1, step=1)

    def describe(self) -> str:
        return Sentence("0 ({no}) or 1 ({yes})", no=self.labels[0], yes=self.labels[1])

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        no, yes = self.labels
        return (Choice("1", yes, "1"), Choice("0", no, "0"))


class Slider(Numeric):
    """A line between two ends, 0 to 100 unless said otherwise. Nothing is preset: it counts when moved."""

    level: ClassVar[Level] = "interval"
    widget: ClassVar[str] = "slider"
    kind: Literal["slider"] = "slider"
    low: float = 0
    high: float = 100
    step: float = Field(default=1, gt=0)
    labels: tuple[Text, ...] = ()
    """What the two ends mean."""

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.low, self.high, step=self.step)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.bounds.permit(self.high):
            raise ValueError(f"steps of {self.step:g} do not lead from {self.low:g} to {self.high:g}")
        if len(self.labels) not in (0, 2):
            raise ValueError(f"labels: expected none or 2 (the ends), found {len(self.labels)}")
        return self


class Real(Numeric):
    """Any finite number, perhaps within bounds: what metrics and models give."""

    level: ClassVar[Level] = "interval"
    kind: Literal["real"] = "real"
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> Bounds:
        low = -LARGEST if self.low is None else self.low
        high = LARGEST if self.high is None else self.high
        return Bounds(low, high)
