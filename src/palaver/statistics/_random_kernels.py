"""splitmix64 (Steele, Lea & Flood 2014) for compiled loops: a counter through a 64-bit finaliser.

numba keeps what it compiled until the file of the loop itself changes, so a change here needs an empty cache.
"""

from __future__ import annotations

import numba
import numpy as np

STEP = np.uint64(0x9E3779B97F4A7C15)
"""What the counter goes on by."""


@numba.njit(cache=True, inline="always")
def mix(z: np.uint64) -> np.uint64:
    """The finaliser: the random number of a counter, or a hash whose bits are all mixed."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
