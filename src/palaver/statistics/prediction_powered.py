"""Prediction-powered inference: a few people correct a judge who rated everything.

PPI++ (Angelopoulos, Duchi & Zrnic 2023, arXiv:2311.01453): with people's ratings Y and a judge's scores f on
the rated dialogues, and the judge's scores on dialogues that no person rated,

    estimate = weight * mean of f on unrated dialogues + mean of (Y - weight * f) on rated ones.

Whatever the judge does, the estimate is right on average; a good judge makes it more certain. The weight
that makes it most certain is cov(Y, f) / ((1 + n / N) var(f)). Three things are ours: variances are clustered
by dialogue and rater (`clusters`), quantiles are those of t, and the judge is left out where the correlation
with people is below 1 / sqrt(n - 2): there, estimating the weight costs more than the judge gives.

Where dialogues were drawn with unequal probabilities (`sampling`), those that nobody rated are not like those
that somebody did. Ratings then count 1 / probability, and the judge's mean is that of all dialogues (Zrnic &
Candès 2024, "Active statistical inference"): with equal probabilities this is the same estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from palaver.statistics.bootstrap import Floats, check_fraction
from palaver.statistics.clusters import ClusterInterval, ClusterVariance, Codes, contrast, interval_of
from palaver.tabular import show_fixed

FEWEST_DIALOGUES = 5
"""With fewer rated dialogues a judge's correlation with people is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionPowered:
    """An estimate that people and a judge make together, and what people alone would have said."""

    together: ClusterInterval
    people: ClusterInterval
    weight: float
    """How far the judge is believed; 0: not at all."""
    correlation: float
    """Of people's mean and the judge's score, over rated dialogues."""
    n_rated: int
    n_unrated: int
    reason_off: str = ""
    """Why the judge was left out; empty where it was not."""

    @property
    def worth_dialogues(self) -> float:
        """As many more rated dialogues would have made people alone as certain; raters stay the same."""
        if not self.weight or math.isnan(self.together.se) or math.isnan(self.people.se):
            return 0.0
        alone = self.people.se**2 * (1 - self.people.rater_share)
        with_judge = self.together.se**2 * (1 - self.together.rater_share)
        return max(0.0, self.n_rated * (alone / with_judge - 1)) if with_judge > 0 else 0.0

    @property
    def ceiling(self) -> float:
        """The most that any number of the judge's verdicts can multiply the people by: 1 / (1 - rho^2)."""
        return math.inf if abs(self.correlation) >= 1 else 1 / (1 - self.correlation**2)


