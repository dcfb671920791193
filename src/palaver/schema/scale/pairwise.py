"""Which of two outputs is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from palaver.errors import Sentence
from palaver.schema.base import Name
from palaver.schema.scale.base import Choice, Form, Impressions, Level, Scale, Value, unexpected

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


class Pairwise(Scale):
    """Which of two is better. The value is about the item's first output, whatever side it was shown on."""

    level: ClassVar[Level] = "nominal"
    form: ClassVar[Form] = "pair"
    widget: ClassVar[str] = "pair"
    side_by_side: ClassVar[bool] = True
    kind: Literal["pairwise"] = "pairwise"
    ties: bool = True
    tie_label: Name = "Cannot tell"
    both_bad: Name | None = None
    """What *both are bad* is called, where it may be answered. It counts as a tie."""

    SCORES: ClassVar[Mapping[str, float]] = MappingProxyType(
        {"win": 1.0, "tie": 0.5, "loss": 0.0, "both bad": 0.5}
    )

    @property
    def outcomes(self) -> Mapping[str, float]:
        left_out = {word for word, has in (("tie", self.ties), ("both bad", self.both_bad)) if not has}
        return {word: score for word, score in self.SCORES.items() if word not in left_out}

    def describe(self) -> str:
        if self.both_bad is not None:
            return Sentence("win, tie, loss or both bad") if self.ties else Sentence("win, loss or both bad")
        return Sentence("win, tie or loss") if self.ties else Sentence("win or loss")

    def parse(self, raw: object) -> str:
        word = raw.strip().casefold() if isinstance(raw, str) else ""
        if word not in self.outcomes:
            raise unexpected(self, raw)
        return word

    def score(self, value: Value) -> float:
        return self.SCORES[self.parse(value)]

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        """The page asks for a place; the stored value is about the item's first output."""
        places = [Choice(str(n), label, str(n + 1)) for n, label in enumerate(outputs)]
        if self.ties:
            places.append(Choice("tie", self.tie_label, "3"))
        if self.both_bad is not None:
            places.append(Choice("both bad", self.both_bad, "4"))
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
