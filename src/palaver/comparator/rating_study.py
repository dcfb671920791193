"""The rating study (Liang et al. 2020, section 3): how skewed and coarse ratings are, and whom to believe.

Table 1 is the distribution; J-shaped are ratings most of which are the highest there is. Table 2 counts how
often a comparison of two dialogues disagrees with their ratings, by how far these lie apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.training_data import Pairs, RatedDialogues
from palaver.errors import DataError
from palaver.statistics.power import wilson_interval
from palaver.tabular import Tabular, show_number

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


@dataclass(frozen=True)
class Disagreement:
    """Compared pairs whose ratings lie apart by more than `over` and at most `up_to`; 95% by Wilson."""

    over: float
    up_to: float
    n: int
    n_disagree: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class RatingStudy(Tabular):
    """Ratings that people left. Tables: distribution, disagreement."""

    distribution: RatingDistribution
    disagreement: tuple[Disagreement, ...]
    """Empty where nobody compared dialogues."""
    n_raters: int
    level_share: float
    """The part of the variance that lies between raters or sittings; nan where they are not known."""
    notes: tuple[str, ...]

    def _headline(self) -> str:
        shape = "J-shaped" if self.distribution.j_shaped else "not J-shaped"
        return f"{self.distribution.n:,} ratings, {shape}, {show_number(self.distribution.top)} at the top"

    def _tables(self) -> dict[str, Any]:
        d = self.distribution
        levels = [*d.edges[: len(d.counts)]]
        names = ("over", "up_to", "n", "n_disagree", "share", "low", "high")
        return {
            "distribution": {"rating": levels, "n": list(d.counts), "share": list(d.fractions)},
            "disagreement": {name: [getattr(row, name) for row in self.disagreement] for name in names},
        }


def study_file(rated: RatedDialogues, pairs: Pairs | None = None) -> RatingStudy:
    """The study of rated dialogues; `pairs` are comparisons of them by somebody else."""
    from palaver.comparator.rater_effects import effects, sittings

    raters, groups = rated.codes("rater"), rated.codes("group")
    n_known = int((raters >= 0).sum())
    notes = []
    level_share = math.nan
    if not n_known:
        notes.append(
            "no rating names its rater: raters' levels cannot be told from dialogues, ratings cannot be "
            "cleaned, and no interval can resample raters"
        )
    else:
        known = raters >= 0
        n_ratings = np.bincount(raters[known])
        if len(n_ratings) < 2:
            notes.append("all ratings are by one rater: nothing says whether others would agree")
        elif n_ratings.max() < 2:
            notes.append("no rater rated two dialogues: raters' levels cannot be told from dialogues")
        else:
            level_share = effects(rated.values[known], sittings(raters[known], groups[known])).level_share
        if n_known < len(rated):
            notes.append(f"{len(rated) - n_known:,} ratings name no rater")
    disagreement = () if pairs is None else _disagreement(rated, pairs, notes)
    return RatingStudy(
        study_ratings(rated.values, rated.scale),
        disagreement,
        len(np.unique(raters[raters >= 0])),
        level_share,
        tuple(notes),
    )


def _disagreement(rated: RatedDialogues, pairs: Pairs, notes: list[str]) -> tuple[Disagreement, ...]:
    """Table 2 by quarters of the scale: on five stars these are gaps of 1, 2, 3 and 4."""
    y = rated.values
    gap = (y[pairs.first] - y[pairs.second]) * pairs.label  # (P,) below 0: the better one is rated lower
    n_equal = int((gap == 0).sum())
    if n_equal:
        notes.append(f"{n_equal:,} compared pairs have equal ratings, which say nothing")
    if len(gap) > n_equal and not (gap < 0).any():
        notes.append("no comparison disagrees with the ratings: were the pairs made of them?")
    quarter = (rated.scale[1] - rated.scale[0]) / 4
    rows = []
    for k in range(4):
        over, up_to = k * quarter, (k + 1) * quarter
        own = (np.abs(gap) > over) & (np.abs(gap) <= up_to)
        n, n_disagree = int(own.sum()), int((gap[own] < 0).sum())
        low, high = wilson_interval(n_disagree, n) if n else (math.nan, math.nan)
        rows.append(Disagreement(over, up_to, n, n_disagree, n_disagree / n if n else math.nan, low, high))
    return tuple(rows)


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
