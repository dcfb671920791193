"""Confidence sequences: intervals that stay right however often somebody looks, so a study may stop early.

An ordinary 95% interval is right in 95% of studies at one moment fixed before. Looked at thirty times, it is
wrong at some look in nearly a third. These hold at all looks together.

- `betting_sequence`: means of bounded values, exact for every sample size (Waudby-Smith & Ramdas 2024,
  "Estimating means of bounded random variables by betting": the hedged capital process with predictable
  plug-in bets). Values must be independent.
- `clustered_look`: differences of systems where raters cross dialogues, by the time-uniform central limit
  theorem (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024, "Time-uniform central limit theory and
  asymptotic confidence sequences": Robbins' normal mixture with an estimated variance). The variance is
  clustered by dialogue and rater, with quantiles of t in place of normal ones; a judge's scores, if given,
  make it smaller (`prediction_powered`). It says nothing before `FIRST_LOOK` dialogues.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palaver.errors import count_of
from palaver.statistics.bootstrap import Floats, check_fraction
from palaver.statistics.clusters import FEWEST_RATERS, ClusterInterval, clustered_difference, clustered_mean
from palaver.statistics.prediction_powered import prediction_powered_mean

Decision = Literal["better", "worse", "equivalent", "go on"]

FIRST_LOOK = 10
"""Dialogues before the first look: the central limit theorem needs some."""
_GRID = 1001
_MOST_BET = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known after so many ratings."""

    n_ratings: int
    n_dialogues: int
    value: float
    low: float
    high: float
    decision: Decision
    reason: str = ""


def decide(low: float, high: float, within: float | None) -> Decision:
    """What an interval of a difference says; `within` is how small a difference does not matter."""
    if math.isnan(low) or math.isnan(high):
        return "go on"
    if low > 0:
        return "better"
    if high < 0:
        return "worse"
    if within is not None and -within < low and high < within:
        return "equivalent"
    return "go on"


def widening(n_dialogues: float, alpha: float, planned: float) -> float:
    """By how many standard errors the interval reaches after `n_dialogues`, to hold at all looks.

    It is shortest, among such sequences, at about `planned` dialogues.
    """
    check_fraction("alpha", alpha)
    log = -2 * math.log(alpha)
    rho2 = (log + math.log(log) + 1) / planned if log > 1 else 1 / planned
    scale = n_dialogues * rho2
    return math.sqrt(2 * (scale + 1) / scale * math.log(math.sqrt(scale + 1) / alpha))


def clustered_look(
    value: ArrayLike,
    is_first: ArrayLike | None,
    dialogue: ArrayLike,
    rater: ArrayLike,
    *,
    planned: int,
    prediction: ArrayLike | None = None,
    unrated: ArrayLike = (),
    sampling: ArrayLike | None = None,
    within: float | None = None,
    alpha: float = 0.05,
) -> Look:
    """The first system minus the second after all of these ratings: one interval of the sequence.

    Without `is_first` the values are differences already (a win counts 0.5, a loss -0.5).
    `planned` is the number of dialogues that the whole study would have. `prediction` are a judge's scores
    of what was rated, `unrated` its differences on dialogues that nobody rated yet. `sampling` is the
    probability with which each rating's dialogue was drawn, where not all had the same.
    """
    codes = np.asarray(dialogue)
    first = None if is_first is None else np.asarray(is_first, dtype=bool)
    shared = np.unique(codes).size if first is None else np.intersect1d(codes[first], codes[~first]).size
    n = codes.size
    if shared < FIRST_LOOK:
        have = "1 dialogue has" if shared == 1 else f"{shared} dialogues have"
        reason = f"{have} ratings of both systems; the first look is at {FIRST_LOOK}"
        return Look(
            n_ratings=n, n_dialogues=shared, value=math.nan, low=math.nan, high=math.nan, decision="go on",
            reason=reason,
        )  # fmt: skip
    interval: ClusterInterval
    if prediction is None:
        counts = None if sampling is None else 1 / np.asarray(sampling, dtype=np.float64)
        if first is None:
            interval = clustered_mean(value, codes, rater, weight=counts)
        else:
            interval = clustered_difference(value, first, codes, rater, weight=counts)
    else:
        second = None if first is None else ~first
        interval = prediction_powered_mean(
            value, prediction, codes, rater, unrated, is_second=second, sampling=sampling
        ).together
    few_raters = 0 < interval.n_raters < FEWEST_RATERS
    if interval.reason or few_raters:
        reason = (
            interval.reason or f"{count_of(interval.n_raters, 'rater')}; at least {FEWEST_RATERS} are needed"
        )
        return Look(
            n_ratings=n, n_dialogues=shared, value=interval.value, low=math.nan, high=math.nan,
            decision="go on", reason=reason,
        )  # fmt: skip
    reach = _t_quantile(widening(shared, alpha, planned), interval.df) * interval.se
    low, high = interval.value - reach, interval.value + reach
    return Look(
        n_ratings=n, n_dialogues=shared, value=interval.value, low=low, high=high,
        decision=decide(low, high, within),
    )  # fmt: skip


def _t_quantile(z: float, df: float) -> float:
    """The quantile of t with the tail of the normal one `z`: few raters leave the variance uncertain."""
    from scipy.special import ndtr, stdtrit

    return float(-stdtrit(df, ndtr(-z)))


def betting_sequence(
    values: ArrayLike, *, lowest: float, highest: float, alpha: float = 0.05
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the mean after each value, each within those before it."""
    check_fraction("alpha", alpha)
    x = np.asarray(values, dtype=np.float64)
    if not lowest < highest:
        raise ValueError(f"lowest must be below highest, found {lowest} and {highest}")
    if x.size and (x.min() < lowest or x.max() > highest):
        raise ValueError(f"values must lie between {lowest:g} and {highest:g}")
    if not x.size:
        return np.empty(0), np.empty(0)
    x = (x - lowest) / (highest - lowest)
    bets = _bets(x, alpha)
    means = np.linspace(0, 1, _GRID)
    with np.errstate(divide="ignore"):
        most_up = _MOST_BET / np.maximum(means, 1e-12)
        most_down = _MOST_BET / np.maximum(1 - means, 1e-12)
    up, down = np.zeros(_GRID), np.zeros(_GRID)
    alive = np.ones(_GRID, dtype=bool)
    lows, highs = np.empty(x.size), np.empty(x.size)
    limit = math.log(2 / alpha)  # half the capital bets on either side
    for t, (value, bet) in enumerate(zip(x, bets, strict=True)):
        up += np.log1p(np.minimum(bet, most_up) * (value - means))
        down += np.log1p(-np.minimum(bet, most_down) * (value - means))
        alive &= np.maximum(up, down) < limit
        if alive.any():
            inside = np.flatnonzero(alive)
            step = 1 / (_GRID - 1)  # the mean lies between grid points
            lows[t] = max(0.0, means[inside[0]] - step)
            highs[t] = min(1.0, means[inside[-1]] + step)
        else:  # values that no mean explains: they were not independent
            lows[t], highs[t] = lows[t - 1], highs[t - 1]
    return lowest + (highest - lowest) * lows, lowest + (highest - lowest) * highs


def _bets(x: Floats, alpha: float) -> Floats:
    """The predictable plug-in: each bet knows only the values before it."""
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.r_[0.25, variance[:-1]]
    return np.asarray(np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log(t + 1))))
