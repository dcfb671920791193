"""What every scale says, and the names of those there are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import (
    GetCoreSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import PydanticCustomError, core_schema

from palaver.errors import Sentence, nearest
from palaver.registry import Registry
from palaver.schema.base import Noun, Text

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Form = Literal["number", "pair", "boxes", "text"]
Value = float | Text | tuple[Text, ...]
"""A judgement as stored: a number, a word or text, or the ticked boxes."""

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
    screen: NDArray[np.int64] | None = None
    """Entries with the same number are of one rater about one item."""


class Scale(Noun):
    """What every scale says. As a field of a noun it reads any registered kind by its `kind`."""

    if TYPE_CHECKING:
        kind: str
    level: ClassVar[Level]
    widget: ClassVar[str]
    """The macro that asks for a value."""
    form: ClassVar[Form]
    """What statistics see: a number, a comparison of two outputs (win, tie, loss), ticked boxes, or a text,
    of which they see nothing."""
    default_normalisation: ClassVar[str] = "raw"
    side_by_side: ClassVar[bool] = False
    """Whether all outputs of an item are judged on one screen; an item then has at least two."""
    fewest_outputs: ClassVar[int] = 2
    """That an item has whose outputs are judged on one screen."""
    relative: ClassVar[bool] = False
    """Whether what one output gets depends on the others of the item."""
    ties_are_unsaid: ClassVar[bool] = False
    """Whether two outputs with the same value were not compared, instead of being found equal."""
    unit: ClassVar[str] = "mean rating"
    """What the mean of the values is."""
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

    def check_outputs(self, values: Sequence[float]) -> str:
        """What is wrong with the values of all outputs of an item together; nothing for most scales."""
        return ""

    def show_answer(self, value: str, order: Sequence[int]) -> str:
        """What the page would have sent for a stored value."""
        return value

    # --- simulated raters -------------------------------------------------------------------------------

    @abstractmethod
    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        """The values that simulated raters give."""


def unexpected(scale: Scale, raw: object) -> ValueError:
    """For a value that a scale does not permit."""
    return ValueError(Sentence("expected {wanted}, found {found!r}", wanted=scale.describe(), found=raw))


SCALES: Registry[type[Scale]] = Registry(
    "scale",
    {
        "likert": "palaver.schema.scale.numeric:Likert",
        "magnitude": "palaver.schema.scale.magnitude:Magnitude",
        "rank-magnitude": "palaver.schema.scale.magnitude:RankMagnitude",
        "pairwise": "palaver.schema.scale.pairwise:Pairwise",
        "binary": "palaver.schema.scale.numeric:Binary",
        "ordinal": "palaver.schema.scale.numeric:Ordinal",
        "checkboxes": "palaver.schema.scale.boxes:Checkboxes",
        "choice": "palaver.schema.scale.boxes:SingleChoice",
        "slider": "palaver.schema.scale.numeric:Slider",
        "real": "palaver.schema.scale.numeric:Real",
        "text": "palaver.schema.scale.text:FreeText",
        "best-worst": "palaver.schema.scale.order:BestWorst",
        "ranking": "palaver.schema.scale.order:Ranking",
    },
    group="palaver.scales",
)
