"""What is summed up over batches, and the perplexities that come of it."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

from palaver.statistics.perplexity import Perplexity


@dataclass
class Totals:
    """Sums over some batches and all processes."""

    loss: float = 0.0
    """What was back-propagated, with label smoothing."""
    nll: float = 0.0
    """Negative log-likelihood of all target tokens."""
    norm: float = 0.0
    """Norms of the gradient, one a step and process."""
    tokens: float = 0.0
    """Target tokens."""
    words: float = 0.0
    spelling: float = 0.0
    """What unknown words cost on top, where a word counts (`palaver.text.spelling`)."""
    examples: float = 0.0
    read: float = 0.0
    """All tokens, those of contexts and knowledge included, without padding."""
    steps: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def are_finite(self) -> bool:
        return all(map(math.isfinite, astuple(self)))

    @property
    def nll_per_token(self) -> float:
        return self.nll / max(self.tokens, 1)

    @property
    def perplexity(self) -> Perplexity:
        return Perplexity(self.nll, max(int(self.tokens), 1), max(int(self.words), 1), self.spelling)
