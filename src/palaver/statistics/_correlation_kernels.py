"""Compiled loops for rank correlation. Imported only where one is called: numba is slow to load.

All of them work on dense codes 0..k-1 instead of values, and a bootstrap replicate is a weight per pair
(how often it was drawn). So no replicate is ever sorted: ranks are running sums of the weights per code,
and Kendall's S comes from one pass with a Fenwick tree (Fenwick 1994) over the codes of y.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.statistics._kernels import _mix

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@numba.njit(cache=True)
def concordance(x: Ints, y: Ints, weight: Ints, n_y: int) -> int:
    """Concordant minus discordant pairs; `x` must ascend, and equal x or equal y count as neither."""
    tree = np.zeros(n_y + 1, dtype=np.int64)  # 1-based Fenwick tree of the weight seen at each y
    at = np.zeros(n_y, dtype=np.int64)
    seen = 0
    total = 0
    start = 0
    while start < x.size:
        stop = start
        while stop < x.size and x[stop] == x[start]:
            if weight[stop] > 0:
                below = 0
                node = y[stop]
                while node > 0:
                    below += tree[node]
                    node -= node & -node
                above = seen - below - at[y[stop]]
                total += weight[stop] * (below - above)
            stop += 1
        for i in range(start, stop):  # only now, so that pairs tied in x do not meet
            if weight[i] > 0:
                at[y[i]] += weight[i]
                seen += weight[i]
                node = y[i] + 1
                while node <= n_y:
                    tree[node] += weight[i]
                    node += node & -node
        start = stop
    return total


@numba.njit(cache=True)
def _draw_weights(weight: Ints, state: np.uint64) -> np.uint64:
    """Fill `weight` with how often each of n pairs is drawn in n draws; gives back the random state."""
    weight[:] = 0
    size = np.uint64(weight.size)
    for _ in range(weight.size):
        state += np.uint64(0x9E3779B97F4A7C15)
        weight[((_mix(state) >> np.uint64(32)) * size) >> np.uint64(32)] += 1
    return state


@numba.njit(cache=True)
def _count(codes: Ints, weight: Ints, n_codes: int) -> Ints:
    counts = np.zeros(n_codes, dtype=np.int64)
    for i in range(codes.size):
        counts[codes[i]] += weight[i]
    return counts


@numba.njit(cache=True)
def _centred_ranks(counts: Ints, n: int) -> Floats:
    """Mid-rank of each code minus the mean rank, which is (n + 1) / 2 whatever the ties."""
    ranks = np.empty(counts.size)
    before = 0
    for code in range(counts.size):
        ranks[code] = before + 0.5 * (counts[code] - n)
        before += counts[code]
    return ranks


@numba.njit(cache=True)
def spearman_replicates(x: Ints, y: Ints, n_x: int, n_y: int, n_replicates: int, seed: np.uint64) -> Floats:
    """Spearman's rho of `n_replicates` bootstrap samples of the pairs; nan where one side is constant."""
    out = np.full(n_replicates, np.nan)
    weight = np.zeros(x.size, dtype=np.int64)
    state = np.uint64(seed)
    for b in range(n_replicates):
        state = _draw_weights(weight, state)
        count_x = _count(x, weight, n_x)
        count_y = _count(y, weight, n_y)
        rank_x = _centred_ranks(count_x, x.size)
        rank_y = _centred_ranks(count_y, x.size)
        spread = np.sum(count_x * rank_x**2) * np.sum(count_y * rank_y**2)
        if spread > 0:
            product = 0.0
            for i in range(x.size):
                product += weight[i] * rank_x[x[i]] * rank_y[y[i]]
            out[b] = product / np.sqrt(spread)
    return out


@numba.njit(cache=True)
def kendall_replicates(x: Ints, y: Ints, n_x: int, n_y: int, n_replicates: int, seed: np.uint64) -> Floats:
    """Kendall's tau-b of `n_replicates` bootstrap samples; `x` must ascend; nan if one side is constant."""
    out = np.full(n_replicates, np.nan)
    weight = np.zeros(x.size, dtype=np.int64)
    state = np.uint64(seed)
    pairs = 0.5 * x.size * (x.size - 1)
    for b in range(n_replicates):
        state = _draw_weights(weight, state)
        count_x = _count(x, weight, n_x)
        count_y = _count(y, weight, n_y)
        untied_x = pairs - 0.5 * np.sum(count_x * (count_x - 1))
        untied_y = pairs - 0.5 * np.sum(count_y * (count_y - 1))
        if untied_x > 0 and untied_y > 0:
            out[b] = concordance(x, y, weight, n_y) / (np.sqrt(untied_x) * np.sqrt(untied_y))
    return out
