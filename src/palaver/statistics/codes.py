"""Integer codes: arrays of whole numbers that stand for names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def dense_codes(name: str, codes: NDArray[np.generic]) -> tuple[Ints, int]:
    """Integer codes renumbered 0 .. n-1 in their order without gaps, and n.

    >>> dense_codes("item", np.array([7, 3, 7]))
    (array([1, 0, 1]), 2)
    """
    if codes.size == 0:
        return np.empty(0, dtype=np.int64), 0
    if codes.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integer codes, not {codes.dtype}")
    lowest, highest = int(codes.min()), int(codes.max())
    if highest - lowest > 4 * codes.size + 1000:  # a table of flags would be mostly empty
        distinct, dense = np.unique(codes, return_inverse=True)
        return dense.astype(np.int64, copy=False), distinct.size
    shifted = codes.astype(np.int64, copy=False)
    if lowest:
        shifted = shifted - lowest
    used = np.zeros(highest - lowest + 1, dtype=bool)
    used[shifted] = True
    if used.all():
        return shifted, used.size
    return (np.cumsum(used) - 1)[shifted], int(used.sum())


def distinct_values(value: Floats) -> tuple[Floats, Ints]:
    """The distinct values in ascending order and each value's place among them."""
    lowest, highest = float(value.min()), float(value.max())
    if lowest.is_integer() and highest - lowest <= value.size:  # a short range of whole numbers: no sorting
        whole = (value - lowest).astype(np.int64)
        if np.array_equal(whole + lowest, value):  # a tiny fraction is lost in value - lowest
            used = np.bincount(whole) > 0
            return (np.flatnonzero(used) + lowest).astype(np.float64), (np.cumsum(used) - 1)[whole]
    values, code = np.unique(value, return_inverse=True)
    return values.astype(np.float64, copy=False), code.astype(np.int64, copy=False)
