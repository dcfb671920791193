"""Figure 2 of Liang et al. (2020): KNN regressors as training dialogues of low Shapley value are removed.

Every development dialogue's neighbours are sorted once; for each number of removed points one walk along
them gives the ratings for all K by cumulative sums. Against it stand random removals. The paper removes by
values from development pairs and measures on test pairs: with the same pairs for both, the rise is partly
what the values were computed from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.comparator.cmade._distances import as_points, as_values, check_count, distance_blocks
from palaver.comparator.cmade.shapley import signed_wins
from palaver.comparator.training_data import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalCurves:
    """Accuracy on the pairs; equal ratings of both dialogues are half right."""

    removed: NDArray[np.int64]
    """(S,) points removed."""
    ks: NDArray[np.int64]
    """(K,) neighbours asked."""
    by_value: NDArray[np.float64]
    """(S, K), the lowest Shapley values removed first."""
    at_random: NDArray[np.float64]
    """(R, S, K), one row for each random order."""
    n_train: int
    n_pairs: int


def halves(pairs: Pairs, groups: ArrayLike, seed: int = 0) -> tuple[Pairs, Pairs]:
    """The pairs of one half of the groups, and those of the other; `groups` has one for each pair."""
    codes = np.asarray(groups)
    shuffled = np.random.default_rng(seed).permutation(np.unique(codes))
    used = np.isin(codes, shuffled[: len(shuffled) // 2])
    one, other = (Pairs(pairs.first[w], pairs.second[w], pairs.label[w]) for w in (used, ~used))
    return one, other


def figure2(
    train: ArrayLike,
    ratings: ArrayLike,
    values: ArrayLike,
    dev: ArrayLike,
    pairs: Pairs,
    *,
    ks: Sequence[int] = tuple(range(1, 101)),
    removed: Sequence[int] | None = None,
    n_random: int = 10,
    rng: np.random.Generator | int = 0,
    block: int = 256,
) -> RemovalCurves:
    """Accuracies for every K of `ks` and number of `removed` points (or 41 steps up to 95% of them)."""
    from palaver.comparator.cmade._kernels import predictions_after_removal

    x = as_points("train", train)
    q = as_points("dev", dev, x.shape[1])
    y = as_values("ratings", ratings, len(x))
    v = as_values("values", values, len(x))
    signed_wins(pairs, len(q))  # refuses pairs that name what is not there
    neighbours = np.asarray(ks, dtype=np.int64)
    if not neighbours.size:
        raise ValueError("ks is empty: give at least one number of neighbours")
    check_count("the least k", int(neighbours.min()))
    steps = np.asarray(np.linspace(0, 0.95 * len(x), 41) if removed is None else removed).astype(np.int64)
    steps = np.unique(steps)
    if not steps.size or steps[0] < 0 or steps[-1] >= len(x):
        raise ValueError(f"removed must be numbers from 0 to {len(x) - 1}: at least one point must stay")
    rng = np.random.default_rng(rng)
    orders = [np.argsort(v, kind="stable"), *(rng.permutation(len(x)) for _ in range(n_random))]
    ranks = np.empty((len(orders), len(x)), np.int32)  # (R + 1, N): when each point goes
    for rank, order in zip(ranks, orders, strict=True):
        rank[order] = np.arange(len(x), dtype=np.int32)

    used, rows = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = rows[: len(pairs.first)], rows[len(pairs.first) :]
    most = int(neighbours.max())
    whole = np.empty((min(block, len(used)), len(orders), len(steps), most))
    rated = np.empty((len(used), len(orders), len(steps), neighbours.size))
    for begin, distances in distance_blocks(x, q[used], block):
        part = whole[: len(distances)]
        predictions_after_removal(distances.view(np.uint32), y, ranks, steps, most, part)
        rated[begin : begin + block] = part[..., neighbours - 1]
    near = 1e-9 * max(float(np.ptp(y)), 1e-300)  # the same ratings summed in another order are equal
    right = np.zeros(rated.shape[1:])
    for p, q_, label in zip(first, second, np.asarray(pairs.label, dtype=np.int64), strict=True):
        gap = label * (rated[p] - rated[q_])  # (R + 1, S, K)
        right += np.where(np.abs(gap) <= near, 0.5, gap > 0)
    right /= len(first)
    return RemovalCurves(
        removed=steps,
        ks=neighbours,
        by_value=right[0],
        at_random=right[1:],
        n_train=len(x),
        n_pairs=len(first),
    )
