"""Each rater's habits, and how pairs of raters agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.statistics.codes import distinct_values
from palaver.studies.judgements import Codes, Floats, Ints, Judgements, shared_codes
from palaver.studies.results import RaterMatrix, RaterRow

SHOWN = 30
"""Raters in a matrix or distribution: more cannot be read."""
MIN_SHARED = 5
"""Below this many shared outputs a correlation of two raters says nothing."""

_CHUNK = 2**20
"""Judgements looked at together, which bounds the memory."""
_UNITS = 2**16

FLAGS = {
    "too fast": "median time below a third of everybody's",
    "straight-lining": "at least 95% of 10 or more ratings are one value, when the others vary more",
    "disagrees": "correlation with the other raters below 0.1, and surely below that of the median rater",
}
"""One line on what each flag means, for the report and the documentation."""


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Some judgements of a criterion with standardised scores, so that criteria can be pooled."""

    rater: Codes
    z: Floats
    rest: Floats
    """Mean of the other raters on the same output, standardised with the same constants."""
    deviation: Floats
    """Distance from the rater's own mean on the criterion."""


class _Standardised:
    """One criterion's scores in units of its standard deviation, handed out in chunks."""

    def __init__(self, judged: Judgements, rater: Codes, n_raters: int) -> None:
        self.judged, self.rater = judged, rater
        known = np.isfinite(judged.score)
        scores = judged.score if known.all() else judged.score[known]
        self.mean = float(np.mean(scores)) if scores.size else 0.0
        self.scale = float(np.std(scores)) if scores.size else 0.0
        if self.scale == 0:
            return
        filled = np.where(known, (judged.score - self.mean) / self.scale, 0.0)
        self.total = np.bincount(judged.unit, filled, minlength=judged.n_units)
        self.given = np.bincount(judged.unit, known, minlength=judged.n_units)
        n_own = np.bincount(rater, known, minlength=n_raters)
        self.own_mean = np.bincount(rater, filled, minlength=n_raters) / np.maximum(n_own, 1)

    def chunks(self) -> Iterator[_Chunk]:
        """Nothing where all scores are equal: then no rater differs from another."""
        if self.scale == 0:
            return
        for begin in range(0, self.rater.size, _CHUNK):
            rows = slice(begin, begin + _CHUNK)
            rater, unit = self.rater[rows], self.judged.unit[rows]
            z = (self.judged.score[rows] - self.mean) / self.scale
            known = np.isfinite(z)
            n_others = self.given[unit] - known
            rest = np.full(z.size, np.nan)
            np.divide(self.total[unit] - np.where(known, z, 0.0), n_others, out=rest, where=n_others > 0)
            yield _Chunk(rater, z, rest, z - self.own_mean[rater])


def describe_raters(judged: Sequence[Judgements]) -> tuple[RaterRow, ...]:
    """One row per rater over all criteria, those with flags first, then by number of ratings."""
    names = sorted({name for j in judged for name in j.raters})
    n = len(names)
    places, _ = shared_codes(judged, "rater")
    raters = [place.astype(np.int32)[j.rater] for j, place in zip(judged, places, strict=True)]
    n_ratings, n_modal = np.zeros((2, n))
    for j, rater in zip(judged, raters, strict=True):
        n_ratings += np.bincount(rater, minlength=n)
        n_modal += _most_frequent(j, rater, n)
    straight_lining = n_modal / n_ratings
    spread, agreement, n_shared = _habits(judged, raters, n)
    n_items = _items_seen(judged, raters, n)
    seconds = np.concatenate([j.seconds for j in judged])
    pace, paces = _median(seconds), _medians(np.concatenate(raters), seconds, n)
    rows = [
        RaterRow(
            rater=name,
            n_ratings=int(n_ratings[r]),
            n_items=int(n_items[r]),
            median_seconds=float(paces[r]),
            spread=float(spread[r]),
            straight_lining=float(straight_lining[r]),
            agreement=float(agreement[r]),
            n_shared=int(n_shared[r]),
        )
        for r, name in enumerate(names)
    ]
    usual_modal, usual_agreement = float(np.median(straight_lining)), _median(agreement)
    flagged = [replace(row, flags=tuple(_flags(row, pace, usual_modal, usual_agreement))) for row in rows]
    return tuple(sorted(flagged, key=lambda r: (-len(r.flags), -r.n_ratings, r.rater)))


