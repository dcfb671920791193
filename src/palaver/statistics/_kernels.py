"""Compiled inner loops. Imported only where one is called: numba takes a third of a second to load."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.statistics._random_kernels import STEP, mix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def draw_weights(weights: Floats, n_draws: Ints, state: np.uint64) -> np.uint64:
    """Fill each row with how often each of its n items is drawn in its `n_draws`; returns the next state.

    Each 64-bit number gives two draws by multiply-shift; for n < 2**32 the bias is below n / 2**32.
    """
    n_rows, n = weights.shape
    size = np.uint64(n)
    half = np.uint64(32)
    low_half = np.uint64(0xFFFFFFFF)
    for b in range(n_rows):
        row = weights[b]
        row[:] = 0.0
        for _ in range(n_draws[b] // 2):
            state += STEP
            z = mix(state)
            row[((z >> half) * size) >> half] += 1.0
            row[((z & low_half) * size) >> half] += 1.0
        if n_draws[b] % 2:
            state += STEP
            row[((mix(state) >> half) * size) >> half] += 1.0
    return state


@numba.njit(cache=True)
def ratio_pair_sums(starts: Ints, values: Floats, counts: Floats) -> Floats:
    """Sum of ((a - b) / (a + b))^2 over the ordered pairs of each unit, unit u at starts[u]:starts[u + 1].

    Values within a unit are distinct and not negative, so a + b > 0 for every pair.
    """
    out = np.zeros(starts.size - 1)
    for u in range(starts.size - 1):
        total = 0.0
        for i in range(starts[u], starts[u + 1]):
            inner = 0.0
            for j in range(starts[u], i):
                share = (values[i] - values[j]) / (values[i] + values[j])
                inner += counts[j] * share * share
            total += counts[i] * inner
        out[u] = 2.0 * total
    return out


# Rank correlation ----------------------------------------------------------------------------------
#
# All work on dense codes 0..k-1 instead of values, and a bootstrap replicate is a weight per pair (how often
# it was drawn). So no replicate is ever sorted: ranks are running sums of the weights per code, and
# Kendall's S comes from one pass with a Fenwick tree (Fenwick 1994) over the codes of y.


@numba.njit(cache=True, nogil=True)
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
def _draw_pairs(weight: Ints, state: np.uint64) -> np.uint64:
    """Fill `weight` with how often each of n pairs is drawn in n draws; gives back the random state."""
    weight[:] = 0
    size = np.uint64(weight.size)
    for _ in range(weight.size):
        state += STEP
        weight[((mix(state) >> np.uint64(32)) * size) >> np.uint64(32)] += 1
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
def _spearman(x: Ints, y: Ints, weight: Ints, count_x: Ints, count_y: Ints) -> float:
    rank_x = _centred_ranks(count_x, x.size)
    rank_y = _centred_ranks(count_y, x.size)
    spread = np.sum(count_x * rank_x**2) * np.sum(count_y * rank_y**2)
    if spread <= 0:
        return np.nan
    product = 0.0
    for i in range(x.size):
        product += weight[i] * rank_x[x[i]] * rank_y[y[i]]
    return float(product / np.sqrt(spread))


@numba.njit(cache=True)
def _kendall(x: Ints, y: Ints, weight: Ints, count_x: Ints, count_y: Ints) -> float:
    pairs = 0.5 * x.size * (x.size - 1)
    untied_x = pairs - 0.5 * np.sum(count_x * (count_x - 1))
    untied_y = pairs - 0.5 * np.sum(count_y * (count_y - 1))
    if untied_x <= 0 or untied_y <= 0:
        return np.nan
    return float(concordance(x, y, weight, count_y.size) / (np.sqrt(untied_x) * np.sqrt(untied_y)))


@numba.njit(cache=True)
def rank_replicates(
    x: Ints, y: Ints, n_codes: tuple[int, int], kendall: bool, n_replicates: int, seed: np.uint64
) -> Floats:
    """Kendall's tau-b or Spearman's rho of bootstrap samples of the pairs; nan where one side is constant.

    `x` must ascend.
    """
    out = np.empty(n_replicates)
    weight = np.zeros(x.size, dtype=np.int64)
    state = np.uint64(seed)
    for b in range(n_replicates):
        state = _draw_pairs(weight, state)
        count_x = _count(x, weight, n_codes[0])
        count_y = _count(y, weight, n_codes[1])
        if kendall:
            out[b] = _kendall(x, y, weight, count_x, count_y)
        else:
            out[b] = _spearman(x, y, weight, count_x, count_y)
    return out
