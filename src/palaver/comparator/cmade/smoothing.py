"""Ratings smoothed over nearest neighbours in the encoder's space (Liang et al. 2020, section 5.2).

The smoothed rating of a dialogue is the mean rating of its K nearest dialogues, itself among them (at
distance 0 it is its own nearest neighbour, as for a KNN regressor asked about a point it was fitted on);
`include_self=False` leaves it out. With K > N all dialogues are neighbours and all smoothed ratings equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.cmade._distances import F32, as_points, as_values, check_count, distance_blocks
from palaver.errors import DataError

if TYPE_CHECKING:
    from palaver.comparator.training_data import Pairs

Floats = NDArray[np.float64]
_SAME = 1e-9  # smoothed ratings closer than this times their spread are equal: sums in another order differ


def nearest(
    train: ArrayLike, queries: ArrayLike, k: int, *, block: int = 256
) -> tuple[NDArray[np.int32], F32]:
    """The k nearest training points of each query: positions (M, k) and Euclidean distances (M, k).

    From near to far, equal distances by position. With fewer than k training points, all of them.
    """
    from palaver.comparator.cmade._kernels import nearest_of

    check_count("k", k)
    x = as_points("train", train)
    q = as_points("queries", queries, x.shape[1])
    k = min(k, len(x))
    packed = np.empty((len(q), k), np.uint64)
    for begin, distances in distance_blocks(x, q, block):
        nearest_of(distances.view(np.uint32), k, packed[begin : begin + block])
    squared = (packed >> np.uint64(32)).astype(np.uint32).view(np.float32)
    return (packed & np.uint64(0xFFFFFFFF)).astype(np.int32), np.sqrt(squared)


def smooth(
    embeddings: ArrayLike,
    ratings: ArrayLike,
    *,
    k: int = 50,
    rounds: int = 1,
    include_self: bool = True,
    block: int = 256,
) -> Floats:
    """Each rating replaced by the mean over its dialogue's k nearest; again on the result for each round."""
    check_count("k", k)
    check_count("rounds", rounds)
    x = as_points("embeddings", embeddings)
    y = as_values("ratings", ratings, len(x))
    if not include_self and len(x) < 2:
        raise DataError("smoothing without the dialogue itself needs two dialogues, found 1")
    neighbours, _ = nearest(x, x, k if include_self else k + 1, block=block)
    if not include_self:
        neighbours = _without_self(neighbours)
    for _ in range(rounds):
        # Added up in the order of positions: the same neighbours then give the same mean to the last bit.
        y = y[np.sort(neighbours, axis=1)].mean(axis=1)
    return y


def _without_self(neighbours: NDArray[np.int32]) -> NDArray[np.int32]:
    """One fewer a row: the row itself, or the farthest where copies of it came first and pushed it out."""
    own = neighbours == np.arange(len(neighbours), dtype=np.int32)[:, None]
    own[~own.any(axis=1), -1] = True
    others: NDArray[np.int32] = neighbours[~own].reshape(len(neighbours), -1)
    return others


def rating_pairs(ratings: ArrayLike, n_pairs: int, rng: np.random.Generator | int) -> Pairs:
    """Random pairs of different dialogues, the higher rating better; equal ones are dropped and counted.

    Drawn with replacement until `n_pairs` are there, so a pair may come twice.
    """
    from palaver.comparator.training_data import Pairs

    check_count("n_pairs", n_pairs)
    y = np.asarray(ratings, dtype=np.float64)
    y = as_values("ratings", y, y.size)
    spread = np.ptp(y) if y.size else 0.0
    if not spread:
        raise DataError(
            f"no two of {y.size} ratings differ, so that there is nothing to compare",
            "with smoothing, use a k well below the number of dialogues",
        )
    rng = np.random.default_rng(rng)
    parts, kept, equal = [], 0, 0
    while kept < n_pairs:
        size = max(1024, 2 * (n_pairs - kept))
        first = rng.integers(0, y.size, size)
        second = (first + rng.integers(1, y.size, size)) % y.size
        gap = y[first] - y[second]
        differ = np.flatnonzero(np.abs(gap) > _SAME * spread)[: n_pairs - kept]
        looked_at = size if kept + differ.size < n_pairs else int(differ[-1]) + 1
        equal += looked_at - differ.size
        kept += differ.size
        parts.append((first[differ], second[differ], np.sign(gap[differ])))
    first, second, label = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Pairs(first, second, label.astype(np.int8), {"equal ratings": equal} if equal else {})
