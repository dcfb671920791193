"""Which dialogues should people rate? More of those on which the judge is likely to be wrong.

Active statistical inference (Zrnic & Candès 2024, arXiv:2403.03208): a dialogue is drawn with a probability
in proportion to how far people and the judge are expected to differ on it, and its ratings count 1 /
probability. Estimates stay right on average whatever the expectation was; a good one makes them more certain.
As the paper advises, half of the probability is spread evenly, so that a bad expectation costs little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, Rng
from palaver.statistics.clusters import Codes
from palaver.statistics.prediction_powered import FEWEST_DIALOGUES
from palaver.tabular import show_fixed

EVEN_PART = 0.5
"""The part of the sampling probability that all dialogues share alike."""
_CHANCE = 0.05
"""How often a signal that foretells nothing is used all the same."""
_WIDEST = 4.0
"""A dialogue is expected to differ at most so many times as much as the average, in variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualModel:
    """How far people and the judge are expected to differ, from a signal of the judge's: a straight line."""

    mean: float
    """The mean squared difference in the pilot."""
    slope: float
    """By how much it rises with the signal."""
    correlation: float
    """Of the size of the difference with the signal, in the pilot."""
    centre: float
    reason: str = ""
    """Why all dialogues are expected to differ alike; empty where they are not."""

    def variance(self, signal: ArrayLike) -> Floats:
        """The expected squared difference of dialogues."""
        values = np.asarray(signal, dtype=np.float64)
        if self.reason:
            return np.full(values.shape, self.mean)
        expected = self.mean + self.slope * (np.nan_to_num(values, nan=self.centre) - self.centre)
        return np.asarray(np.clip(expected, self.mean / _WIDEST, self.mean * _WIDEST))


def fit_residuals(residual: ArrayLike, signal: ArrayLike, n_tried: int = 1) -> ResidualModel:
    """Fit a pilot's squared differences (people minus judge, one a dialogue) to a signal of the judge's.

    A signal that foretells no more than chance is not used; of `n_tried` signals, by chance one looks good.
    """
    from scipy.special import ndtri

    rest, values = np.asarray(residual, dtype=np.float64), np.asarray(signal, dtype=np.float64)
    known = np.isfinite(rest) & np.isfinite(values)
    rest, values = rest[known], values[known]
    if rest.size:
        rest = rest - rest.mean()
    squares = rest**2
    mean = float(squares.mean()) if squares.size else math.nan
    centre = float(values.mean()) if values.size else math.nan
    reason, rho, slope = "", math.nan, 0.0
    if values.size < FEWEST_DIALOGUES or values.std() == 0 or np.abs(rest).std() == 0:
        reason = "nothing tells dialogues apart on which the judge is sure from others"
    else:
        rho = float(np.corrcoef(np.abs(rest), values)[0, 1])
        slope = float(np.cov(squares, values)[0, 1] / values.var(ddof=1))
        least = float(ndtri(1 - _CHANCE / 2 / n_tried)) / math.sqrt(values.size)
        if abs(rho) < least:
            reason = (
                f"nothing that the judge says foretells where it is wrong (correlation {show_fixed(rho)}; "
            )
            reason += f"{least:.2f} would be more than chance)"
    return ResidualModel(mean=mean, slope=slope, correlation=rho, centre=centre, reason=reason)


def sampling_probabilities(variance: ArrayLike, n: int) -> Floats:
    """With which probability each dialogue is drawn, if `n` are drawn in all.

    In proportion to the expected standard deviation, mixed with an even part; nothing above 1.
    """
    squares = np.asarray(variance, dtype=np.float64)
    if not 0 < n <= squares.size:
        raise ValueError(f"n: expected 1 to {squares.size} dialogues, found {n}")
    if not (np.isfinite(squares).all() and (squares >= 0).all()):
        raise ValueError("variances must be 0 or more")
    spread = np.sqrt(squares)
    shares = np.full(spread.size, 1 / spread.size)
    if spread.sum() > 0:
        shares = EVEN_PART * shares + (1 - EVEN_PART) * spread / spread.sum()
    probability = np.zeros(spread.size)
    surely = np.zeros(spread.size, dtype=bool)
    while True:  # what would be above 1 is drawn surely, and the others share what is left
        free = ~surely
        probability[surely] = 1.0
        probability[free] = (n - surely.sum()) * shares[free] / max(shares[free].sum(), 1e-300)
        above = free & (probability > 1)
        if not above.any():
            return probability
        surely |= above


def draw_sample(probability: ArrayLike, rng: Rng) -> Codes:
    """Draw dialogues, each with its own probability; as many as the probabilities add up to.

    Systematic sampling in a random order (Madow 1949), so that the number drawn is not left to chance.
    """
    chances = np.asarray(probability, dtype=np.float64)
    generator = np.random.default_rng(rng)
    order = generator.permutation(chances.size)
    edges = np.cumsum(chances[order]) + generator.random()
    before = edges - chances[order]
    # the tolerance keeps a sum such as 2.9999999999 from losing one
    return np.sort(order[np.floor(edges + 1e-9) > np.floor(before + 1e-9)]).astype(np.int64)


def sampling_gain(variance: ArrayLike, probability: ArrayLike) -> float:
    """What unequal probabilities multiply the variance of the residual mean by, beside equal ones."""
    squares, chances = np.asarray(variance, dtype=np.float64), np.asarray(probability, dtype=np.float64)
    return float(np.mean(squares / chances) * chances.mean() / squares.mean())
