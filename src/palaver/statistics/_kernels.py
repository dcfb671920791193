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


@numba.njit(cache=True)
def gather_sums(table: NDArray[np.float64], n_replicates: int, seed: np.uint64) -> NDArray[np.float64]:
    """Column sums over n rows drawn with replacement, `n_replicates` times.

    Each 64-bit draw gives two row numbers by multiply-shift; for n < 2**32 the bias is below n / 2**32.
    """
    n, m = table.shape
    out = np.zeros((n_replicates, m))
    size = np.uint64(n)
    low_half = np.uint64(0xFFFFFFFF)
    state = np.uint64(seed)
    step = np.uint64(0x9E3779B97F4A7C15)
    for b in range(n_replicates):
        row = out[b]
        i = 0
        while i < n:
            state += step
            z = _mix(state)
            first = ((z >> np.uint64(32)) * size) >> np.uint64(32)
            for j in range(m):
                row[j] += table[first, j]
            i += 1
            if i < n:
                second = ((z & low_half) * size) >> np.uint64(32)
                for j in range(m):
                    row[j] += table[second, j]
                i += 1
    return out
