"""Pairs of outputs that people and a judge put in order: counts, Kendall's taus, accuracy and its ties.

A pair is concordant or discordant, or tied by people, by the judge, or by both (Kendall 1945). With accuracy
"acc-eq" (Deutsch, Foster & Freitag, EMNLP 2023: Ties Matter) a judge is right where it orders a pair as
people do and where it ties a pair that people tie. A judge of real numbers hardly ever ties, so two of its
scores that differ by at most a threshold count as tied. The threshold that is best on the pairs it is scored
on flatters the judge; here it is found on other items (cross-fitting).

Soft pairwise accuracy (Thompson, Mathur, Deutsch & Khayrallah, WMT 2024) compares how sure people and judge
are that one system is better than another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats, Rng

Ints = NDArray[np.int64]
_MARGIN = 1e-5
"""Of single precision: sums that differ by a smaller part are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """How often people and a judge agree about which of two outputs is better."""

    concordant: int
    discordant: int
    tied_by_people: int
    """And not by the judge."""
    tied_by_judge: int
    """And not by people."""
    tied_by_both: int

    @property
    def n(self) -> int:
        return (
            self.concordant + self.discordant + self.tied_by_people + self.tied_by_judge + self.tied_by_both
        )

    @property
    def accuracy(self) -> float:
        """The share of pairs that the judge gets right, ties included (acc-eq)."""
        return _share(self.concordant + self.tied_by_both, self.n)

    @property
    def tau_a(self) -> float:
        return _share(self.concordant - self.discordant, self.n)

    @property
    def tau_b(self) -> float:
        """Kendall (1945): pairs that a side ties are taken out of that side."""
        ordered = self.concordant + self.discordant
        of_people, of_judge = ordered + self.tied_by_judge, ordered + self.tied_by_people
        return _share(self.concordant - self.discordant, math.sqrt(of_people * of_judge))

    @property
    def gamma(self) -> float:
        """Goodman and Kruskal (1954): only pairs that both sides order."""
        return _share(self.concordant - self.discordant, self.concordant + self.discordant)

    @property
    def tau_14(self) -> float:
        """WMT 2014's: of the pairs that people order, those right minus those wrong."""
        ordered_by_people = self.concordant + self.discordant + self.tied_by_judge
        return _share(self.concordant - self.discordant, ordered_by_people)


@dataclass(frozen=True, slots=True, kw_only=True)
class TieCalibration:
    """The accuracy of a judge whose near scores count as ties."""

    accuracy: float
    """With thresholds found on the other folds of items."""
    without_ties: float
    """With the judge's scores as they are."""
    on_itself: float
    """With the threshold that is best on the very pairs it is scored on: what tuning on the test claims."""
    threshold: float
    """The best on all items, for use on new ones."""
    thresholds: tuple[float, ...]
    """One of each fold."""
    n_pairs: int
    n_items: int
    of_items: Floats
    """Each item's share of pairs got right with the fold's threshold; nan where it has no pair."""


def count_pairs(people: ArrayLike, judge: ArrayLike, tie: float = 0.0) -> PairCounts:
    """The pairs within each row of two (items, systems) tables; 1-D is one row. nan is missing.

    >>> count_pairs([1, 2, 2, 4], [1, 3, 2, 2]).accuracy
    0.5
    """
    h, m = _tables(people, judge)
    from palaver.statistics._pair_kernels import row_counts

    totals = row_counts(h, m, np.full(len(h), float(tie))).sum(axis=0)
    names = ("concordant", "discordant", "tied_by_people", "tied_by_judge", "tied_by_both")
    return PairCounts(**{name: int(n) for name, n in zip(names, totals, strict=True)})


def search_tie(people: ArrayLike, judge: ArrayLike) -> tuple[float, float]:
    """The tie threshold with the highest mean accuracy over the rows, and that accuracy.

    Rows without a pair do not count. Of several thresholds the smallest; no threshold is 0.

    >>> search_tie([[1, 1, 2]], [[0.1, 0.2, 0.9]])
    (0.1, 1.0)
    """
    h, m = _tables(people, judge)
    weight = _row_weights(h, m)
    if not weight.any():
        return 0.0, math.nan
    from palaver.statistics._pair_kernels import best_ties

    thresholds, totals, _ = best_ties(h, m, np.zeros(len(h), dtype=np.int64), weight, 1)
    return float(thresholds[-1]), float(totals[-1] / np.count_nonzero(weight))


