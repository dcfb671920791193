"""Bradley-Terry strengths that people and a judge find together.

The model is log odds of a win = strength of first - strength of second + position (if the first was shown
first), a tie counting half. People's comparisons and the judge's enter the estimating equation of PPI++
(Angelopoulos, Duchi & Zrnic 2023, section 4, logistic regression); its sandwich variance is taken per
comparison of two systems and clustered by dialogue and rater. Because of the sandwich, ties need no model of
their own: the intervals are right whatever a tie is.

Where dialogues were drawn with unequal probabilities, people's comparisons count 1 / probability and the
judge's are those of all dialogues, as in `prediction_powered`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, check_fraction
from palaver.statistics.clusters import ClusterInterval, ClusterVariance, Codes, cluster_variance, interval_of
from palaver.statistics.prediction_powered import FEWEST_DIALOGUES
from palaver.statistics.significance import holm
from palaver.tabular import show_fixed

_FARTHEST = 15.0
"""Log odds beyond this mean that a system won, or lost, everything."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Compared outputs: equally long arrays. `won` is 1, 0.5 or 0 for the first; `prediction` the judge's."""

    first: Codes
    second: Codes
    won: Floats
    prediction: Floats
    dialogue: Codes
    rater: Codes
    position: Floats
    """1 where the first was shown first, -1 where it was second, 0 where that is not known."""
    sampling: Floats | None = None
    """The probability with which each dialogue was drawn, where it was not the same for all."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What the judge compared and people did not; all that it compared where `sampling` is given.

    Dialogues have the codes that they have in `Comparisons`.
    """

    first: Codes
    second: Codes
    prediction: Floats
    dialogue: Codes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStrength:
    """How far one system is stronger than another, in log odds of winning."""

    first: str
    second: str
    interval: ClusterInterval
    people: ClusterInterval
    adjusted_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPoweredStrengths:
    """Strengths with mean zero, all pairs, and how far the judge was believed."""

    systems: tuple[str, ...]
    strength: tuple[float, ...]
    position: float
    """Log odds that being shown first adds; nan without positions."""
    pairs: tuple[PairStrength, ...]
    weight: float
    correlation: float
    n_rated: int
    n_unrated: int
    reason_off: str = ""
    reason: str = ""


