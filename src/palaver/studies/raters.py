"""Each rater's habits, and how pairs of raters agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from palaver.studies.judgements import Floats, Ints, Judgements
from palaver.studies.results import RaterMatrix, RaterRow

SHOWN = 30
"""Raters in a matrix or distribution: more cannot be read."""
MIN_SHARED = 5
"""Below this many shared outputs a correlation of two raters says nothing."""

FLAGS = {
    "too fast": "median time below a third of everybody's",
    "straight-lining": "at least 95% of 10 or more ratings are one value, when the others vary more",
    "disagrees": "correlation with the other raters below 0.1, and surely below that of the median rater",
}
"""One line on what each flag means, for the report and the documentation."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pooled:
    """All criteria together: standardised scores, so that criteria can be pooled."""

    rater: Ints
    z: Floats
    rest: Floats
    """Mean of the other raters on the same output, standardised with the same constants."""
    modal: NDArray[np.bool_]
    """Whether the value is this rater's most frequent one on its criterion."""
    deviation: Floats
    """Distance from the rater's own mean on the criterion."""


def describe_raters(judged: Sequence[Judgements]) -> tuple[RaterRow, ...]:
    """One row per rater over all criteria, those with flags first, then by number of ratings."""
    names = sorted({name for j in judged for name in j.raters})
    place = {name: i for i, name in enumerate(names)}
    parts = [_pool(j, np.array([place[name] for name in j.raters])) for j in judged]
    rater = np.concatenate([p.rater for p in parts])
    z, rest = np.concatenate([p.z for p in parts]), np.concatenate([p.rest for p in parts])
    modal = np.concatenate([p.modal for p in parts])
    deviation = np.concatenate([p.deviation for p in parts])
    seconds = np.concatenate([j.seconds for j in judged])
    n_items = _items_seen(judged, rater, len(names))
    order = np.argsort(rater, kind="stable")
    bounds = np.searchsorted(rater[order], np.arange(len(names) + 1))
    pace = _median(seconds)
    usual_modal = float(np.median([modal[order[a:b]].mean() for a, b in pairwise(bounds)]))
    rows = []
    for r, name in enumerate(names):
        mine = order[bounds[r] : bounds[r + 1]]
        shared = np.isfinite(z[mine]) & np.isfinite(rest[mine])
        spread = deviation[mine][np.isfinite(deviation[mine])]
        row = RaterRow(
            rater=name,
            n_ratings=int(mine.size),
            n_items=int(n_items[r]),
            median_seconds=_median(seconds[mine]),
            spread=float(np.sqrt(np.mean(spread**2))) if spread.size > 1 else np.nan,
            straight_lining=float(modal[mine].mean()),
            agreement=_pearson(z[mine][shared], rest[mine][shared]),
            n_shared=int(shared.sum()),
        )
        rows.append(row)
    usual_agreement = _median(np.array([row.agreement for row in rows]))
    flagged = [replace(row, flags=tuple(_flags(row, pace, usual_modal, usual_agreement))) for row in rows]
    return tuple(sorted(flagged, key=lambda r: (-len(r.flags), -r.n_ratings, r.rater)))


