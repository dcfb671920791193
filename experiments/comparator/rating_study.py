"""The rating study (Liang et al. 2020, section 3): how skewed and coarse users' ratings are (Table 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.errors import DataError

_LEVELS = 12  # at most so many different ratings are counted one by one, more in bins


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingDistribution:
    """Table 1 and what is odd about it."""

    edges: tuple[float, ...]
    """The levels of a coarse scale, or the borders of bins [a, b), the last with its upper border."""
    binned: bool
    counts: tuple[int, ...]
    fractions: tuple[float, ...]
    mean: float
    sd: float
    skewness: float
    """Of the sample, without correction; nan where all are equal."""
    bottom: float
    """Share in the lowest level or bin; `top` in the highest."""
    top: float
    polarity: float
    """Share at either end."""
    positive: float
    """Share above the middle of the scale, of those not in the middle."""
    j_shaped: bool
    """The highest level or bin holds most ratings, and at least twice its even share."""
    ties: float
    """How probable it is that two dialogues have exactly the same rating: pairs nobody can tell apart."""
    scale: tuple[float, float]
    n: int
    dropped: int
    """Dialogues without a rating."""


def study_ratings(
    ratings: ArrayLike, scale: tuple[float, float] | None = None, *, bins: int = 10
) -> RatingDistribution:
    """The distribution of ratings; nan stands for none. `scale` = least and greatest rating there can be.

    >>> study = study_ratings([1, 5, 5, 4, 5, 3], (1, 5))
    >>> study.counts, study.top, study.j_shaped
    ((1, 0, 1, 1, 3), 0.5, True)
    """
    if bins < 2:
        raise ValueError(f"bins must be 2 or more, not {bins}")
    y = np.asarray(ratings, dtype=np.float64)
    if y.ndim != 1:
        raise ValueError(f"ratings must be 1-D, not of shape {y.shape}")
    there = y[~np.isnan(y)]
    if not there.size:
        raise DataError("there are no ratings", "give dialogues with a rating")
    low, high = scale or (float(there.min()), float(there.max()))
    if not (math.isfinite(low) and math.isfinite(high) and low <= high) or (scale and low == high):
        raise ValueError(f"scale must be two numbers, the lower first, not {low:g} and {high:g}")
    outside = np.flatnonzero((there < low) | (there > high))
    if outside.size:
        raise DataError(
            f"{outside.size} of {there.size} ratings lie outside the scale {low:g} to {high:g}, "
            f"the first is {there[outside[0]]:g}",
            "give the scale that was used",
        )
    edges, counts, binned = _count(there, low, high, bins)
    fractions = counts / there.size
    sd = float(there.std())
    middle = (low + high) / 2
    above, below = int((there > middle).sum()), int((there < middle).sum())
    _, same = np.unique(there, return_counts=True)
    n = there.size
    ends = (fractions[0] + fractions[-1]) if len(counts) > 1 else 1.0
    return RatingDistribution(
        edges=tuple(edges),
        binned=binned,
        counts=tuple(counts.tolist()),
        fractions=tuple(fractions.tolist()),
        mean=float(there.mean()),
        sd=sd,
        skewness=float(((there - there.mean()) ** 3).mean() / sd**3) if sd > 0 else math.nan,
        bottom=float(fractions[0]),
        top=float(fractions[-1]),
        polarity=float(ends),
        positive=above / (above + below) if above + below else math.nan,
        j_shaped=bool(len(counts) > 1 and counts[-1] == counts.max() and fractions[-1] * len(counts) >= 2),
        ties=float((same * (same - 1.0)).sum() / (n * (n - 1.0))) if n > 1 else math.nan,
        scale=(low, high),
        n=n,
        dropped=y.size - n,
    )


def _count(
    y: NDArray[np.float64], low: float, high: float, bins: int
) -> tuple[list[float], NDArray[np.int64], bool]:
    """Whole-number scales of a few levels are counted by level, empty ones too; all else in equal bins."""
    whole = float(low).is_integer() and float(high).is_integer()
    if whole and high - low < _LEVELS and np.array_equal(y, np.round(y)):
        levels = np.arange(int(low), int(high) + 1)
        return (
            levels.astype(float).tolist(),
            np.bincount((y - low).astype(np.int64), minlength=levels.size),
            False,
        )
    if low == high:
        return [low], np.array([y.size]), False
    counts, edges = np.histogram(y, bins=bins, range=(low, high))
    return edges.tolist(), counts, True