def prediction_powered_strengths(
    people: Comparisons,
    judge: Verdicts,
    systems: Sequence[str],
    *,
    weight: float | None = None,
    confidence: float = 0.95,
) -> PredictionPoweredStrengths:
    """Fit strengths to people's comparisons, with the judge's as far as they help; all pairs, Holm's p."""
    check_fraction("confidence", confidence)
    has_position = bool((people.position != 0).any())
    rated = _Design.of(people, len(systems), has_position)
    unrated = _Design.of_verdicts(judge, len(systems), has_position)
    rho = _correlation(people.won, people.prediction)
    n_dialogues = np.unique(people.dialogue).size
    n_unrated = judge.first.size
    if people.sampling is not None:
        n_unrated = int((~np.isin(judge.dialogue, people.dialogue)).sum())
    names = tuple(systems)
    alone = _solve(rated, unrated, 0.0)
    if isinstance(alone, str):
        nans = tuple(math.nan for _ in names)
        return PredictionPoweredStrengths(
            systems=names, strength=nans, position=math.nan, pairs=(), weight=0.0, correlation=rho,
            n_rated=rated.y.size, n_unrated=n_unrated, reason=alone,
        )  # fmt: skip
    off = "" if weight is not None else _why_off(rho, n_dialogues, n_unrated)
    if off:
        weight = 0.0
    elif weight is None:
        weight = _tuned_weight(rated, unrated, alone)
    theta = alone
    if weight:
        solved = _solve(rated, unrated, weight)
        theta, weight = (alone, 0.0) if isinstance(solved, str) else (solved, weight)
    pairs = []
    for i, j in combinations(range(len(names)), 2):
        interval = _pair(rated, unrated, theta, weight, (i, j), confidence)
        own = _pair(rated, unrated, alone, 0.0, (i, j), confidence)
        pairs.append(
            PairStrength(first=names[i], second=names[j], interval=interval, people=own, adjusted_p=math.nan)
        )
    adjusted = holm([pair.interval.p for pair in pairs]).adjusted
    strength = np.append(theta[: len(names) - 1], 0.0)
    return PredictionPoweredStrengths(
        systems=names,
        strength=tuple((strength - strength.mean()).tolist()),
        position=float(theta[-1]) if has_position else math.nan,
        pairs=tuple(replace(pair, adjusted_p=float(p)) for pair, p in zip(pairs, adjusted, strict=True)),
        weight=float(weight),
        correlation=rho,
        n_rated=rated.y.size,
        n_unrated=n_unrated,
        reason_off=off,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Rows of the regression. The last system has no column, as its strength is 0; position comes last."""

    x: Floats
    y: Floats
    prediction: Floats
    dialogue: Codes
    rater: Codes | None
    n_systems: int
    share: Floats
    """How far each row counts; all of them together 1."""
    is_sample: bool = False
    """Whether rows count unequally, because their dialogues were drawn so."""

    @classmethod
    def of(cls, rows: Comparisons, n: int, has_position: bool) -> _Design:
        x = _columns(rows.first, rows.second, n)
        if has_position:
            x = np.c_[x, rows.position]
        counts = np.ones(rows.won.size) if rows.sampling is None else 1 / rows.sampling
        share = counts / counts.sum()
        is_sample = rows.sampling is not None
        return cls(x, rows.won, rows.prediction, rows.dialogue, rows.rater, n, share, is_sample)

    @classmethod
    def of_verdicts(cls, rows: Verdicts, n: int, has_position: bool) -> _Design:
        """Where people saw positions, each verdict counts half for either order."""
        x, prediction, dialogue = _columns(rows.first, rows.second, n), rows.prediction, rows.dialogue
        if has_position:
            ones = np.ones(len(x))
            x = np.r_[np.c_[x, ones], np.c_[x, -ones]]
            prediction, dialogue = np.r_[prediction, prediction], np.r_[dialogue, dialogue]
        share = np.full(prediction.size, 1 / max(1, prediction.size))
        return cls(x, prediction, prediction, dialogue, None, n, share)


def _columns(first: Codes, second: Codes, n: int) -> Floats:
    x = np.zeros((first.size, n))
    rows = np.arange(first.size)
    x[rows, first] += 1
    x[rows, second] -= 1
    return x[:, : n - 1]


def _solve(rated: _Design, unrated: _Design, weight: float) -> Floats | str:
    """Newton's method on the estimating equation, or why it has no solution."""
    theta = np.zeros(rated.x.shape[1])
    for _ in range(100):
        gradient, hessian = _equation(rated, unrated, weight, theta)
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return "some systems were never compared with the others"
        if np.linalg.cond(hessian) > 1e12:
            return "some systems were never compared with the others, or won or lost everything"
        theta = theta - step * min(1.0, 5.0 / max(5.0, float(np.abs(step).max())))
        if np.abs(theta).max() > _FARTHEST:
            return "a system won or lost every comparison, so its strength has no bound"
        if np.abs(step).max() < 1e-10:
            return theta
    return "the strengths did not converge"


def _equation(rated: _Design, unrated: _Design, weight: float, theta: Floats) -> tuple[Floats, Floats]:
    fitted = _sigmoid(rated.x @ theta)
    residual = (1 - weight) * fitted - rated.y + weight * rated.prediction
    gradient = rated.x.T @ (rated.share * residual)
    hessian = (1 - weight) * _curvature(rated, fitted)
    if weight:
        others = _sigmoid(unrated.x @ theta)
        gradient = gradient + weight * unrated.x.T @ (unrated.share * (others - unrated.prediction))
        hessian = hessian + weight * _curvature(unrated, others)
    return gradient, hessian


def _curvature(rows: _Design, fitted: Floats) -> Floats:
    return np.asarray((rows.x * (rows.share * fitted * (1 - fitted))[:, None]).T @ rows.x)


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -500, 500))))


def _tuned_weight(rated: _Design, unrated: _Design, theta: Floats) -> float:
    """Least total variance of the strengths, from the gradients' covariance over dialogues; within [0, 1]."""
    fitted = _sigmoid(rated.x @ theta)
    inverse = np.linalg.inv(_curvature(rated, fitted))
    own = _sums(rated.x * (fitted - rated.y)[:, None], rated.dialogue) @ inverse
    judge = _sums(rated.x * (fitted - rated.prediction)[:, None], rated.dialogue) @ inverse
    own, judge = own - own.mean(axis=0), judge - judge.mean(axis=0)
    n, n_unrated = np.unique(rated.dialogue).size, np.unique(unrated.dialogue).size
    spread = float(np.sum(judge**2))
    if spread == 0:
        return 0.0
    if rated.is_sample:
        counts = _sums(rated.share[:, None], rated.dialogue) / _sums(
            np.ones((rated.y.size, 1)), rated.dialogue
        )
        counts = counts * n_unrated / counts.sum()
        squares = np.maximum(counts * (counts - 1), 1e-12)
        return float(np.clip(np.sum(squares * own * judge) / np.sum(squares * judge**2), 0.0, 1.0))
    return float(np.clip(np.sum(own * judge) / (spread * (1 + n / n_unrated)), 0.0, 1.0))


