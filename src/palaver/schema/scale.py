"""Scales: the only authority on a judgement.

A scale says which values are permitted, which widget asks for them, at which level they measure
(Stevens 1946: nominal, ordinal, interval, ratio), how a raw value becomes a score, and how a simulated rater
answers. Nothing else in the house asks which scale it has in hand.

A new scale is a class here with a `kind` of its own and a line in `SCALES`, or a class in another package
with an entry point in the group `palaver.scales`. Its `widget` names a macro in
`server/templates/widgets.html.j2`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from palaver.errors import nearest
from palaver.registry import Registry
from palaver.schema.base import Name, Noun, Text

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Form = Literal["number", "pair", "boxes"]
Value = float | Text | tuple[Text, ...]
"""A judgement as stored: a number, one of a pairwise scale's words, or the ticked boxes."""

LARGEST = 1e50
"""Beyond it products of variances overflow; nobody means such a number."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which numbers are permitted: from `low` to `high`, in steps or without."""

    low: float = -LARGEST
    high: float = LARGEST
    step: float | None = None

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are permitted."""
        return self.step is not None and self.step == int(self.step) and self.low == int(self.low)

    @property
    def tolerance(self) -> float:
        """How far off, in steps, rounding may put a number: 0.3 is not quite three times 0.1."""
        return 0.0 if self.whole else 1e-9

    def permit(self, value: float) -> bool:
        if not (math.isfinite(value) and self.low <= value <= self.high):
            return False
        if self.step is None:
            return True
        steps = (value - self.low) / self.step
        return abs(steps - round(steps)) <= self.tolerance


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers that a widget offers."""

    value: str
    """What the page sends."""
    label: str
    key: str = ""
    """The digit that chooses it."""
    caption: str = ""
    """What the end of a scale means, where only the ends have words."""
    alone: bool = False
    """Not to be combined with others."""


@dataclass(frozen=True, slots=True, eq=False)
class Impressions:
    """What simulated raters go by: equally long arrays, an entry for each judgement."""

    felt: Floats
    """How many standard steps above the middle the output feels; for a comparison, above the other one."""
    output: NDArray[np.int64]
    """Entries with the same number are about the same output."""
    careless: Bools
    """Whether the rater answers without reading."""
    j_shaped: Bools
    """Whether the rater puts nearly everything at the top."""


class Scale(Noun):
    """What every scale says. As a field of a noun it reads any registered kind by its `kind`."""

    if TYPE_CHECKING:
        kind: str
    level: ClassVar[Level]
    widget: ClassVar[str]
    """The macro that asks for a value."""
    form: ClassVar[Form]
    """What statistics see: a number, a comparison of two outputs (win, tie, loss), or ticked boxes."""
    default_normalisation: ClassVar[str] = "raw"
    side_by_side: ClassVar[bool] = False
    """Whether all outputs of an item are judged on one screen; an item then has at least two."""
    noise: ClassVar[float] = 1.0
    """How unsteady a simulated rater's yardstick is, compared with judging one output at a time."""

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        if Noun not in cls.__bases__:  # a scale of its own, not `Scale` itself
            return handler(source)
        return core_schema.no_info_plain_validator_function(
            cls._read, serialization=core_schema.simple_ser_schema("any")
        )

    @staticmethod
    def _read(value: object) -> Scale:
        """A scale from its table in a study file, or the scale itself."""
        if isinstance(value, Scale):
            return value
        if not isinstance(value, Mapping):
            raise PydanticCustomError("scale_type", 'expected a table such as { kind = "likert" }')
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in SCALES:
            known = list(SCALES)
            text = f"kind: expected one of {', '.join(known)}, found {kind!r}{nearest(str(kind), known)}"
            raise PydanticCustomError("scale_kind", "{text}", {"text": text})
        return SCALES.get(kind).model_validate(value)

    @model_serializer(mode="wrap")
    def _keep_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """`kind` is a default, but what the scale is read back by."""
        fields: dict[str, Any] = write(self)
        fields.setdefault("kind", self.kind)
        return fields

    # --- values -----------------------------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> str:
        """The permitted values in words, for pages, help texts and error messages."""

    @abstractmethod
    def parse(self, raw: object) -> Value:
        """The stored value for what was read or typed; ValueError says what was expected."""

    @abstractmethod
    def score(self, value: Value) -> float:
        """The number that statistics use."""

    def scores(self, values: ArrayLike) -> Floats:
        """The scores of many permitted values at once: numbers, or the texts of words and boxes."""
        import numpy as np

        distinct, place = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        return np.array([self.score(text) for text in distinct.tolist()], dtype=np.float64)[place]

    @property
    def bounds(self) -> Bounds:
        """The permitted numbers."""
        return Bounds()

    @property
    def outcomes(self) -> Mapping[str, float]:
        """The words of a comparison and the numbers that files may have in their place."""
        return MappingProxyType({})

    @property
    def reference_value(self) -> float:
        """The number of an output that is as good as the reference."""
        return 100.0

    # --- pages ------------------------------------------------------------------------------------------

    @property
    def standard(self) -> str:
        """What a page calls the item's reference, where the scale measures by it."""
        return ""

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        """What the widget offers. `outputs` are their names in the order shown."""
        return ()

    def read_answer(self, answer: object, order: Sequence[int]) -> Value:
        """The stored value for what a page sent. `order`: the item's outputs in the order shown."""
        return self.parse(answer)

    def show_answer(self, value: str, order: Sequence[int]) -> str:
        """What the page would have sent for a stored value."""
        return value

    # --- simulated raters -------------------------------------------------------------------------------

    @abstractmethod
    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        """The values that simulated raters give."""


