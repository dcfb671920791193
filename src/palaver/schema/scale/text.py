"""Words of the rater's own."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from palaver.errors import Sentence
from palaver.schema.scale.base import Form, Impressions, Level, Scale, Value, unexpected

if TYPE_CHECKING:  # the nouns are imported everywhere and start without numpy
    import numpy as np
    from numpy.typing import NDArray

LONGEST = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


class FreeText(Scale):
    """What the rater writes. It is listed and counted, never made into a number."""

    level: ClassVar[Level] = "nominal"
    form: ClassVar[Form] = "text"
    widget: ClassVar[str] = "text"
    kind: Literal["text"] = "text"
    min_length: int = Field(default=1, ge=1, le=LONGEST, strict=True)
    max_length: int = Field(default=2000, ge=1, le=LONGEST, strict=True)
    lines: int = Field(default=1, ge=1, le=40, strict=True)
    """How many the field on the page has; with one, the answer has no line breaks."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_length < self.min_length:
            raise ValueError(f"max_length ({self.max_length}) is below min_length ({self.min_length})")
        return self

    def describe(self) -> str:
        if self.min_length == 1:
            return Sentence("a text of at most {longest:,} characters", longest=self.max_length)
        return Sentence(
            "a text of {shortest:,} to {longest:,} characters",
            shortest=self.min_length,
            longest=self.max_length,
        )

    def parse(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise unexpected(self, raw)
        lines = [_CONTROL.sub("", line).rstrip() for line in raw.splitlines()]
        text = ("\n" if self.lines > 1 else " ").join(lines).strip()
        if not self.min_length <= len(text) <= self.max_length:
            problem = Sentence(
                "expected {wanted}, found {n:,} characters", wanted=self.describe(), n=len(text)
            )
            raise ValueError(problem)
        return text

    def score(self, value: Value) -> float:
        return math.nan

    def simulate(self, impressions: Impressions, rng: np.random.Generator) -> NDArray[Any]:
        """A few words by how the output feels; whoever does not read writes the same every time."""
        import numpy as np

        felt = impressions.felt
        opinions = ("This is poor.", "This is neither good nor bad.", "This is good.")
        words = np.array([self._fit(text) for text in (*opinions, "ok")], dtype=object)
        opinion = np.where(felt < -0.7, 0, np.where(felt > 0.7, 2, 1))
        return np.asarray(words[np.where(impressions.careless, 3, opinion)])

    def _fit(self, text: str) -> str:
        """As long as permitted."""
        while len(text) < self.min_length:
            text = f"{text} {text}"
        return text[: self.max_length].strip().ljust(self.min_length, ".")