def _items_seen(judged: Sequence[Judgements], rater: Ints, n_raters: int) -> Ints:
    """How many distinct items each rater judged, over all criteria."""
    place = {name: i for i, name in enumerate({name: None for j in judged for name in j.items})}
    item = np.concatenate([np.array([place[name] for name in j.items])[j.item] for j in judged])
    seen = np.unique(rater * len(place) + item)
    return np.bincount(seen // len(place), minlength=n_raters)


def _flags(row: RaterRow, pace: float, usual_modal: float, usual_agreement: float) -> Iterator[str]:
    if row.median_seconds < pace / 3:
        yield "too fast"
    if row.n_ratings >= 10 and row.straight_lining >= max(0.95, usual_modal + 0.05):
        yield "straight-lining"
    if row.n_shared >= 10 and row.agreement < 0.1:
        upper = np.tanh(np.arctanh(max(row.agreement, -0.999)) + 1.96 / np.sqrt(row.n_shared - 3))
        if upper < usual_agreement:
            yield "disagrees"


def _pool(judged: Judgements, rater_place: Ints) -> _Pooled:
    rater = rater_place[judged.rater]
    n = rater.size
    combined = judged.rater * (1 << 32) + np.unique(judged.value, return_inverse=True)[1]
    _, where, count = np.unique(combined, return_inverse=True, return_counts=True)
    most = np.zeros(len(judged.raters), dtype=np.int64)
    np.maximum.at(most, judged.rater, count[where])
    modal = _first_modal(judged.rater, where, count[where] == most[judged.rater])
    if judged.treatment.kind == "boxes":  # words have no distance; they count for speed and habits only
        empty = np.full(n, np.nan)
        return _Pooled(rater, empty, empty, modal, empty)
    score = judged.score
    known = np.isfinite(score)
    scale = float(np.std(score[known])) if known.any() else 0.0
    z = (score - np.mean(score[known])) / scale if scale > 0 else np.full(n, np.nan)
    filled = np.where(known, z, 0.0) if scale > 0 else np.zeros(n)
    total = np.bincount(judged.unit, weights=filled, minlength=judged.n_units)
    given = np.bincount(judged.unit, weights=known.astype(float), minlength=judged.n_units)
    others = given[judged.unit] - known
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = np.where(others > 0, (total[judged.unit] - filled) / others, np.nan)
    own = np.bincount(judged.rater, weights=filled, minlength=len(judged.raters))
    own_n = np.bincount(judged.rater, weights=known.astype(float), minlength=len(judged.raters))
    deviation = z - (own / np.maximum(own_n, 1))[judged.rater]
    return _Pooled(rater, z, rest, modal, deviation)


def _first_modal(rater: Ints, value: Ints, most: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Of several equally frequent values only one is "the" most frequent."""
    chosen = np.full(int(rater.max(initial=0)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(chosen, rater[most], value[most])
    return np.asarray(value == chosen[rater])


def _median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else np.nan


def _pearson(a: Floats, b: Floats) -> float:
    if a.size < MIN_SHARED:
        return np.nan
    da, db = a - a.mean(), b - b.mean()
    size = np.sqrt((da**2).sum() * (db**2).sum())
    return float((da * db).sum() / size) if size > 1e-12 else np.nan


def rater_matrix(judged: Judgements) -> RaterMatrix | None:
    """Correlation of every two of the busiest raters over the outputs both judged."""
    if judged.treatment.kind == "boxes" or len(judged.raters) < 2:
        return None
    counts = np.bincount(judged.rater, minlength=len(judged.raters))
    busiest = sorted(range(len(judged.raters)), key=lambda r: (-counts[r], judged.raters[r]))[:SHOWN]
    column = np.full(len(judged.raters), -1)
    column[busiest] = np.arange(len(busiest))
    mine = (column[judged.rater] >= 0) & np.isfinite(judged.score)
    table = np.zeros((judged.n_units, len(busiest)))
    given = np.zeros_like(table)
    middle = float(np.mean(judged.score[mine])) if mine.any() else 0.0
    table[judged.unit[mine], column[judged.rater[mine]]] = judged.score[mine] - middle
    given[judged.unit[mine], column[judged.rater[mine]]] = 1.0
    n = given.T @ given
    sum_a, sum_ab, square = table.T @ given, table.T @ table, (table**2).T @ given
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = sum_ab - sum_a * sum_a.T / n
        variance = square - sum_a**2 / n
        size = np.sqrt(variance * variance.T)
        value = np.where((n >= MIN_SHARED) & (size > 1e-9), covariance / size, np.nan)
    np.fill_diagonal(value, np.where(np.diag(n) > 0, 1.0, np.nan))
    return RaterMatrix(
        criterion=judged.criterion,
        raters=tuple(judged.raters[r] for r in busiest),
        values=tuple(tuple(float(v) for v in row) for row in value),
        n_shared=tuple(tuple(int(v) for v in row) for row in n),
    )