# --- numbers ------------------------------------------------------------------------------------------------


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
        number = "a whole number" if self.bounds.whole and step == 1 else "a number"
        if low == -LARGEST:
            return f"{number} up to {high:g}" if high < LARGEST else "a finite number below 1e50"
        upto = f" to {high:g}" if high < LARGEST else ""
        steps = "" if step is None or number == "a whole number" else f" in steps of {step:g}"
        return f"{number} from {low:g}{upto}{steps}"

    def parse(self, raw: object) -> float:
        value = math.nan
        if isinstance(raw, int | float | str) and not isinstance(raw, bool):
            with suppress(ValueError, OverflowError):
                value = (
                    math.nan if isinstance(raw, str) and "_" in raw else float(raw)
                )  # Python reads 1_0 as 10
        if not self.bounds.permit(value):
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
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
        return f"0 ({self.labels[0]}) or 1 ({self.labels[1]})"

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


class Magnitude(Numeric):
    """Magnitude estimation (Bard et al. 1996): how many times as good as a reference of fixed value.

    RankME's forms took positive whole numbers of at most six digits with the reference at 100; with
    `whole_numbers = false` positive reals are permitted. Scores are logarithms of the ratio to the
    reference, because the judgement is a ratio.
    """

    level: ClassVar[Level] = "ratio"
    default_normalisation: ClassVar[str] = "log"
    reference_name: ClassVar[str] = "Reference"
    kind: Literal["magnitude"] = "magnitude"
    reference: float = Field(default=100, gt=0)
    whole_numbers: bool = True
    max_digits: int = Field(default=6, ge=1, le=15)

    @property
    def bounds(self) -> Bounds:
        highest = float(10**self.max_digits - 1)
        return Bounds(1, highest, step=1) if self.whole_numbers else Bounds(math.ulp(0.0), highest)

    @property
    def reference_value(self) -> float:
        return self.reference

    def describe(self) -> str:
        number = "whole number" if self.whole_numbers else "number"
        return f"a positive {number} of at most {self.max_digits} digits"

    def score(self, value: Value) -> float:
        return math.log(self.parse(value)) - math.log(self.reference)  # the ratio itself may overflow

    def scores(self, values: ArrayLike) -> Floats:
        import numpy as np

        scores: Floats = np.log(np.asarray(values, dtype=np.float64)) - math.log(self.reference)
        return scores

    @property
    def pattern(self) -> str:
        digits = self.max_digits
        if self.whole_numbers:
            return rf"\s*0*[1-9][0-9]{{0,{digits - 1}}}\s*"
        return rf"\s*(?=.*[1-9])[0-9]{{0,{digits}}}([.,][0-9]+)?\s*"

    @property
    def standard(self) -> str:
        return f"{self.reference_name}: worth {self.reference:g}"

    @property
    def hint(self) -> str:
        return f"{self.reference:g} = as good as the {self.reference_name.lower()}"

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        import numpy as np

        felt = impressions.felt
        guess = np.where(impressions.careless, rng.normal(0, 0.3, felt.size), 0.3 * felt)
        value = np.exp(np.clip(math.log(self.reference) + guess, -700, 700))
        if self.whole_numbers:
            step = np.where(value >= 20, 5, 1)  # people write round numbers
            value = np.round(value / step) * step
        return np.asarray(np.clip(value, max(self.bounds.low, 1e-6), self.bounds.high))


