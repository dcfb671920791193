"""Squared Euclidean distances from queries to training points, in blocks of queries: O(block * N) memory.

||x - q||^2 = ||x - m||^2 - 2 x.(q - m) + a constant of q, with m near the mean of the queries: one matrix
product a block. Encoders put all dialogues far from the origin; without m the distances would be small
differences of large numbers, and float32 would lose their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.errors import DataError

F32 = NDArray[np.float32]
_LARGEST = 1e30  # of a squared norm: float32 ends at 3e38, and products are summed


def as_points(name: str, points: ArrayLike, width: int | None = None) -> F32:
    """`points` as float32 (rows, dimensions), contiguous; `_check_finite` follows where norms are at hand."""
    array = np.ascontiguousarray(points, dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a table of (dialogues, dimensions), not of shape {array.shape}")
    if not array.shape[0] or not array.shape[1]:
        raise DataError(f"{name} is empty: shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise ValueError(f"{name} has {array.shape[1]} dimensions, the training points have {width}")
    return array


def as_values(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    """`values` as float64, one for each of `size`, all finite."""
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise ValueError(f"{name} must be one number for each of {size}, not of shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        raise DataError(
            f"{name} must be finite: {bad.size} of {size} are nan or infinite, the first at {bad[0]}",
            "drop dialogues without a rating first",
        )
    return array


def check_count(name: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"{name} must be 1 or more, not {count}")


def distance_blocks(train: F32, queries: F32, block: int) -> Iterator[tuple[int, F32]]:
    """(first query, distances (b, N)) for blocks of at most `block` queries. The table is used again: read
    it before the next is asked for."""
    from palaver.comparator.cmade._kernels import finish_distances, squared_norms

    check_count("block", block)
    _check_finite("queries", squared_norms(queries, np.zeros(queries.shape[1], np.float32)))
    centre = _coarse_mean(queries)
    norms = squared_norms(train, centre)
    _check_finite("train", norms)
    centred = queries - centre
    exact = centred.astype(np.float64)
    constants = ((exact * exact).sum(axis=1) + 2 * exact @ centre.astype(np.float64)).astype(np.float32)
    centred *= np.float32(-2)
    table = np.empty((min(block, len(queries)), len(train)), np.float32)
    for begin in range(0, len(queries), block):
        part = centred[begin : begin + block]
        products = np.matmul(part, train.T, out=table[: len(part)])
        finish_distances(products, norms, constants[begin : begin + block])
        yield begin, products


def _coarse_mean(queries: F32) -> F32:
    """The mean to a 64th of the size of the numbers. A finer one would make distances that are equal differ
    in their last bit, for whole numbers and other points on a grid; so coarse, they stay exact."""
    largest = float(np.abs(queries).max())
    unit = 2.0 ** (np.floor(np.log2(largest)) - 6) if largest > 0 else 1.0
    mean = queries.mean(axis=0, dtype=np.float64)
    return np.asarray(np.round(mean / unit) * unit, dtype=np.float32)


def _check_finite(name: str, norms: F32) -> None:
    """A row with nan or infinity has such a norm: looking there spares a pass over all numbers."""
    bad = np.flatnonzero(~(norms < _LARGEST))
    if bad.size:
        raise DataError(
            f"{name} must be finite and of moderate size: {bad.size} of {norms.size} rows are not, "
            f"the first at {bad[0]}",
            "look at the encoder: embeddings with nan usually mean that training diverged",
        )