def prediction_powered_mean(
    value: ArrayLike,
    prediction: ArrayLike,
    dialogue: ArrayLike,
    rater: ArrayLike | None,
    unrated: ArrayLike,
    *,
    is_second: ArrayLike | None = None,
    sampling: ArrayLike | None = None,
    weight: float | None = None,
    confidence: float = 0.95,
) -> PredictionPowered:
    """The mean of people's ratings, or with `is_second` the first system's mean minus the second's.

    One entry per rating: `prediction` is the judge's score of what was rated. `unrated` are the judge's
    scores (of two systems: first minus second) of dialogues that no person rated. `weight` fixes how far the
    judge is believed, otherwise the ratings tell. `sampling` is the probability with which each rating's
    dialogue was drawn, where it was not the same for all.
    """
    check_fraction("confidence", confidence)
    values, scores = np.asarray(value, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    codes = np.asarray(dialogue)
    others = np.asarray(unrated, dtype=np.float64)
    others = others[np.isfinite(others)]
    group = np.zeros(values.size, np.int64) if is_second is None else np.asarray(is_second).astype(np.int64)
    signs = [1.0] if is_second is None else [1.0, -1.0]
    known = np.isfinite(values) & np.isfinite(scores)
    values, scores, codes, group = values[known], scores[known], codes[known], group[known]
    raters = None if rater is None else np.asarray(rater)[known]
    counts = None if sampling is None else 1 / np.asarray(sampling, dtype=np.float64)[known]
    people = contrast(values, group, signs, codes, raters, counts, confidence)
    n_rated, n_unrated = np.unique(codes).size, others.size
    by_people, by_judge, by_count = _by_dialogue(values, scores, codes, group, len(signs), counts)
    rho = _correlation(by_people, by_judge)
    off = "" if weight is not None else _why_off(by_people, by_judge, rho, n_unrated)
    tuned = weight is None and not off
    if off:
        weight = 0.0
    elif weight is None and counts is None:
        weight = _tuned_weight(by_people, by_judge, others)
    elif weight is None:
        weight = _tuned_weight_of_sample(by_people, by_judge, by_count, others.size)
    together = people
    if weight and not people.reason:
        rest = contrast(values - weight * scores, group, signs, codes, raters, counts, confidence)
        shared = None
        if counts is not None:
            others = np.r_[by_judge, others]
            shared = 2 * weight * _covariance(by_people - weight * by_judge, by_judge, by_count) / others.size
        together = _together(rest, weight, others, by_people.size if tuned else 0, confidence, shared)
    return PredictionPowered(
        together=together,
        people=people,
        weight=weight,
        correlation=rho,
        n_rated=n_rated,
        n_unrated=n_unrated,
        reason_off=off,
    )


def _by_dialogue(
    value: Floats, prediction: Floats, dialogue: Codes, group: Codes, n_groups: int, counts: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """People's and the judge's mean (of two systems: difference) of each dialogue that has all of them.

    Beside them for how many dialogues each counts.
    """
    _, code = np.unique(dialogue, return_inverse=True)
    cell = code * n_groups + group
    n = (int(code.max(initial=-1)) + 1) * n_groups
    count = np.bincount(cell, minlength=n).reshape(-1, n_groups)
    whole = (count > 0).all(axis=1)
    sign = np.array([1.0, -1.0])[:n_groups]
    means = []
    for values in (value, prediction):
        sums = np.bincount(cell, values, minlength=n).reshape(-1, n_groups)
        means.append((sums[whole] / count[whole]) @ sign)
    by_count = np.ones(n // n_groups)
    if counts is not None:
        by_count[code] = counts
    return means[0], means[1], by_count[whole]


def _correlation(a: Floats, b: Floats) -> float:
    if a.size < 3 or a.std() == 0 or b.std() == 0:
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def _why_off(people: Floats, judge: Floats, rho: float, n_unrated: int) -> str:
    n = people.size
    if n_unrated < 2:
        return "the judge rated nothing that people did not rate, so it adds nothing"
    if n < FEWEST_DIALOGUES:
        return f"people and judge have {n} dialogues in common; at least {FEWEST_DIALOGUES} are needed"
    if judge.std() == 0:
        return "the judge gave the same score to everything"
    if people.std() == 0:
        return "people gave the same rating to everything"
    least = 1 / math.sqrt(n - 2)
    if rho < least:
        return (
            f"the judge's correlation with people is {show_fixed(rho)}, below {least:.2f} (1 / sqrt({n} - 2))"
        )
    return ""


def _tuned_weight(people: Floats, judge: Floats, unrated: Floats) -> float:
    covariance = float(np.cov(people, judge)[0, 1])
    spread = float(np.r_[judge - judge.mean(), unrated - unrated.mean()] @ np.r_[
        judge - judge.mean(), unrated - unrated.mean()
    ]) / (judge.size + unrated.size - 2)  # fmt: skip
    return covariance / (spread * (1 + judge.size / unrated.size))


def _tuned_weight_of_sample(people: Floats, judge: Floats, counts: Floats, n_unrated: int) -> float:
    """Least variance where dialogues count unequally: that of the sampled sum of (1 / p - 1) residual^2."""
    counts = counts * (judge.size + n_unrated) / counts.sum()
    squares = np.maximum(counts * (counts - 1), 1e-12)
    return _covariance(people, judge, squares) / _covariance(judge, judge, squares)


def _covariance(a: Floats, b: Floats, counts: Floats) -> float:
    share = counts / counts.sum()
    return float(share @ ((a - share @ a) * (b - share @ b)))


def _together(
    rest: ClusterInterval,
    weight: float,
    judged: Floats,
    n_tuned: int,
    confidence: float,
    shared: float | None = None,
) -> ClusterInterval:
    """The rectified mean plus the judge's: variances add, degrees of freedom are Satterthwaite's.

    `shared` is twice the covariance of the two, where the rated dialogues are in both.
    """
    estimate = rest.value + weight * float(judged.mean())
    if rest.reason:
        return replace(rest, value=estimate)
    by_judge = max(0.0, weight**2 * float(judged.var(ddof=1)) / judged.size + (shared or 0.0))
    by_people = rest.se**2
    df = rest.df
    if n_tuned:  # the weight was fitted to these dialogues: one degree of freedom
        by_people *= (n_tuned - 1) / (n_tuned - 2)
        df = max(1.0, df * (n_tuned - 2) / (n_tuned - 1))
    variance = by_people + by_judge
    parts = by_people**2 / df + by_judge**2 / (judged.size - 1)
    together = ClusterVariance(
        variance=variance,
        df=variance**2 / parts,
        dialogue=rest.dialogue_share * by_people + by_judge,
        rater=rest.rater_share * by_people,
        rest=(1 - rest.dialogue_share - rest.rater_share) * by_people,
        n_dialogues=judged.size + (rest.n_dialogues if shared is None else 0),
        n_raters=rest.n_raters,
        notes=rest.notes,
    )
    return interval_of(estimate, together, rest.n, rest.se_rows, confidence)
