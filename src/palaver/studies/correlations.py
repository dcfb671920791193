"""Which criteria go together: correlations of outputs' means and of single ratings.

Points are not independent: outputs of one dialogue have it in common, and a rater who is kind is kind on both
criteria. So intervals and p values also come from leaving out groups of dialogues, of raters and of their
crossings (`statistics.jackknife`); the wider interval and the larger p are shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from palaver.statistics.clusters import FEWEST_RATERS
from palaver.statistics.correlation import (
    CorrelationResult,
    Method,
    coefficient,
    correlate,
    prepare,
    prepared_coefficient,
)
from palaver.statistics.jackknife import Deletions, deletion_groups, jackknife_interval, jackknife_p
from palaver.studies.intervals import MOST_RATINGS
from palaver.studies.judgements import Floats, Ints, Judgements, Key, contexts_of, shared_codes
from palaver.studies.ratings import RatingTable
from palaver.studies.results import CorrelationRow

_OVER: dict[str, tuple[Key, ...]] = {
    "item means": ("item", "system"),
    "single ratings": ("item", "system", "rater"),
}
_Kept = NDArray[np.bool_]


def correlate_criteria(
    judged: Sequence[Judgements], method: Method, confidence: float
) -> Iterator[CorrelationRow]:
    """Every two criteria, over the outputs' means and, where one rater gave both, over single ratings."""
    if len(judged) < 2:
        return
    for over, keys in _OVER.items():
        criteria = _points(judged, keys, method)
        for one, other in combinations(criteria, 2):
            shared, left, right = np.intersect1d(
                one.cell, other.cell, assume_unique=True, return_indices=True
            )
            if over == "single ratings" and shared.size < 3:
                continue
            result = correlate(one.mean[left], other.mean[right], method=method, confidence=confidence)
            result = _clustered(result, one, other, left, right)
            lonely = one.cell.size + other.cell.size - 2 * shared.size
            yield CorrelationRow(
                a=one.criterion,
                b=other.criterion,
                method=method,
                over=over,
                value=result.value,
                p=result.p,
                low=result.low,
                high=result.high,
                n=result.n,
                dropped=result.dropped + (lonely if over == "item means" else 0),
                reason=_named_reason(result.reason, one.criterion, other.criterion),
            )


@dataclass(frozen=True, eq=False)
class _Points:
    """One criterion's means by cell; codes of cells mean the same in all criteria."""

    criterion: str
    cell: Ints
    """Ascending."""
    mean: Floats
    without: dict[str, list[Floats]]
    """Dialogues, raters or crossings -> the means without each group of them, where there are several.

    Of a criterion with many others: what correlations need of them is found once (`correlation.prepare`).
    """


def _points(judged: Sequence[Judgements], keys: Sequence[Key], method: Method) -> list[_Points]:
    codes: dict[Key, list[Ints]] = {}
    sizes: dict[Key, int] = {}
    for key in _OVER["single ratings"]:
        places, sizes[key] = shared_codes(judged, key)
        codes[key] = [place[getattr(j, key)] for place, j in zip(places, judged, strict=True)]
    combined = [np.zeros(j.item.size, dtype=np.int64) for j in judged]
    for key in keys:
        combined = [own * sizes[key] + codes[key][i] for i, own in enumerate(combined)]
    groups = _groups(codes["item"], codes["rater"], sizes["rater"])
    points = []
    for i, j in enumerate(judged):
        known = np.isfinite(j.score)
        cell, place = np.unique(combined[i][known], return_inverse=True)
        mean = _means(place, j.score[known], cell.size)
        without = {
            name: [
                prepare(mean(group[i][known] != number), method)
                for number in range(1 + max(map(np.max, group)))
            ]
            for name, group in groups.items()
        }
        points.append(_Points(j.criterion, cell, mean(np.ones(place.size, dtype=bool)), without))
    return points


