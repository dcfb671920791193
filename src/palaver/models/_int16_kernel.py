"""The compiled loop of `palaver.models.int16`. Imported where it is called: numba takes a while to load."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True, fastmath=True)
def multiply(levels: np.ndarray, scale: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """`out` (N,) = scale * (levels (N, M) @ x (M,))."""
    n_rows, n_columns = levels.shape
    for i in range(n_rows):
        total = np.float32(0)
        for j in range(n_columns):
            total += np.float32(levels[i, j]) * x[j]
        out[i] = total * scale[i]
