"""Compiled inner loops. Imported only where one is called: numba takes a third of a second to load."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, inline="always")
def _mix(state: np.uint64) -> np.uint64:
    """One step of splitmix64 (Steele, Lea & Flood 2014): a counter through a 64-bit finaliser."""
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def draw_weights(weights: NDArray[np.float64], n_draws: NDArray[np.int64], state: np.uint64) -> np.uint64:
    """Fill each row with how often each of its n items is drawn in its `n_draws`; returns the next state.

    Each 64-bit number gives two draws by multiply-shift; for n < 2**32 the bias is below n / 2**32.
    """
    n_rows, n = weights.shape
    size = np.uint64(n)
    half = np.uint64(32)
    low_half = np.uint64(0xFFFFFFFF)
    step = np.uint64(0x9E3779B97F4A7C15)
    for b in range(n_rows):
        row = weights[b]
        row[:] = 0.0
        for _ in range(n_draws[b] // 2):
            state += step
            z = _mix(state)
            row[((z >> half) * size) >> half] += 1.0
            row[((z & low_half) * size) >> half] += 1.0
        if n_draws[b] % 2:
            state += step
            row[((_mix(state) >> half) * size) >> half] += 1.0
    return state