def _sums(rows: Floats, code: Codes) -> Floats:
    _, dense = np.unique(code, return_inverse=True)
    sums = np.zeros((int(dense.max()) + 1, rows.shape[1]))
    np.add.at(sums, dense, rows)
    return sums


def _pair(
    rated: _Design, unrated: _Design, theta: Floats, weight: float, pair: tuple[int, int], confidence: float
) -> ClusterInterval:
    direction = np.zeros(rated.x.shape[1])
    for place, sign in zip(pair, (1.0, -1.0), strict=True):
        if place < rated.n_systems - 1:  # the last system has no column: its strength is 0
            direction[place] = sign
    fitted = _sigmoid(rated.x @ theta)
    _, hessian = _equation(rated, unrated, weight, theta)
    along = np.linalg.solve(hessian, direction)
    n = rated.y.size
    residual = (1 - weight) * fitted - rated.y + weight * rated.prediction
    influence = -(rated.x @ along) * residual
    variance = _variance(influence, rated)
    estimate = float(direction @ theta)
    if variance.reason:
        nan = math.nan
        return ClusterInterval(
            value=estimate, low=nan, high=nan, se=nan, df=nan, p=nan, confidence=confidence, n=n,
            n_dialogues=variance.n_dialogues, n_raters=variance.n_raters, se_rows=nan,
            dialogue_share=nan, rater_share=nan, reason=variance.reason, notes=variance.notes,
        )  # fmt: skip
    if weight:
        others = -(unrated.x @ along) * (_sigmoid(unrated.x @ theta) - unrated.prediction) * weight
        by_judge = _variance(others, unrated)
        if rated.is_sample:  # the rated dialogues are among those that the judge's mean is of
            shared = 2 * _covariance(influence, rated, others, unrated)
            by_judge = replace(by_judge, variance=max(0.0, by_judge.variance + shared))
        total = variance.variance + by_judge.variance
        df = total**2 / (variance.variance**2 / variance.df + by_judge.variance**2 / by_judge.df)
        variance = replace(
            variance, variance=total, df=df, dialogue=variance.dialogue + by_judge.variance,
            n_dialogues=by_judge.n_dialogues + (0 if rated.is_sample else variance.n_dialogues),
        )  # fmt: skip
    return interval_of(estimate, variance, n, float(influence.std(ddof=1)) / math.sqrt(n), confidence)


def _variance(influence: Floats, rows: _Design) -> ClusterVariance:
    """Of the mean of rows."""
    group = np.zeros(influence.size, np.int64)
    return cluster_variance(_centred(influence, rows), rows.share, group, rows.dialogue, rows.rater)


def _centred(influence: Floats, rows: _Design) -> Floats:
    return np.asarray(rows.share * (influence - rows.share @ influence))


def _covariance(influence: Floats, rated: _Design, others: Floats, judged: _Design) -> float:
    """Of the two means, by the dialogues that they have in common."""
    n = 1 + int(max(rated.dialogue.max(), judged.dialogue.max()))
    by_people = np.bincount(rated.dialogue, _centred(influence, rated), minlength=n)
    by_judge = np.bincount(judged.dialogue, _centred(others, judged), minlength=n)
    return float(by_people @ by_judge)


def _why_off(rho: float, n_dialogues: int, n_unrated: int) -> str:
    if n_unrated < 2:
        return "the judge compared nothing that people did not compare, so it adds nothing"
    if n_dialogues < FEWEST_DIALOGUES:
        return f"people compared on {n_dialogues} dialogues; at least {FEWEST_DIALOGUES} are needed"
    if math.isnan(rho):
        return "people or the judge always gave the same answer"
    least = 1 / math.sqrt(n_dialogues - 2)
    if rho < least:
        return f"the judge's correlation with people is {show_fixed(rho)}, below {least:.2f}"
    return ""


def _correlation(a: Floats, b: ArrayLike) -> float:
    b = np.asarray(b)
    if a.size < 3 or a.std() == 0 or b.std() == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])