def _habits(judged: Sequence[Judgements], raters: Sequence[Codes], n: int) -> tuple[Floats, Floats, Ints]:
    """Each rater's spread, correlation with the others, and number of judgements that others gave too."""
    criteria = [
        _Standardised(j, rater, n)
        for j, rater in zip(judged, raters, strict=True)
        if j.treatment.kind != "boxes"  # words have no distance; they count for speed and habits only
    ]
    n_known, squares, n_shared, sum_z, sum_rest = np.zeros((5, n))
    for chunk in (chunk for criterion in criteria for chunk in criterion.chunks()):
        known, shared = np.isfinite(chunk.z), np.isfinite(chunk.z) & np.isfinite(chunk.rest)
        n_known += np.bincount(chunk.rater, known, minlength=n)
        squares += np.bincount(chunk.rater[known], chunk.deviation[known] ** 2, minlength=n)
        n_shared += np.bincount(chunk.rater, shared, minlength=n)
        sum_z += np.bincount(chunk.rater[shared], chunk.z[shared], minlength=n)
        sum_rest += np.bincount(chunk.rater[shared], chunk.rest[shared], minlength=n)
    mean_z, mean_rest = sum_z / np.maximum(n_shared, 1), sum_rest / np.maximum(n_shared, 1)
    product, square_z, square_rest = np.zeros((3, n))
    for chunk in (chunk for criterion in criteria for chunk in criterion.chunks()):
        shared = np.isfinite(chunk.z) & np.isfinite(chunk.rest)
        rater = chunk.rater[shared]
        dz, drest = chunk.z[shared] - mean_z[rater], chunk.rest[shared] - mean_rest[rater]
        product += np.bincount(rater, dz * drest, minlength=n)
        square_z += np.bincount(rater, dz**2, minlength=n)
        square_rest += np.bincount(rater, drest**2, minlength=n)
    size = np.sqrt(square_z * square_rest)
    agreement = np.full(n, np.nan)
    np.divide(product, size, out=agreement, where=(n_shared >= MIN_SHARED) & (size > 1e-12))
    spread = np.sqrt(np.divide(squares, n_known, out=np.full(n, np.nan), where=n_known > 1))
    return spread, agreement, n_shared.astype(np.int64)


