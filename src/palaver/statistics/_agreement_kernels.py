"""Compiled inner loops of the agreement statistics; imported only where one is called."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from palaver.statistics._kernels import _mix

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@numba.njit(cache=True)
def draw_weights(weights: Floats, state: np.uint64) -> np.uint64:
    """Fill each row with how often each of its n items is drawn in n draws; returns the next state.

    As in `gather_sums`, one 64-bit number gives two draws by multiply-shift.
    """
    n_rows, n = weights.shape
    size = np.uint64(n)
    half = np.uint64(32)
    low_half = np.uint64(0xFFFFFFFF)
    step = np.uint64(0x9E3779B97F4A7C15)
    for b in range(n_rows):
        row = weights[b]
        row[:] = 0.0
        for _ in range(n // 2):
            state += step
            z = _mix(state)
            row[((z >> half) * size) >> half] += 1.0
            row[((z & low_half) * size) >> half] += 1.0
        if n % 2:
            state += step
            row[((_mix(state) >> half) * size) >> half] += 1.0
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