class RankMagnitude(Magnitude):
    """RankME (Novikova et al. 2018): magnitude estimation of all outputs of an item on one screen."""

    kind: Literal["rank-magnitude"] = "rank-magnitude"  # type: ignore[assignment]
    side_by_side: ClassVar[bool] = True
    noise: ClassVar[float] = 0.7  # seeing all outputs at once steadies the yardstick, which is RankME's point
    reference_name: ClassVar[str] = "Standard"


# --- words --------------------------------------------------------------------------------------------------


class Pairwise(Scale):
    """Which of two is better. The value is about the item's first output, whatever side it was shown on."""

    level: ClassVar[Level] = "nominal"
    form: ClassVar[Form] = "pair"
    widget: ClassVar[str] = "pair"
    side_by_side: ClassVar[bool] = True
    kind: Literal["pairwise"] = "pairwise"
    ties: bool = True
    tie_label: Name = "Cannot tell"

    SCORES: ClassVar[Mapping[str, float]] = MappingProxyType({"win": 1.0, "tie": 0.5, "loss": 0.0})

    @property
    def outcomes(self) -> Mapping[str, float]:
        return {word: score for word, score in self.SCORES.items() if self.ties or word != "tie"}

    def describe(self) -> str:
        return "win, tie or loss" if self.ties else "win or loss"

    def parse(self, raw: object) -> str:
        word = raw.strip().casefold() if isinstance(raw, str) else ""
        if word not in self.outcomes:
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        return word

    def score(self, value: Value) -> float:
        return self.SCORES[self.parse(value)]

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        """The page asks for a place; the stored value is about the item's first output."""
        places = [Choice(str(n), label, str(n + 1)) for n, label in enumerate(outputs)]
        if self.ties:
            places.append(Choice("tie", self.tie_label, "3"))
        return tuple(places)

    def read_answer(self, answer: object, order: Sequence[int]) -> Value:
        place = str(answer).removesuffix(".0")
        if place not in ("0", "1"):
            return self.parse(answer)
        return "win" if order[int(place)] == 0 else "loss"

    def show_answer(self, value: str, order: Sequence[int]) -> str:
        first = order.index(0)
        return {"win": str(first), "loss": str(1 - first)}.get(value, value)

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        import numpy as np

        felt = impressions.felt
        felt = np.where(impressions.careless, rng.normal(0, 1, felt.size), felt)
        margin = 0.3
        if not self.ties:  # who feels no difference at all has to toss a coin
            margin = 0.0
            felt = np.where(felt == 0, rng.normal(0, 1, felt.size), felt)
        return np.where(felt > margin, "win", np.where(felt < -margin, "loss", "tie")).astype(object)


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
        return f"one of {', '.join(self.options)}"

    def parse(self, raw: object) -> tuple[str, ...]:
        chosen = super().parse(raw)
        if len(chosen) != 1:
            raise ValueError(f"expected {self.describe()}, found {raw!r}")
        return chosen


SCALES: Registry[type[Scale]] = Registry(
    "scale",
    {
        "likert": Likert,
        "magnitude": Magnitude,
        "rank-magnitude": RankMagnitude,
        "pairwise": Pairwise,
        "binary": Binary,
        "ordinal": Ordinal,
        "checkboxes": Checkboxes,
        "choice": SingleChoice,
        "slider": Slider,
        "real": Real,
    },
    group="palaver.scales",
)
