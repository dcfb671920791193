"""Comparisons of two outputs that were shown in an order: strengths, the pull of the first place, covariates.

logit P(first wins) = strength of the first - strength of the second + position + covariates (Davidson &
Beaver 1977, with a tie as half a win). Standard errors are clustered by item (sandwich), so both orders of
one item and its repeats count as one observation where they say the same. Quantiles are those of Student's t
with one degree of freedom less than there are items. Where one of two systems wins whenever it stands first,
say, the likelihood has no maximum and a standard error means nothing: effects that depend on it are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats

Ints = NDArray[np.int64]
_STEPS = 50
_RIDGE = 1e-6
"""Keeps strengths finite where a system wins everything."""
_FORETOLD = 0.05
"""Where no verdict is farther from its chance, the fit is perfect and its standard errors mean nothing."""
_HELD = 0.1
"""An effect that ten times the ridge moves farther is held by nothing else: its estimate has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A coefficient in log-odds with its interval; p is two-sided against none."""

    name: str
    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFit:
    """`effects["position"]`: log-odds that the first of two equal outputs wins."""

    strengths: Floats
    """Around a mean of nought."""
    effects: dict[str, Effect]
    n: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """What changes when the two outputs change places: each count is of comparisons asked in both orders."""

    n: int
    same: int
    """The same output wins, or both times it is a tie."""
    to_first: int
    """Whatever stands first wins, or wins once and ties once: pulled to the first place."""
    to_second: int

    @property
    def consistency(self) -> float:
        return self.same / self.n if self.n else math.nan

    @property
    def bias(self) -> float:
        """The share of comparisons that the place decides, more to the first than to the second."""
        return (self.to_first - self.to_second) / self.n if self.n else math.nan

    @property
    def noise(self) -> float:
        """The share that flips as often to one side as to the other: not bias, but chance."""
        return 2 * min(self.to_first, self.to_second) / self.n if self.n else math.nan


def fit_order(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    item: ArrayLike,
    *,
    covariates: Mapping[str, ArrayLike] | None = None,
    confidence: float = 0.95,
) -> OrderFit:
    """Fit comparisons: codes of the two outputs' systems, 1, 0.5 or 0 for the first, and the item's number.

    A covariate is about the first minus the second, such as the difference of log lengths.
    """
    a, b = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    y = np.asarray(outcome, dtype=np.float64)
    cluster = np.unique(np.asarray(item), return_inverse=True)[1]
    n_systems = int(max(a.max(), b.max())) + 1 if y.size else 0
    names = ["position", *(covariates or {})]
    reason = _why_not(y, cluster)
    missing = {
        name: Effect(name=name, value=math.nan, low=math.nan, high=math.nan, p=math.nan) for name in names
    }
    if reason:
        return OrderFit(strengths=np.full(n_systems, np.nan), effects=missing, n=y.size, reason=reason)
    design = np.zeros((y.size, n_systems + len(names)))
    rows = np.arange(y.size)
    design[rows, a] += 1
    design[rows, b] -= 1
    design[:, n_systems] = 1
    for place, values in enumerate((covariates or {}).values(), start=n_systems + 1):
        design[:, place] = values
    weights, covariance = _logistic(design, y, cluster)
    strengths = weights[:n_systems] - weights[:n_systems].mean()
    if np.abs(y - _chance(design @ weights)).max() < _FORETOLD:
        reason = "every verdict follows from place and system without exception: no effect has an estimate"
        return OrderFit(strengths=strengths, effects=missing, n=y.size, reason=reason)
    moved = np.abs(_logistic(design, y, cluster, ridge=10 * _RIDGE)[0] - weights)
    variances = np.diag(covariance)
    effects = {
        name: missing[name]
        if moved[k] > _HELD
        else effect_of(name, weights[k], variances[k], int(cluster.max()), confidence)
        for k, name in enumerate(names, start=n_systems)
    }
    unbound = [name for k, name in enumerate(names, start=n_systems) if moved[k] > _HELD]
    if unbound:
        reason = f"no estimate of {' and '.join(unbound)}: where it would show, verdicts have no exception"
    return OrderFit(strengths=strengths, effects=effects, n=y.size, reason=reason)


def count_flips(outcomes: Sequence[tuple[float, float]]) -> Flips:
    """Of comparisons in both orders: an output's outcome (1, 0.5, 0) when shown first, and when second.

    >>> count_flips([(1.0, 1.0), (1.0, 0.0), (0.5, 0.0)])
    Flips(n=3, same=1, to_first=2, to_second=0)
    """
    pulls = [when_first - when_second for when_first, when_second in outcomes]
    return Flips(
        n=len(pulls),
        same=sum(pull == 0 for pull in pulls),
        to_first=sum(pull > 0 for pull in pulls),
        to_second=sum(pull < 0 for pull in pulls),
    )


def _why_not(outcome: Floats, cluster: Ints) -> str:
    if np.unique(cluster).size < 2:
        return "needs comparisons on at least two items"
    if np.unique(outcome).size < 2 and outcome[0] == 0.5:
        return "all comparisons are ties"
    return ""


def _chance(logits: Floats) -> Floats:
    chance: Floats = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
    return chance


def _logistic(design: Floats, y: Floats, cluster: Ints, ridge: float = _RIDGE) -> tuple[Floats, Floats]:
    """Newton's method, and the clustered sandwich covariance."""
    weights = np.zeros(design.shape[1])
    penalty = ridge * len(y) * np.eye(design.shape[1])
    for _ in range(_STEPS):
        p = _chance(design @ weights)
        gradient = design.T @ (y - p) - penalty @ weights
        hessian = (design * (p * (1 - p))[:, None]).T @ design + penalty
        step = np.linalg.solve(hessian, gradient)
        weights = weights + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    scores = design * (y - p)[:, None]
    n_clusters = int(cluster.max()) + 1
    sums = np.zeros((n_clusters, design.shape[1]))
    np.add.at(sums, cluster, scores)
    bread = np.linalg.inv(hessian)
    covariance: Floats = bread @ (sums.T @ sums) @ bread * n_clusters / (n_clusters - 1)
    return weights, covariance


def effect_of(name: str, value: float, variance: float, df: int, confidence: float) -> Effect:
    """A value with its t interval and p."""
    from scipy.special import stdtr, stdtrit

    error = math.sqrt(max(variance, 0.0))
    if not error > 0:
        return Effect(name=name, value=float(value), low=math.nan, high=math.nan, p=math.nan)
    reach = float(stdtrit(df, 0.5 + confidence / 2)) * error
    p = 2 * float(stdtr(df, -abs(value) / error))
    return Effect(name=name, value=float(value), low=float(value - reach), high=float(value + reach), p=p)