def calibrate_ties(
    people: ArrayLike, judge: ArrayLike, *, fold: ArrayLike | None = None, n_folds: int = 5, seed: int = 0
) -> TieCalibration:
    """Accuracy over pairs within rows; no row is scored with a tie threshold that it helped to choose.

    `fold` numbers the fold of each row (rows of one dialogue belong together); without it rows are dealt out.
    """
    h, m = _tables(people, judge)
    from palaver.statistics._pair_kernels import best_ties, row_counts

    weight = _row_weights(h, m)
    has_pairs = weight > 0
    n_rows = int(has_pairs.sum())
    if fold is None:
        folds = np.random.default_rng(seed).permutation(np.arange(len(h)) % n_folds)
    else:
        folds = np.unique(np.asarray(fold), return_inverse=True)[1].astype(np.int64)
    if folds.shape != (len(h),):
        raise ValueError(f"fold must number the fold of each of {len(h)} rows, found shape {folds.shape}")
    of_items = np.full(len(h), np.nan)
    if not n_rows:
        return TieCalibration(
            accuracy=math.nan, without_ties=math.nan, on_itself=math.nan, threshold=math.nan,
            thresholds=(), n_pairs=0, n_items=0, of_items=of_items,
        )  # fmt: skip
    thresholds, totals, plain = best_ties(h, m, folds, weight, int(folds.max()) + 1)
    counts = row_counts(h, m, thresholds[folds])
    of_items[has_pairs] = (counts[:, [0, 4]].sum(axis=1) * weight)[has_pairs]
    return TieCalibration(
        accuracy=float(of_items[has_pairs].mean()),
        without_ties=float(plain / n_rows),
        on_itself=float(totals[-1] / n_rows),
        threshold=float(thresholds[-1]),
        thresholds=tuple(thresholds[:-1].tolist()),
        n_pairs=int(counts.sum()),
        n_items=n_rows,
        of_items=of_items,
    )


def rank_correlations(x: ArrayLike, ys: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Mid-ranks of `x` and of each row of `ys`, and Kendall's tau-b of `x` with each (nan: constant).

    >>> rank_correlations([1, 2, 3, 4], [[1, 3, 2, 4]])[2].round(3).tolist()
    [0.667]
    """
    from palaver.statistics._pair_kernels import rank_rows

    rows = np.ascontiguousarray(ys, dtype=np.float64)
    ranks_x, ranks_y, tau = rank_rows(np.ascontiguousarray(x, dtype=np.float64), rows)
    return ranks_x, ranks_y, tau


def system_confidences(scores: ArrayLike, signs: NDArray[np.float32]) -> Floats:
    """How sure an (items, systems) table is that system i is better than system j, for the pairs i < j.

    1 minus the one-sided p of a paired permutation test: `signs` (permutations, items) say for which items
    the two systems change places. Equal sums count half. nan where two systems share no item.
    """
    table = np.asarray(scores, dtype=np.float64)
    first, second = np.triu_indices(table.shape[1], 1)
    if np.isfinite(table).all():
        from palaver.statistics._pair_kernels import count_sides

        centred = (table - table.mean(axis=1, keepdims=True)).astype(np.float32)
        sizes = np.abs(centred).sum(axis=0)
        scale = sizes[first] + sizes[second]
        drawn = np.ascontiguousarray(signs @ centred)  # (permutations, systems)
        counts = count_sides(drawn, centred.sum(axis=0), _MARGIN * scale.astype(np.float64))
        above, below = counts.T
    else:
        between = table[:, first] - table[:, second]  # (items, pairs)
        shared = np.isfinite(between)
        between = np.where(shared, between, 0.0).astype(np.float32)
        scale = np.where(shared.any(axis=0), np.abs(between).sum(axis=0), np.nan)
        beyond = signs @ between - between.sum(axis=0)  # (permutations, pairs)
        above = (beyond > _MARGIN * scale).sum(axis=0)
        below = (beyond < -_MARGIN * scale).sum(axis=0)
    confidences: Floats = 0.5 + (below - above) / (2 * len(signs))
    return np.where(np.isnan(scale), np.nan, confidences)


def draw_signs(n_items: int, n_permutations: int, rng: Rng) -> NDArray[np.float32]:
    """Random signs (permutations, items) for `system_confidences`."""
    draws = np.random.default_rng(rng).integers(0, 2, size=(n_permutations, n_items), dtype=np.int8)
    signs: NDArray[np.float32] = draws.astype(np.float32) * 2 - 1
    return signs


def soft_pairwise_accuracy(people: Floats, judge: Floats) -> float:
    """1 minus the mean difference of two `system_confidences`, over pairs that both know.

    >>> soft_pairwise_accuracy(np.array([1.0, 0.5]), np.array([0.9, 0.5]))
    0.95
    """
    known = np.isfinite(people) & np.isfinite(judge)
    if not known.any():
        return math.nan
    return float(1 - np.abs(people[known] - judge[known]).mean())


def _tables(people: ArrayLike, judge: ArrayLike) -> tuple[Floats, Floats]:
    h = np.ascontiguousarray(np.atleast_2d(np.asarray(people, dtype=np.float64)))
    m = np.ascontiguousarray(np.atleast_2d(np.asarray(judge, dtype=np.float64)))
    if h.ndim != 2 or h.shape != m.shape:
        raise ValueError(f"people and judge must be tables of one shape, found {h.shape} and {m.shape}")
    return h, m


def _row_weights(people: Floats, judge: Floats) -> Floats:
    """One over the number of pairs of each row, 0 where it has none."""
    n = (np.isfinite(people) & np.isfinite(judge)).sum(axis=1)
    pairs = n * (n - 1) / 2
    return np.where(pairs > 0, 1 / np.maximum(pairs, 1), 0.0)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan
