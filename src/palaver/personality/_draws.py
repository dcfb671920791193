"""Compiled drawing of samples. Imported only where it is used: numba takes a third of a second to load.

All let go of Python's lock, so that threads draw at the same time. The random numbers are those of splitmix64
(Steele, Lea & Flood 2014); samples are beginnings of a Fisher-Yates shuffle, which goes on from sample to
sample: whatever order it starts from, each beginning is a random one.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from palaver.statistics._random_kernels import STEP, mix


@numba.njit(cache=True, inline="always")
def _shuffle(pool: Any, size: int, state: Any) -> Any:
    """Put a random sample into the first `size` places of `pool`."""
    n = len(pool)
    for i in range(size):
        state += STEP
        fraction = np.float64(mix(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        j = i + np.int64(fraction * (n - i))
        pool[i], pool[j] = pool[j], pool[i]
    return state


@numba.njit(cache=True, nogil=True)
def draw_rows(pool: Any, size: int, seed: Any, out: Any) -> None:
    """out (n, size): samples of `pool`, which is shuffled in place."""
    state = np.uint64(seed)
    for k in range(out.shape[0]):
        state = _shuffle(pool, size, state)
        out[k] = pool[:size]


@numba.njit(cache=True, nogil=True)
def draw_packed_totals(pool: Any, size: int, seed: Any, pointers: Any, packed: Any, out: Any) -> Any:
    """out (n, columns): sums of rows over the samples that `draw_rows` would draw.

    The rows are those of a sparse matrix, its columns and whole counts packed into one number.

    Rows of a matrix of gigabytes are far apart, and waiting for one after the other would take most of the
    time: first all rows of a sample are touched, so that the processor fetches many of them at once.
    """
    state = np.uint64(seed)
    begin = np.empty(size, np.int64)
    touched = np.uint32(0)
    for k in range(out.shape[0]):
        state = _shuffle(pool, size, state)
        for i in range(size):
            begin[i] = pointers[pool[i]]
        for i in range(size):
            touched ^= packed[begin[i]] if begin[i] < len(packed) else touched
        row = out[k]
        for i in range(size):
            for j in range(begin[i], pointers[pool[i] + 1]):
                row[packed[j] >> np.uint32(16)] += packed[j] & np.uint32(0xFFFF)
    return touched  # or the compiler would leave the touching out


@numba.njit(cache=True, nogil=True)
def draw_dense_totals(pool: Any, size: int, seed: Any, counts: Any, out: Any) -> None:
    """The same for counts that are no sparse matrix: three times as fast, where there is room for them."""
    state = np.uint64(seed)
    width = counts.shape[1]
    for k in range(out.shape[0]):
        state = _shuffle(pool, size, state)
        row = out[k]
        for i in range(size):
            added = counts[pool[i]]
            for j in range(width):
                row[j] += added[j]