def _means(place: Ints, score: Floats, n_cells: int) -> Callable[[_Kept], Floats]:
    """The means of the cells, of the kept ratings alone; nan where none is left."""

    def mean(kept: _Kept) -> Floats:
        count = np.bincount(place[kept], minlength=n_cells)
        total = np.bincount(place[kept], score[kept], minlength=n_cells)
        means: Floats = np.divide(total, count, out=np.full(n_cells, np.nan), where=count > 0)
        return means

    return mean


def _groups(items: Sequence[Ints], raters: Sequence[Ints], n_raters: int) -> dict[str, list[Ints]]:
    """For each criterion's ratings the group that they are left out with. Groups are the same in all."""
    if not all(item.size for item in items) or max(item.size for item in items) > MOST_RATINGS:
        return {}
    rng = np.random.default_rng(0)
    starts = np.cumsum([item.size for item in items])[:-1]
    item, rater = np.concatenate(items), np.concatenate(raters)
    groups = {}
    if np.unique(item).size > 1:
        groups["dialogues"] = deletion_groups(item, rng)
    if groups and np.unique(rater).size >= FEWEST_RATERS:
        groups["raters"] = deletion_groups(rater, rng)
        groups["crossings"] = deletion_groups(item * n_raters + rater, rng)
    return {name: np.split(group, starts) for name, group in groups.items()}


def _clustered(
    result: CorrelationResult, one: _Points, other: _Points, left: Ints, right: Ints
) -> CorrelationResult:
    """The wider of two intervals, and the larger p."""
    if one.without and abs(result.value) == 1:  # all orders of whole dialogues, where these are few
        n_dialogues = len(one.without["dialogues"])
        return replace(result, p=max(result.p, min(1.0, 2 / math.factorial(n_dialogues))))
    if not one.without or math.isnan(result.low):
        return result
    is_whole = left.size == one.cell.size == other.cell.size

    def without(x: Floats, y: Floats) -> float:
        if is_whole:
            return prepared_coefficient(x, y, result.method)
        return coefficient(x[left], y[right], result.method)

    values = {name: np.array([*map(without, one.without[name], other.without[name])]) for name in one.without}
    deletions = Deletions(**values)
    interval = jackknife_interval(result.value, deletions, scale="correlation", confidence=result.confidence)
    if math.isnan(interval.low):
        return result
    p = jackknife_p(result.value, deletions, scale="correlation")
    return replace(
        result,
        low=min(result.low, interval.low),
        high=max(result.high, interval.high),
        p=float(np.nanmax([result.p, p])),
    )


def _named_reason(reason: str, a: str, b: str) -> str:
    """What a correlation calls x and y has names here."""
    constant = {"x": [a], "y": [b], "x and of y": [a, b]}
    for letters, names in constant.items():
        if reason == f"all values of {letters} are equal":
            return f"all values of {' and of '.join(names)} are equal"
    return reason


def comparable_judgements(table: RatingTable, judged: Sequence[Judgements]) -> Iterator[Judgements]:
    """What criteria can be correlated by: scores of outputs, items under their contexts where they have one.

    Of a pairwise criterion whose items have contexts it is the share of comparisons that an output won.
    """
    contexts = contexts_of(table)
    for j in judged:
        kind = j.treatment.kind
        if kind == "pair" and contexts and j.items.is_in(list(contexts)).any():
            j = shares_won(j)
        elif kind != "number":
            continue
        if contexts:
            j = replace(j, items=j.items.replace(contexts))
        yield j


def shares_won(judged: Judgements) -> Judgements:
    """Comparisons as scores of outputs: 1, 0.5 or 0 for each of the two."""
    return replace(
        judged,
        item=np.r_[judged.item, judged.item],
        system=np.r_[judged.system, judged.against],
        rater=np.r_[judged.rater, judged.rater],
        dialogue=np.r_[judged.dialogue, judged.dialogue],
        score=np.r_[judged.value, 1 - judged.value],
    )
