"""Intervals for means where the same raters judge many dialogues and every dialogue has several raters.

value = mean + dialogue + rater + what is left. Two ratings of one dialogue, or by one rater, are not
independent, and an interval over rows that ignores this is too short. The three variances are found from the
squared sums of dialogues, of raters and of cells (dialogue x rater), whose expectations are known for every
design, balanced or not (Henderson 1953). The usual estimate (Cameron, Gelbach & Miller 2011, equation 2.10:
dialogues + raters - cells) is what this becomes with very many of both; with six raters it subtracts too
much. A component that comes out negative is 0. Degrees of freedom are those of Satterthwaite (1946).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats, check_fraction
from palaver.statistics.codes import dense_codes

Codes = NDArray[np.int64]

FEWEST_RATERS = 3
"""With fewer the spread of raters is not known, and an interval is about these raters only."""
_ROUNDING = 1e-9
"""A part of the variance below this share of what it could be is 0 but for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVariance:
    """The variance of a weighted sum of ratings, and what it is made of."""

    variance: float
    df: float
    dialogue: float
    """The part that more dialogues would make smaller."""
    rater: float
    """The part that more raters would make smaller; 0 where raters are not told apart."""
    rest: float
    n_dialogues: int
    n_raters: int
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInterval:
    """A mean, or a difference of two, with an interval that knows about dialogues and raters."""

    value: float
    low: float
    high: float
    se: float
    df: float
    p: float
    """Of the hypothesis that the value is 0."""
    confidence: float
    n: int
    n_dialogues: int
    n_raters: int
    se_rows: float
    """The standard error that independent rows would have: what most tools print."""
    dialogue_share: float
    """The part of the variance that more dialogues would make smaller."""
    rater_share: float
    reason: str = ""
    notes: tuple[str, ...] = ()


