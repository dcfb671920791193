"""KNN-Shapley of training dialogues under comparisons (Liang et al. 2020, section 5.3, eq. 3 and theorem 1).

A KNN regressor rates a development dialogue q from a set S of training dialogues by
v(S) = 1/K sum_{k <= min(K, |S|)} y_{alpha_k}. The Shapley values of that game are, with all N training
dialogues alpha_1 .. alpha_N by distance (Jia et al. 2019),

    s_{alpha_N} = y_{alpha_N} / max(N, K)
    s_{alpha_i} = s_{alpha_{i+1}} + (y_{alpha_i} - y_{alpha_{i+1}}) / K * min(K, i) / i

for N < K as well, where every point is worth y / K. A compared pair (p, q) is the game v_p - v_q with the
sign of its label, and Shapley values add over games: so each development dialogue is needed once, with the
number of its wins less that of its losses. One matrix product a block of queries, one radix sort a query.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.cmade._distances import as_points, as_values, check_count, distance_blocks
from palaver.comparator.training_data import Pairs
from palaver.errors import DataError

Floats = NDArray[np.float64]


def pair_values(
    train: ArrayLike,
    ratings: ArrayLike,
    dev: ArrayLike,
    pairs: Pairs,
    *,
    k: int = 50,
    block: int = 64,
) -> Floats:
    """The value (N,) of every training dialogue for the compared pairs of development dialogues.

    It is the sum over pairs of s^(better) - s^(worse). Where it is negative the dialogue's rating misleads.
    """
    wins = signed_wins(pairs, len(np.asarray(dev)))
    return knn_shapley(train, ratings, dev, wins, k=k, block=block)


def signed_wins(pairs: Pairs, n_dev: int) -> Floats:
    """For each development dialogue, how often it was better less how often it was worse."""
    first, second, label = (np.asarray(column) for column in (pairs.first, pairs.second, pairs.label))
    if not label.size:
        raise DataError("there are no compared pairs", "give development pairs")
    if not first.shape == second.shape == label.shape or label.ndim != 1:
        raise ValueError(
            f"pairs must be 1-D and of one length, not {first.shape}, {second.shape}, {label.shape}"
        )
    if min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= n_dev:
        raise ValueError(f"pairs name dialogues outside 0 .. {n_dev - 1}")
    if not np.isin(label, (-1, 1)).all():
        raise ValueError("labels of pairs must be 1 (the first is better) or -1 (the second)")
    won = np.bincount(first, weights=label, minlength=n_dev)
    lost = np.bincount(second, weights=label, minlength=n_dev)
    return np.asarray(won - lost, dtype=np.float64)


def knn_shapley(
    train: ArrayLike,
    values: ArrayLike,
    queries: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    k: int = 50,
    block: int = 64,
) -> Floats:
    """sum_q weights[q] s^(q) (N,): Shapley values of the KNN regressor, query q counted `weights[q]` times.

    Queries of weight nought cost nothing. Training dialogues at one distance stand in the order given.
    """
    check_count("k", k)
    x = as_points("train", train)
    q = as_points("queries", queries, x.shape[1])
    y = as_values("values", values, len(x))
    w = np.ones(len(q)) if weights is None else as_values("weights", weights, len(q))
    counted = np.flatnonzero(w)
    if not counted.size:
        return np.zeros(len(x))

    from palaver.comparator.cmade._kernels import add_shapley

    table = np.stack([y, np.zeros_like(y)], axis=1)  # (N, 2): value, sum
    shares = 1.0 / np.maximum(np.arange(len(x) + 1), k)  # min(K, i) / (K i)
    for begin, distances in distance_blocks(x, q[counted], block):
        part = w[counted[begin : begin + block]]
        add_shapley(distances.view(np.uint32), part, table, shares, k)
    return np.ascontiguousarray(table[:, 1])
