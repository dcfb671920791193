"""Compiled loops over pairs of scores. Imported only where one is called: numba takes time to load."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.statistics._kernels import concordance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def row_counts(people: Floats, judge: Floats, tie: Floats) -> Ints:
    """Of each row's pairs: concordant, discordant, tied by people only, by the judge only, by both.

    Two scores of the judge that differ by at most `tie` of their row are a tie. Pairs with a missing score do
    not count.
    """
    n_rows, n_columns = people.shape
    counts = np.zeros((n_rows, 5), dtype=np.int64)
    for row in range(n_rows):
        for i in range(n_columns):
            h, m = people[row, i], judge[row, i]
            if np.isnan(h) or np.isnan(m):
                continue
            for j in range(i):
                dh, dm = h - people[row, j], m - judge[row, j]
                if np.isnan(dh) or np.isnan(dm):
                    continue
                judge_ties = abs(dm) <= tie[row]
                if dh == 0.0:
                    counts[row, 4 if judge_ties else 2] += 1
                elif judge_ties:
                    counts[row, 3] += 1
                elif (dh > 0.0) == (dm > 0.0):
                    counts[row, 0] += 1
                else:
                    counts[row, 1] += 1
    return counts


@numba.njit(cache=True, nogil=True)
def _changes(
    people: Floats, judge: Floats, fold: Ints, weight: Floats, n_folds: int
) -> tuple[Floats, Ints, Floats]:
    """Each pair's difference, its change (see below), and each fold's accuracy with no new tie.

    If a pair becomes a tie, accuracy gains where people tie it and loses where it is concordant; a discordant
    one is wrong either way and left out. A change is twice the row, plus 1 for a gain.
    """
    n_rows, n_columns = people.shape
    differences = np.empty(n_rows * n_columns * (n_columns - 1) // 2)
    changes = np.empty(differences.size, dtype=np.int64)
    base = np.zeros(n_folds)
    n = 0
    for row in range(n_rows):
        w = weight[row]
        if w == 0.0:
            continue
        for i in range(n_columns):
            h, m = people[row, i], judge[row, i]
            for j in range(i):
                dh, dm = h - people[row, j], m - judge[row, j]
                if np.isnan(dh) or np.isnan(dm):
                    continue
                if dh == 0.0:
                    if dm == 0.0:
                        base[fold[row]] += w
                    else:
                        differences[n], changes[n] = abs(dm), 2 * row + 1
                        n += 1
                elif dm != 0.0 and (dh > 0.0) == (dm > 0.0):
                    base[fold[row]] += w
                    differences[n], changes[n] = abs(dm), 2 * row
                    n += 1
    return differences[:n], changes[:n], base


@numba.njit(cache=True, nogil=True)
def _sorted_changes(differences: Floats, changes: Ints) -> tuple[Floats, Ints]:
    """Both in the order of the differences: dealt into bins of equal width, each sorted by itself."""
    n = differences.size
    n_bins = max(1, n // 4)
    scale = (n_bins - 1) / differences.max()
    if not np.isfinite(scale):
        scale = 0.0
    starts = np.zeros(n_bins + 1, dtype=np.int64)
    for k in range(n):
        starts[int(differences[k] * scale) + 1] += 1
    starts = np.cumsum(starts)
    at = starts[:-1].copy()
    values = np.empty(n)
    codes = np.empty(n, dtype=np.int64)
    for k in range(n):
        b = int(differences[k] * scale)
        values[at[b]], codes[at[b]] = differences[k], changes[k]
        at[b] += 1
    for b in range(n_bins):
        start, stop = starts[b], starts[b + 1]
        if stop - start > 32:  # few outliers make wide bins
            order = np.argsort(values[start:stop])
            values[start:stop] = values[start:stop][order]
            codes[start:stop] = codes[start:stop][order]
            continue
        for i in range(start + 1, stop):
            value, code = values[i], codes[i]
            j = i
            while j > start and values[j - 1] > value:
                values[j], codes[j] = values[j - 1], codes[j - 1]
                j -= 1
            values[j], codes[j] = value, code
    return values, codes


@numba.njit(cache=True, nogil=True)
def best_ties(
    people: Floats, judge: Floats, fold: Ints, weight: Floats, n_folds: int
) -> tuple[Floats, Floats, float]:
    """The best tie threshold without each fold, and last with all; the weight of pairs got right with it.

    Also that weight without new ties. Of several thresholds the smallest.
    """
    differences, changes, base = _changes(people, judge, fold, weight, n_folds)
    whole = base.sum()
    thresholds = np.zeros(n_folds + 1)
    best = np.empty(n_folds + 1)
    best[:n_folds] = whole - base
    best[n_folds] = whole
    plain = whole
    tolerance = 1e-9 * (1.0 + whole)  # sums in another order differ in their last digits
    if differences.size:
        values, codes = _sorted_changes(differences, changes)
        gained = False
        for place in range(values.size):
            row = codes[place] >> 1
            gain = weight[row] if codes[place] & 1 else -weight[row]
            gained = gained or gain > 0.0
            whole += gain
            base[fold[row]] += gain
            if place + 1 < values.size and values[place + 1] == values[place]:
                continue  # all pairs of one difference become ties together
            if not gained:
                continue
            gained = False
            if whole > best[n_folds] + tolerance:
                thresholds[n_folds], best[n_folds] = values[place], whole
            for f in range(n_folds):
                if whole - base[f] > best[f] + tolerance:
                    thresholds[f], best[f] = values[place], whole - base[f]
    return thresholds, best, plain


@numba.njit(cache=True, nogil=True)
def count_sides(drawn: NDArray[np.float32], observed: NDArray[np.float32], margin: Floats) -> Ints:
    """For columns i < j of `drawn`: how often their difference is above and below the observed one."""
    n_rows, n_columns = drawn.shape
    counts = np.zeros((n_columns * (n_columns - 1) // 2, 2), dtype=np.int64)
    for row in range(n_rows):
        pair = 0
        for i in range(n_columns):
            for j in range(i + 1, n_columns):
                beyond = np.float64((drawn[row, i] - drawn[row, j]) - (observed[i] - observed[j]))
                counts[pair, 0] += beyond > margin[pair]
                counts[pair, 1] += beyond < -margin[pair]
                pair += 1
    return counts


@numba.njit(cache=True, nogil=True)
def _rank(values: Floats, ranks: Floats, codes: Ints) -> float:
    """Fill in mid-ranks and dense codes; gives back the number of pairs that are not tied."""
    order = np.argsort(values)
    n = values.size
    untied = 0.5 * n * (n - 1)
    start = 0
    code = 0
    while start < n:
        stop = start + 1
        while stop < n and values[order[stop]] == values[order[start]]:
            stop += 1
        for place in range(start, stop):
            ranks[order[place]] = 0.5 * (start + stop + 1)
            codes[order[place]] = code
        untied -= 0.5 * (stop - start) * (stop - start - 1)
        start = stop
        code += 1
    return untied


@numba.njit(cache=True, nogil=True)
def rank_rows(x: Floats, ys: Floats) -> tuple[Floats, Floats, Floats]:
    """Mid-ranks of `x` and of each row of `ys`, and Kendall's tau-b of `x` with each row."""
    n = x.size
    ranks_x = np.empty(n)
    ranks_y = np.empty(ys.shape)
    codes_x = np.empty(n, dtype=np.int64)
    codes_y = np.empty(n, dtype=np.int64)
    tau = np.full(ys.shape[0], np.nan)
    untied_x = _rank(x, ranks_x, codes_x)
    order = np.argsort(x)
    once = np.ones(n, dtype=np.int64)
    for k in range(ys.shape[0]):
        untied_y = _rank(ys[k], ranks_y[k], codes_y)
        if untied_x > 0 and untied_y > 0:
            difference = concordance(codes_x[order], codes_y[order], once, codes_y.max() + 1)
            tau[k] = difference / np.sqrt(untied_x * untied_y)
    return ranks_x, ranks_y, tau
