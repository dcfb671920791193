"""Outputs put in order: best and worst, or a whole ranking. What one gets depends on the others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from palaver.errors import Sentence
from palaver.schema.base import Name
from palaver.schema.scale.base import Bounds, Choice, Impressions, Level, Value
from palaver.schema.scale.numeric import Numeric

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import NDArray

MOST_OUTPUTS = 50


class OutputOrder(Numeric):
    """All outputs of an item on one screen, each with a place among the others."""

    level: ClassVar[Level] = "ordinal"
    side_by_side: ClassVar[bool] = True
    relative: ClassVar[bool] = True

    def n_named(self, n_outputs: int) -> int:
        """How many outputs a rater names, best first."""
        return n_outputs

    @abstractmethod
    def values_of(self, named: Sequence[int], n_outputs: int) -> list[float]:
        """The value of each output where these are named, best first."""

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        """By how the outputs of a screen feel."""
        import numpy as np

        felt = impressions.felt + rng.normal(0, 1e-6, impressions.felt.size)  # nobody feels two exactly alike
        felt = np.where(impressions.careless, rng.normal(0, 1, felt.size), felt)
        screen = np.arange(felt.size) // 10 if impressions.screen is None else impressions.screen
        values = np.zeros(felt.size)
        for number in np.unique(screen):
            own = np.flatnonzero(screen == number)
            best_first = np.argsort(-felt[own], kind="stable")
            values[own] = self.values_of(self._name(best_first.tolist()), own.size)
        return values

    def _name(self, best_first: Sequence[int]) -> Sequence[int]:
        return best_first


class BestWorst(OutputOrder):
    """Best–worst scaling (Louviere & Woodworth 1991): of three or more outputs the best and the worst.

    The best one gets 1, the worst -1, all others 0; a system's mean is its share of best minus its share of
    worst.
    """

    widget: ClassVar[str] = "best_worst"
    unit: ClassVar[str] = "share of best minus share of worst"
    ties_are_unsaid: ClassVar[bool] = True
    fewest_outputs: ClassVar[int] = 3
    kind: Literal["best-worst"] = "best-worst"
    labels: tuple[Name, Name, Name] = ("Best", "Neither", "Worst")

    @property
    def bounds(self) -> Bounds:
        return Bounds(-1, 1, step=1)

    def describe(self) -> str:
        return Sentence("1 (best), -1 (worst) or 0 (neither)")

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        best, neither, worst = self.labels
        return (Choice("1", best, "1"), Choice("0", neither, "2"), Choice("-1", worst, "3"))

    def n_named(self, n_outputs: int) -> int:
        return 2

    def _name(self, best_first: Sequence[int]) -> Sequence[int]:
        return best_first[0], best_first[-1]

    def values_of(self, named: Sequence[int], n_outputs: int) -> list[float]:
        values = [0.0] * n_outputs
        if n_outputs > 1:
            best, worst = named
            values[best], values[worst] = 1.0, -1.0
        return values

    def check_outputs(self, values: Sequence[float]) -> str:
        if values.count(1) == 1 and values.count(-1) == 1:
            return ""
        return Sentence("expected one best and one worst")


class Ranking(OutputOrder):
    """A whole order of the outputs. Pages ask for ranks (1 is best).

    The value is how many of the outputs stand below: of four the best has 3 and the last 0, so that higher is
    better everywhere.
    """

    widget: ClassVar[str] = "ranking"
    unit: ClassVar[str] = "mean number of outputs ranked below"
    fewest_outputs: ClassVar[int] = 2
    kind: Literal["ranking"] = "ranking"
    ties: bool = Field(default=False, strict=True)
    """Whether two outputs may have the same rank."""

    @property
    def bounds(self) -> Bounds:
        return Bounds(0, MOST_OUTPUTS - 1, step=1)

    def describe(self) -> str:
        return Sentence("how many of the other outputs stand below, from 0")

    def choices(self, outputs: Sequence[str] = ()) -> tuple[Choice, ...]:
        return tuple(Choice(str(rank), str(rank)) for rank in range(1, len(outputs) + 1))

    def read_answer(self, answer: object, order: Sequence[int]) -> Value:
        rank = Numeric.parse(self, answer)
        if not 1 <= rank <= len(order):
            raise ValueError(Sentence("expected a rank from 1 to {n}", n=len(order)))
        return len(order) - rank

    def show_answer(self, value: str, order: Sequence[int]) -> str:
        return f"{len(order) - float(value):g}" if value else ""

    def values_of(self, named: Sequence[int], n_outputs: int) -> list[float]:
        values = [0.0] * n_outputs
        for rank, output in enumerate(named, start=1):
            values[output] = float(n_outputs - rank)
        return values

    def check_outputs(self, values: Sequence[float]) -> str:
        n = len(values)
        if self.ties or sorted(values) == list(range(n)):
            return ""
        return Sentence("expected each rank from 1 to {n} once", n=n)
