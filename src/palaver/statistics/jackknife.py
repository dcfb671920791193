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
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, Interval

Scale = Literal["plain", "correlation", "share"]
_NEAR_ONE = 1 - 1e-9


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

    A correlation is taken on Fisher's z, a share (of 0 to 1) on the arcsine scale. `share` says which part
    of the dialogues the deletions are of: of a tenth of them the variance is ten times that of all.
    """
    turn, back = _SCALES[scale]
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
    centre = float(turn(np.array([value]))[0])
    if not (math.isfinite(variance) and math.isfinite(centre)):
        return Interval(math.nan, math.nan, confidence, "jackknife")
    from scipy.special import stdtrit

    spread = sum(p.variance**2 / p.df for p in (dialogues, raters) if p.df and p.variance > 0)
    df = (dialogues.variance + raters.variance) ** 2 / spread if spread else math.inf
    reach = float(stdtrit(min(df, 1e6), 0.5 + confidence / 2)) * math.sqrt(variance)
    low, high = back(np.array([centre - reach, centre + reach]))
    return Interval(float(low), float(high), confidence, "jackknife")


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


_Turn = Callable[[Floats], Floats]
_SCALES: dict[Scale, tuple[_Turn, _Turn]] = {
    "plain": (_same, _same),
    "correlation": (_fisher, _correlation),
    "share": (_arcsine, _share),
}