def _most_frequent(judged: Judgements, rater: Codes, n_raters: int) -> Ints:
    """How often each rater gave the value that they gave most often."""
    values, code = distinct_values(judged.value)
    key = rater.astype(np.int64) * values.size + code
    if n_raters * values.size <= 4 * key.size + 1000:
        counts = np.bincount(key, minlength=n_raters * values.size)
        return np.asarray(counts.reshape(n_raters, values.size).max(axis=1))
    most = np.zeros(n_raters, dtype=np.int64)
    pairs, counts = np.unique(key, return_counts=True)
    np.maximum.at(most, pairs // values.size, counts)
    return most


def _items_seen(judged: Sequence[Judgements], raters: Sequence[Codes], n_raters: int) -> Ints:
    """How many distinct items each rater judged, over all criteria."""
    places, n_items = shared_codes(judged, "item")
    seen = np.concatenate(
        [
            rater.astype(np.int64) * n_items + place[j.item]
            for j, rater, place in zip(judged, raters, places, strict=True)
        ]
    )
    seen.sort()
    new = np.diff(seen, prepend=-1) > 0
    return np.bincount(seen[new] // n_items, minlength=n_raters)


def _flags(row: RaterRow, pace: float, usual_modal: float, usual_agreement: float) -> Iterator[str]:
    if row.median_seconds < pace / 3:
        yield "too fast"
    if row.n_ratings >= 10 and row.straight_lining >= max(0.95, usual_modal + 0.05):
        yield "straight-lining"
    if row.n_shared >= 10 and row.agreement < 0.1:
        upper = np.tanh(np.arctanh(max(row.agreement, -0.999)) + 1.96 / np.sqrt(row.n_shared - 3))
        if upper < usual_agreement:
            yield "disagrees"


def _median(values: NDArray[np.floating]) -> float:
    known = values[np.isfinite(values)].astype(np.float64)
    return float(np.median(known)) if known.size else np.nan


def _medians(group: Codes, values: NDArray[np.float32], n_groups: int) -> Floats:
    """The median of each group's finite values."""
    medians = np.full(n_groups, np.nan)
    known = np.isfinite(values)
    if known.any():
        frame = pl.DataFrame({"group": group[known], "value": values[known].astype(np.float64)})
        by_group = frame.group_by("group").agg(pl.col("value").median())
        medians[by_group["group"].to_numpy()] = by_group["value"].to_numpy()
    return medians


def busiest_raters(judged: Judgements) -> list[int]:
    """Codes of the raters with most ratings; of equals the first by name."""
    counts = np.bincount(judged.rater, minlength=len(judged.raters))
    return sorted(range(counts.size), key=lambda r: (-counts[r], judged.raters[r]))[:SHOWN]


def rater_matrix(judged: Judgements) -> RaterMatrix | None:
    """Correlation of every two of the busiest raters over the outputs both judged."""
    if judged.treatment.kind == "boxes" or len(judged.raters) < 2:
        return None
    busiest = busiest_raters(judged)
    column = np.full(len(judged.raters), -1)
    column[busiest] = np.arange(len(busiest))
    rows = np.flatnonzero((column[judged.rater] >= 0) & np.isfinite(judged.score))
    own = np.bincount(column[judged.rater[rows]], minlength=len(busiest))
    shared = np.bincount(judged.unit[rows], minlength=judged.n_units) > 1
    rows = rows[shared[judged.unit[rows]]]  # what one of them judged alone says nothing about two
    rows = rows[np.argsort(judged.unit[rows], kind="stable")]
    unit, rater = judged.unit[rows], column[judged.rater[rows]]
    score = judged.score[rows]
    if score.size:
        score -= score.mean()
    n, sum_a, sum_ab, square = np.zeros((4, len(busiest), len(busiest)))
    ends = np.append(np.flatnonzero(np.diff(unit)) + 1, unit.size)  # where each output's ratings end
    begin = 0
    for end in [*ends[_UNITS - 1 : -1 : _UNITS].tolist(), unit.size]:  # as many outputs as fit the memory
        output = np.unique(unit[begin:end], return_inverse=True)[1]
        table = np.zeros((int(output.max(initial=-1)) + 1, len(busiest)))
        given = np.zeros_like(table)
        table[output, rater[begin:end]] = score[begin:end]
        given[output, rater[begin:end]] = 1.0
        n += given.T @ given
        sum_a += table.T @ given
        sum_ab += table.T @ table
        square += (table**2).T @ given
        begin = end
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = sum_ab - sum_a * sum_a.T / n
        variance = square - sum_a**2 / n
        size = np.sqrt(variance * variance.T)
        value = np.where((n >= MIN_SHARED) & (size > 1e-9), covariance / size, np.nan)
    np.fill_diagonal(n, own)
    np.fill_diagonal(value, np.where(own > 0, 1.0, np.nan))
    return RaterMatrix(
        criterion=judged.criterion,
        raters=tuple(judged.raters[r] for r in busiest),
        values=tuple(tuple(float(v) for v in row) for row in value),
        n_shared=tuple(tuple(int(v) for v in row) for row in n),
    )
