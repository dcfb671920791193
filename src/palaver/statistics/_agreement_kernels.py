"""Compiled inner loops of the agreement statistics; imported only where one is called."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
