"""How well scores agree with compared pairs (Table 4 of Liang et al. 2020), and how honest probabilities are.

Equal scores are half right. Kappa's standard error is Cohen's, sqrt(p(1 - p) / n) / (1 - chance); those
printed in the paper are smaller by the square root of 2, as if every pair had been counted both ways round.
Pairs share dialogues, so the interval of the accuracy resamples raters where they are told, else groups of
connected pairs, not pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.training_data import Pairs
from palaver.errors import DataError
from palaver.statistics.power import wilson_interval

_REPLICATES = 2000
FEWEST_GROUPS = 10
"""With fewer groups of connected pairs, resampling them says nothing and Wilson's interval is given."""


@dataclass(frozen=True)
class PairResult:
    """Agreement of scores with compared pairs; `low` and `high` hold the accuracy with 95%."""

    accuracy: float
    low: float
    high: float
    kappa: float
    kappa_se: float
    n: int
    n_ties: int = 0
    n_groups: int = 0


@dataclass(frozen=True)
class Bin:
    """Pairs with a probability in [low, high): what was said on average and how often it came true."""

    low: float
    high: float
    probability: float
    rate: float
    n: int


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error over the bins, weighted by their pairs, and the Brier score."""

    ece: float
    brier: float
    bins: tuple[Bin, ...]
    n: int


def evaluate_pairs(scores: ArrayLike, pairs: Pairs, groups: NDArray[np.int64] | None = None) -> PairResult:
    """How often the better dialogue of a pair has the higher score. `groups` (P,) are resampled together."""
    values = np.asarray(scores, dtype=np.float64)
    if not len(pairs):
        raise DataError("there are no compared pairs to evaluate on")
    if values.ndim != 1 or max(pairs.first.max(), pairs.second.max()) >= len(values):
        raise DataError(f"expected one score per dialogue, found an array of shape {values.shape}")
    difference = values[pairs.first] - values[pairs.second]  # (P,)
    return evaluate_differences(difference, pairs.label, connected(pairs) if groups is None else groups)


def evaluate_differences(
    difference: NDArray[np.float64], label: ArrayLike, groups: NDArray[np.int64]
) -> PairResult:
    """The same of how much better the first of each pair is said to be, whoever says so."""
    if not np.isfinite(difference).all():
        raise DataError(f"{int((~np.isfinite(difference)).sum())} pairs have a score that is not a number")
    said = (np.sign(difference) + 1) / 2  # (P,) 1 first, 0 second, 1/2 neither
    truth = (np.asarray(label) > 0).astype(np.float64)  # (P,)
    right = said * truth + (1 - said) * (1 - truth)  # (P,)
    n, accuracy = len(right), float(right.mean())
    chance = float(said.mean() * truth.mean() + (1 - said.mean()) * (1 - truth.mean()))
    if chance < 1:
        kappa = (accuracy - chance) / (1 - chance)
        se = math.sqrt(accuracy * (1 - accuracy) / n) / (1 - chance)
    else:  # all labels and all predictions are the same side
        kappa, se = math.nan, math.nan
    names, codes = np.unique(groups, return_inverse=True)
    if len(names) >= FEWEST_GROUPS:
        low, high = _resampled(right, codes, len(names))
    else:
        low, high = wilson_interval(accuracy * n, n, 0.95)
    return PairResult(accuracy, low, high, kappa, se, n, int((difference == 0).sum()), len(names))


def calibration(prob: ArrayLike, label: ArrayLike, bins: int = 10) -> Calibration:
    """Reliability of P(first is better) against labels of +1/-1 (or 1/0), in bins of equal width."""
    p = np.asarray(prob, dtype=np.float64)
    y = (np.asarray(label) > 0).astype(np.float64)
    if p.shape != y.shape or p.ndim != 1 or not p.size or bins < 1:
        raise DataError(f"expected one probability per label, found {p.shape} and {y.shape}")
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("probabilities must lie between 0 and 1")
    which = np.minimum((p * bins).astype(np.int64), bins - 1)  # 1.0 belongs to the last bin
    count = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        said = np.bincount(which, p, bins) / count
        came = np.bincount(which, y, bins) / count
    filled = [
        Bin(i / bins, (i + 1) / bins, float(said[i]), float(came[i]), int(count[i])) for i in range(bins)
    ]
    ece = sum(b.n * abs(b.probability - b.rate) for b in filled if b.n) / len(p)
    return Calibration(float(ece), float(((p - y) ** 2).mean()), tuple(filled), len(p))


def connected(pairs: Pairs) -> NDArray[np.int64]:
    """(P,) the group of each pair: pairs that share a dialogue, directly or through others, are in one."""
    parent = {int(i): int(i) for i in pairs.used}

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i, j in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        parent[root(i)] = root(j)
    _, groups = np.unique([root(i) for i in pairs.first.tolist()], return_inverse=True)
    return groups.astype(np.int64)


def _resampled(right: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    hits = np.bincount(groups, right, n_groups)
    sizes = np.bincount(groups, minlength=n_groups)
    drawn = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_REPLICATES)  # (R, G)
    low, high = np.quantile((drawn @ hits) / (drawn @ sizes), [0.025, 0.975])
    return float(low), float(high)
