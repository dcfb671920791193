"""Ratings smoothed over nearest neighbours in the encoder's space (Liang et al. 2020, section 5.2).

The smoothed rating of a dialogue is the mean rating of its K nearest dialogues, itself among them (at
distance 0 it is its own nearest neighbour, as for a KNN regressor asked about a point it was fitted on). With
K > N all dialogues are neighbours and all smoothed ratings equal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.cmade._distances import as_points, as_values, check_count, distance_blocks

Floats = NDArray[np.float64]


def nearest(train: ArrayLike, queries: ArrayLike, k: int, *, block: int = 256) -> NDArray[np.int32]:
    """(M, k) positions of the k nearest training points of each query, from near to far.

    Equal distances stand by position. With fewer than k training points, all of them.
    """
    check_count("k", k)
    x = as_points("train", train)
    q = as_points("queries", queries, x.shape[1])
    k = min(k, len(x))
    positions = np.empty((len(q), k), np.int32)
    for begin, distances in distance_blocks(x, q, block):
        for row, own in enumerate(distances, start=begin):
            near = np.flatnonzero(own <= np.partition(own, k - 1)[k - 1])  # more than k where some are equal
            positions[row] = near[np.argsort(own[near], kind="stable")][:k]
    return positions


def smooth(embeddings: ArrayLike, ratings: ArrayLike, *, k: int = 50, block: int = 256) -> Floats:
    """Each rating replaced by the mean over its dialogue's k nearest."""
    x = as_points("embeddings", embeddings)
    y = as_values("ratings", ratings, len(x))
    neighbours = nearest(x, x, k, block=block)
    # Added up in the order of positions: the same neighbours then give the same mean to the last bit.
    return np.asarray(y[np.sort(neighbours, axis=1)].mean(axis=1))
