"""A judge's scores in people's units, and whether that holds elsewhere.

- `fit_isotonic`: the non-decreasing map from scores to ratings of least squares (pool adjacent violators:
  Ayer et al. 1955). Cross-fitted: a dialogue's calibrated score comes from the other folds, so that what is
  measured with it is not what it was fitted to.
- `rogan_gladen`: the true share of good outputs behind the share that a judge of known sensitivity and
  specificity calls good (Rogan & Gladen 1978). The interval is that of Lang & Reiczigel (2014), which adds
  two outputs of each kind: a judge that was right about all of eight may still be wrong about others.
- `audit_transfer`: does a calibration hold in another place? PASS, FAIL or INCONCLUSIVE by the interval of
  the mean error there, clustered by dialogue and rater, against a margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, Interval, Rng, check_fraction
from palaver.statistics.clusters import ClusterInterval, Codes, clustered_mean

Verdict = Literal["PASS", "FAIL", "INCONCLUSIVE"]
FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """A non-decreasing map; between its points it is linear, beyond them constant."""

    score: Floats
    value: Floats

    def __call__(self, scores: ArrayLike) -> Floats:
        """The scores in people's units."""
        return np.asarray(np.interp(np.asarray(scores, dtype=np.float64), self.score, self.value))


def fit_isotonic(score: ArrayLike, value: ArrayLike) -> Isotonic:
    """Fit the map; equal scores count as one point."""
    x, at = np.unique(np.asarray(score, dtype=np.float64), return_inverse=True)
    weights = np.bincount(at).astype(np.float64)
    means = np.bincount(at, np.asarray(value, dtype=np.float64)) / weights
    levels: list[tuple[float, float, int]] = []  # mean, weight, how many points
    for mean, weight in zip(means.tolist(), weights.tolist(), strict=True):
        level, total, n = mean, weight, 1
        while levels and levels[-1][0] >= level:
            before, of_before, n_before = levels.pop()
            level = (before * of_before + level * total) / (of_before + total)
            total, n = total + of_before, n + n_before
        levels.append((level, total, n))
    return Isotonic(x, np.repeat([level for level, *_ in levels], [n for *_, n in levels]))


def cross_calibrate(score: Floats, value: Floats, dialogue: Codes, *, rng: Rng) -> Floats:
    """Each row's score in people's units, by a map fitted to dialogues of the other folds."""
    names, code = np.unique(dialogue, return_inverse=True)
    if names.size < 2 * FOLDS:
        raise ValueError(f"calibration needs at least {2 * FOLDS} dialogues, found {names.size}")
    fold = (np.random.default_rng(rng).permutation(names.size) % FOLDS)[code]
    calibrated = np.empty(score.size)
    for k in range(FOLDS):
        own = fold == k
        calibrated[own] = fit_isotonic(score[~own], value[~own])(score[own])
    return calibrated


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferAudit:
    """Whether a calibration may be used in another place."""

    verdict: Verdict
    error: ClusterInterval
    """People minus calibrated score, there."""
    margin: float


def audit_transfer(
    value: ArrayLike,
    calibrated: ArrayLike,
    dialogue: ArrayLike,
    rater: ArrayLike | None,
    *,
    margin: float,
    weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> TransferAudit:
    """PASS: the mean error is surely within the margin; FAIL: it is surely not 0, and beyond the margin.

    `weight` is for ratings that do not count alike (1 / probability of being sampled).
    """
    if not margin > 0:
        raise ValueError(f"margin must be above 0, found {margin}")
    difference = np.asarray(value, dtype=np.float64) - np.asarray(calibrated, dtype=np.float64)
    error = clustered_mean(difference, dialogue, rater, weight=weight, confidence=confidence)
    verdict: Verdict = "INCONCLUSIVE"
    if -margin < error.low and error.high < margin:
        verdict = "PASS"
    elif abs(error.value) > margin and (error.low > 0 or error.high < 0):
        verdict = "FAIL"
    return TransferAudit(verdict=verdict, error=error, margin=margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoganGladen:
    """The true share behind what a judge sees."""

    value: float
    interval: Interval
    sensitivity: float
    specificity: float
    observed: float
    reason: str = ""


def rogan_gladen(
    *,
    positive: int,
    n: int,
    true_positive: int,
    n_good: int,
    true_negative: int,
    n_bad: int,
    confidence: float = 0.95,
) -> RoganGladen:
    """From `positive` of `n` verdicts, and a judge that was right about so many good and bad outputs.

    >>> known = dict(true_positive=45, n_good=50, true_negative=40, n_bad=50)
    >>> round(rogan_gladen(positive=40, n=100, **known).value, 3)
    0.286
    """
    from scipy.special import ndtri

    check_fraction("confidence", confidence)
    if min(n, n_good, n_bad) < 1:
        raise ValueError("there must be verdicts, good outputs and bad outputs")
    share, sensitivity, specificity = positive / n, true_positive / n_good, true_negative / n_bad
    youden = sensitivity + specificity - 1
    nan = math.nan
    if youden <= 0:
        reason = "the judge says good of bad outputs as often as of good ones: nothing can be corrected"
        empty = Interval(nan, nan, confidence, "Lang & Reiczigel")
        return RoganGladen(
            value=nan, interval=empty, sensitivity=sensitivity, specificity=specificity, observed=share,
            reason=reason,
        )  # fmt: skip
    value = min(1.0, max(0.0, (share + specificity - 1) / youden))
    z2 = float(ndtri((1 + confidence) / 2)) ** 2
    low, high = _rogan_gladen_interval(
        (positive + z2 / 2, n + z2), (true_positive + 1, n_good + 2), (true_negative + 1, n_bad + 2), z2
    )
    ends = Interval(min(value, low), max(value, high), confidence, "Lang & Reiczigel")
    return RoganGladen(
        value=value, interval=ends, sensitivity=sensitivity, specificity=specificity, observed=share
    )


def _rogan_gladen_interval(
    positive: tuple[float, float], right_good: tuple[float, float], right_bad: tuple[float, float], z2: float
) -> tuple[float, float]:
    """From counts and what they are of, with what is added to them."""
    (share, n), (sensitivity, n_good), (specificity, n_bad) = (
        (count / total, total) for count, total in (positive, right_good, right_bad)
    )
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return 0.0, 1.0
    value = min(1.0, max(0.0, (share + specificity - 1) / youden))
    of_good = value * sensitivity * (1 - sensitivity) / n_good
    of_bad = (1 - value) * specificity * (1 - specificity) / n_bad
    centre = value + 2 * z2 * (of_good - of_bad)
    variance = share * (1 - share) / n + value * of_good + (1 - value) * of_bad
    reach = math.sqrt(z2 * variance) / youden
    return max(0.0, centre - reach), min(1.0, centre + reach)