def clustered_mean(
    value: ArrayLike,
    dialogue: ArrayLike,
    rater: ArrayLike | None = None,
    *,
    weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ClusterInterval:
    """The mean of ratings and its interval; codes count from 0, one entry per rating.

    `weight` is for ratings that do not count alike (1 / probability of being sampled).
    """
    values = np.asarray(value, dtype=np.float64)
    return contrast(values, np.zeros(values.size, np.int64), [1.0], dialogue, rater, weight, confidence)


def clustered_difference(
    value: ArrayLike,
    is_first: ArrayLike,
    dialogue: ArrayLike,
    rater: ArrayLike | None = None,
    *,
    weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ClusterInterval:
    """The mean of one system's ratings minus that of another's, who may share dialogues and raters."""
    values = np.asarray(value, dtype=np.float64)
    group = np.where(np.asarray(is_first, dtype=bool), 0, 1)
    return contrast(values, group, [1.0, -1.0], dialogue, rater, weight, confidence)


def contrast(
    value: Floats,
    group: Codes,
    signs: list[float],
    dialogue: ArrayLike,
    rater: ArrayLike | None,
    weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ClusterInterval:
    """The sum of the groups' weighted means, each times its sign (+1 or -1)."""
    check_fraction("confidence", confidence)
    weights = np.ones(value.size) if weight is None else np.asarray(weight, dtype=np.float64)
    known = np.isfinite(value) & np.isfinite(weights)
    value, group, weights = value[known], np.asarray(group)[known], weights[known]
    if (weights <= 0).any():
        raise ValueError("weights must be above 0")
    dialogues = np.asarray(dialogue)[known]
    raters = None if rater is None else np.asarray(rater)[known]
    totals = np.bincount(group, weights, minlength=len(signs))
    if (totals == 0).any():
        return _undefined(math.nan, value.size, confidence, "there are no ratings")
    share = weights / totals[group]
    means = np.bincount(group, share * value, minlength=len(signs))
    estimate = float(means @ np.array(signs))
    influence = np.array(signs)[group] * share * (value - means[group])
    parts = cluster_variance(influence, share, group, dialogues, raters)
    if parts.reason:
        return _undefined(estimate, value.size, confidence, parts.reason, parts)
    rows = np.bincount(group, minlength=len(signs))
    spread = np.bincount(group, (influence / share) ** 2, minlength=len(signs)) / np.maximum(1, rows - 1)
    kish = np.bincount(group, share**2, minlength=len(signs))
    return interval_of(estimate, parts, value.size, math.sqrt(float(spread @ kish)), confidence)


def cluster_variance(
    influence: Floats, share: Floats, group: Codes, dialogue: ArrayLike, rater: ArrayLike | None
) -> ClusterVariance:
    """The variance of a sum of `influence`, each the share of a row times its distance from its group's mean.

    `share` are the rows' absolute weights, which add up to 1 in each group; groups are centred one by one.
    """
    by_dialogue, n_dialogues = dense_codes("dialogue", np.asarray(dialogue))
    cell, n_cells, by_rater, n_raters = by_dialogue, n_dialogues, None, 0
    notes: tuple[str, ...] = ()
    if rater is not None:
        by_rater, n_raters = dense_codes("rater", np.asarray(rater))
        if n_raters < FEWEST_RATERS:
            people = "one rater" if n_raters == 1 else f"{n_raters} raters"
            notes = (f"{people}: the interval is about them, and does not say what others would find",)
            by_rater = None
        else:
            cell, n_cells = dense_codes("cell", by_dialogue.astype(np.int64) * n_raters + by_rater)
    facts: dict[str, Any] = {"n_dialogues": n_dialogues, "n_raters": n_raters, "notes": notes}
    if n_dialogues < 2:
        reason = "one dialogue only, so nothing says how others would come out"
        return _no_variance(reason, facts)
    partitions = [_Partition.of("rest", cell, n_cells, influence, share, group)]
    if n_dialogues < n_cells:
        partitions.append(_Partition.of("dialogue", by_dialogue, n_dialogues, influence, share, group))
    if by_rater is not None and n_raters < n_cells:  # otherwise a rater is a dialogue or part of one
        partitions.append(_Partition.of("rater", by_rater, n_raters, influence, share, group))
    squares = np.array([part.squares for part in partitions])
    largest = float(np.square(influence).max(initial=0.0))
    if squares[0] <= 1e-24 * max(1.0, largest) or not squares[0]:
        what = "dialogues come out alike" if largest > 1e-24 else "ratings are equal"
        return _no_variance(f"all {what}, so nothing says how sure this is", facts)
    first = np.empty(n_cells, dtype=np.int64)
    first[cell] = np.arange(cell.size)  # a row of each cell
    expected = np.array([[_expectation(a, b, partitions[0], first) for b in partitions] for a in partitions])
    components, *_ = np.linalg.lstsq(expected, squares, rcond=1e-9)
    components = np.maximum(components, 0.0)
    as_they_are = squares[0] / expected[0, 0]
    if components[0] <= _ROUNDING * as_they_are:  # a design nearly confounded: the cells as they are
        components[0] = as_they_are
    sizes = np.array([part.size for part in partitions])
    parts = dict(zip((part.name for part in partitions), components * sizes, strict=True))
    rest = parts["rest"]
    terms = [(rest, partitions[0].df)]
    if len(partitions) > 1:
        above = [(part, part.df) for part in partitions[1:]]
        terms = [(rest, max(1.0, terms[0][1] - sum(df for _, df in above)))]
        terms += [(parts[part.name] + rest, df) for part, df in above]
    variance = float(sum(parts.values()))
    df = variance**2 / sum(term**2 / df for term, df in terms)
    is_one_way = by_rater is None or n_dialogues == n_cells
    return ClusterVariance(
        variance=variance,
        df=max(1.0, float(df)),
        dialogue=rest if is_one_way and "dialogue" not in parts else parts.get("dialogue", 0.0),
        rater=parts.get("rater", 0.0),
        rest=0.0 if is_one_way and "dialogue" not in parts else rest,
        **facts,
    )


def interval_of(
    estimate: float, parts: ClusterVariance, n: int, se_rows: float, confidence: float
) -> ClusterInterval:
    """The t interval of an estimate, from the parts of its variance."""
    from scipy.special import stdtr, stdtrit

    se = math.sqrt(parts.variance)
    reach = float(stdtrit(parts.df, (1 + confidence) / 2)) * se
    return ClusterInterval(
        value=estimate,
        low=estimate - reach,
        high=estimate + reach,
        se=se,
        df=parts.df,
        p=float(2 * stdtr(parts.df, -abs(estimate) / se)),
        confidence=confidence,
        n=n,
        n_dialogues=parts.n_dialogues,
        n_raters=parts.n_raters,
        se_rows=se_rows,
        dialogue_share=parts.dialogue / parts.variance,
        rater_share=parts.rater / parts.variance,
        notes=parts.notes,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Partition:
    """The rows in clusters of one kind."""

    name: str
    code: Codes
    by_group: Floats
    """(clusters, groups): the share of each group that lies in each cluster."""
    total: Floats
    """The share of all groups together in each cluster."""
    squares: float
    """Of the clusters' sums of influence."""

    @classmethod
    def of(cls, name: str, code: Codes, n: int, influence: Floats, share: Floats, group: Codes) -> _Partition:
        n_groups = int(group.max()) + 1
        shares = np.bincount(code.astype(np.int64) * n_groups + group, share, minlength=n * n_groups)
        by_group = shares.astype(np.float64).reshape(n, n_groups)
        sums = np.bincount(code, influence, minlength=n)
        return cls(name, code, by_group, by_group.sum(axis=1), float(sums @ sums))

    @property
    def size(self) -> float:
        """How a component enters the variance of the estimate."""
        return float(self.total @ self.total)

    @property
    def df(self) -> float:
        """As many clusters as would be worth these if all were of one size, less one for each mean taken
        away.

        Groups that share all clusters alike, as paired systems do, take away one mean together.
        """
        size = self.size
        spreads = np.linalg.eigvalsh(self.by_group.T @ self.by_group)
        n_means = int((spreads > 1e-9 * size).sum())
        return max(1.0, float(size**2 / np.sum(self.total**4)) - n_means)


def _expectation(a: _Partition, b: _Partition, cells: _Partition, first: Codes) -> float:
    """How much of `a.squares` a component of variance 1 between the clusters of `b` is expected to make.

    A cluster of `a` sees an effect of a cluster of `b` by the share they have in common, less what the
    groups' means take away: N - sum over groups of V_a V_b'. This is the sum of its squares, without the
    matrix. `first` is a row of each cell.
    """
    if a is b:
        shared, at_a, at_b = a.total, np.arange(a.total.size), np.arange(a.total.size)
    else:  # cells are the finest: any two clusters have one cell in common, or none
        shared, at_a, at_b = cells.total, a.code[first], b.code[first]
    straight = float(shared @ shared)
    crossed = float(np.sum(shared[:, None] * a.by_group[at_a] * b.by_group[at_b]))
    taken = float(np.sum((a.by_group.T @ a.by_group) * (b.by_group.T @ b.by_group)))
    return straight - 2 * crossed + taken


def _no_variance(reason: str, facts: dict[str, Any]) -> ClusterVariance:
    nan = math.nan
    return ClusterVariance(variance=nan, df=nan, dialogue=nan, rater=nan, rest=nan, reason=reason, **facts)


def _undefined(
    value: float, n: int, confidence: float, reason: str, parts: ClusterVariance | None = None
) -> ClusterInterval:
    nan = math.nan
    return ClusterInterval(
        value=value, low=nan, high=nan, se=nan, df=nan, p=nan, confidence=confidence, n=n,
        n_dialogues=parts.n_dialogues if parts else 0, n_raters=parts.n_raters if parts else 0,
        se_rows=nan, dialogue_share=nan, rater_share=nan, reason=reason, notes=parts.notes if parts else (),
    )  # fmt: skip
