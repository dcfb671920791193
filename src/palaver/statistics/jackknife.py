"""Intervals by leaving out groups, where observations belong to two kinds of clusters: dialogues and raters.

A statistic is found again without each of a few groups of dialogues, without each group of raters, and
without each group of their crossings. The variances add up as those of Cameron, Gelbach & Miller (2011) do:
dialogues + raters - crossings, and never less than the larger of the first two. The quantile is Student's t
with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, Interval, Ints

Scale = Literal["plain", "correlation", "share", "agreement"]
N_GROUPS = 20
"""Of more clusters, some are left out together."""
_NEAR_ONE = 1 - 1e-9
_MOST_REACHED = 1 / math.e
"""The least that leaving out a group may leave of the way to 1 (or -1): logarithms of nothing have no end."""


def deletion_groups(codes: Ints, rng: np.random.Generator) -> Ints:
    """Each cluster's group of at most `N_GROUPS`, dealt out at random."""
    distinct, place = np.unique(codes, return_inverse=True)
    return np.asarray((rng.permutation(distinct.size) % N_GROUPS)[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletions:
    """A statistic without each group of each kind of cluster. nan: undefined without it."""

    dialogues: Floats
    raters: Floats | None = None
    crossings: Floats | None = None


def jackknife_interval(
    value: float, without: Deletions, *, scale: Scale = "plain", share: float = 1.0, confidence: float = 0.95
) -> Interval:
    """The interval around `value`.

    A correlation is taken on Fisher's z, a share (of 0 to 1) on the arcsine scale, an agreement (1 minus what
    raters differ by, which may be far below 0) on the logarithm of what is missing to 1. `share` says which
    part of the dialogues the deletions are of: of a tenth of them the variance is ten times that of all.

    Where all that raters differ by is in one group, they agree perfectly without it. On a logarithm that is
    infinitely far, so it counts as one step: what is missing to 1 divided by e.
    """
    from scipy.special import stdtrit

    _, back = _SCALES[scale]
    centre, variance, df = _spread(value, without, scale, share)
    if not (math.isfinite(variance) and math.isfinite(centre)):
        return Interval(math.nan, math.nan, confidence, "jackknife")
    reach = float(stdtrit(df, 0.5 + confidence / 2)) * math.sqrt(variance)
    low, high = np.sort(back(np.array([centre - reach, centre + reach])))
    return Interval(float(low), float(high), confidence, "jackknife")


def jackknife_p(value: float, without: Deletions, *, scale: Scale = "plain") -> float:
    """Two-sided p of the hypothesis that the statistic is 0; nan where the deletions do not tell."""
    from scipy.special import stdtr

    centre, variance, df = _spread(value, without, scale, 1.0)
    if not (math.isfinite(variance) and math.isfinite(centre) and variance > 0):
        return math.nan
    return 2 * float(stdtr(df, -abs(centre) / math.sqrt(variance)))


def _spread(value: float, without: Deletions, scale: Scale, share: float) -> tuple[float, float, float]:
    """The value on its scale, its variance there, and the degrees of freedom of that."""
    turn = partial(_turned, value, scale)
    parts = {"dialogues": _variance(turn(without.dialogues), share)}
    for name, values in (("raters", without.raters), ("crossings", without.crossings)):
        if values is not None:
            parts[name] = _variance(turn(values), share if name == "crossings" else 1.0)
    dialogues = parts["dialogues"]
    raters = parts.get("raters", _NOTHING)
    crossings = parts.get("crossings", _NOTHING)
    if share < 1:  # what a rater says about the dialogues that were not drawn averages out as well
        surplus = crossings.variance * (1 / share - 1)
        raters = _Part(max(0.0, raters.variance - surplus), raters.df)
    both = dialogues.variance + raters.variance - crossings.variance
    variance = max(dialogues.variance, raters.variance, both)
    centre = float(_SCALES[scale][0](np.array([value]))[0])
    spread = sum(p.variance**2 / p.df for p in (dialogues, raters) if p.df and p.variance > 0)
    df = (dialogues.variance + raters.variance) ** 2 / spread if spread else math.inf
    return centre, variance, min(df, 1e6)


@dataclass(frozen=True, slots=True)
class _Part:
    variance: float
    df: int


_NOTHING = _Part(0.0, 0)


def _variance(values: ArrayLike, share: float) -> _Part:
    """Of the statistic, from its values without each group."""
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if known.size < 2:
        return _Part(math.nan, 0)
    deviations = known - known.mean()
    return _Part(float((known.size - 1) / known.size * (deviations @ deviations)) * share, known.size - 1)


def _turned(value: float, scale: Scale, values: Floats) -> Floats:
    """Values without groups on their scale, where none is infinitely far from `value`."""
    if scale in ("correlation", "agreement"):
        values = np.minimum(values, 1 - (1 - value) * _MOST_REACHED)
    if scale == "correlation":
        values = np.maximum(values, (1 + value) * _MOST_REACHED - 1)
    turn, _ = _SCALES[scale]
    return turn(values)


def _fisher(values: Floats) -> Floats:
    return np.arctanh(np.clip(values, -_NEAR_ONE, _NEAR_ONE))


def _arcsine(values: Floats) -> Floats:
    angle: Floats = np.arcsin(np.sqrt(np.clip(values, 0.0, 1.0)))
    return angle


def _share(angles: Floats) -> Floats:
    shares: Floats = np.sin(np.clip(angles, 0.0, math.pi / 2)) ** 2
    return shares


def _same(values: Floats) -> Floats:
    return values


def _correlation(z: Floats) -> Floats:
    return np.tanh(z)


def _missing(values: Floats) -> Floats:
    return np.log(np.maximum(1 - values, 1 - _NEAR_ONE))


def _agreement(logs: Floats) -> Floats:
    return 1 - np.exp(logs)


_Turn = Callable[[Floats], Floats]
_SCALES: dict[Scale, tuple[_Turn, _Turn]] = {
    "plain": (_same, _same),
    "correlation": (_fisher, _correlation),
    "share": (_arcsine, _share),
    "agreement": (_missing, _agreement),
}
