"""Magnitude estimation: how many times as good as a reference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import (
    Field,
)

from palaver.errors import Sentence
from palaver.schema.scale.base import Bounds, Impressions, Level, Value
from palaver.schema.scale.numeric import Numeric

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


class Magnitude(Numeric):
    """Magnitude estimation (Bard et al. 1996): how many times as good as a reference of fixed value.

    RankME's forms took positive whole numbers of at most six digits with the reference at 100; with
    `whole_numbers = false` positive reals are permitted. Scores are logarithms of the ratio to the
    reference, because the judgement is a ratio.
    """

    level: ClassVar[Level] = "ratio"
    default_normalisation: ClassVar[str] = "log"
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
        if self.whole_numbers:
            return Sentence("a positive whole number of at most {digits} digits", digits=self.max_digits)
        return Sentence("a positive number of at most {digits} digits", digits=self.max_digits)

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
        return Sentence("Reference: worth {value:g}", value=self.reference)

    @property
    def hint(self) -> str:
        return Sentence("{value:g} = as good as the reference", value=self.reference)

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

    @property
    def standard(self) -> str:
        return Sentence("Standard: worth {value:g}", value=self.reference)

    @property
    def hint(self) -> str:
        return Sentence("{value:g} = as good as the standard", value=self.reference)
