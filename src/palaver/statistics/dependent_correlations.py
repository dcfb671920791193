"""Is one judge closer to people than another? Two correlations that share a variable and their items.

The permutation test lets the two judges change places in whole items, as often as not (PERM-BOTH of Deutsch,
Dror & Roth 2021), so items may hold several outputs; scores are brought to one scale first, ranks for
Spearman's rho. (Williams' test, which is usual, takes outputs for independent. Several outputs of an item are
not, and it then finds differences between equal judges far too often.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats, Rng

_LEAST_ROOM = 1e-12


def swap_tests(
    people: ArrayLike, judges: ArrayLike, item: ArrayLike, *, n_permutations: int = 1000, rng: Rng
) -> tuple[Floats, Floats]:
    """Every two judges: (judges, judges) differences of their correlation with people, and two-sided p.

    `people` holds a score of each output, `judges` (judges, outputs) theirs, `item` the number of each
    output's item. Give ranks for Spearman's rho. Nothing may be missing.
    """
    h = _standard(np.asarray(people, dtype=np.float64)[None])[0]
    scores = _standard(np.asarray(judges, dtype=np.float64))
    items = np.asarray(item, dtype=np.int64)
    n_items = int(items.max()) + 1
    n_judges = len(scores)
    products = _item_sums(scores * h, items, n_items)  # (judges, items)
    sums = _item_sums(scores, items, n_items)
    squares = _item_sums(scores**2, items, n_items)
    draws = np.random.default_rng(rng).integers(0, 2, size=(n_permutations, n_items))
    swapped = draws.astype(np.float64)
    difference = np.zeros((n_judges, n_judges))
    p = np.ones((n_judges, n_judges))
    n = h.size
    for a in range(n_judges):
        if a + 1 == n_judges:
            break
        others = slice(a + 1, n_judges)
        moved = [swapped @ (part[others] - part[a]).T for part in (products, sums, squares)]  # (P, others)
        of_a = [part[a].sum() + move for part, move in zip((products, sums, squares), moved, strict=True)]
        of_b = [
            part[others].sum(axis=1) - move
            for part, move in zip((products, sums, squares), moved, strict=True)
        ]
        drawn = _correlation(of_a, n) - _correlation(of_b, n)
        observed = products[a].sum() - products[others].sum(axis=1)
        as_large = (np.abs(drawn) >= np.abs(observed) - 1e-12).sum(axis=0)
        difference[a, others], difference[others, a] = observed, -observed
        p[a, others] = p[others, a] = (1 + as_large) / (1 + n_permutations)
    return difference, p


def _correlation(sums: Sequence[Floats], n: int) -> Floats:
    """Of scores with standard people's scores, from sums of products, of scores and of their squares."""
    product, total, square = sums
    spread = square - total**2 / n
    correlation: Floats = product / np.sqrt(np.maximum(spread, _LEAST_ROOM))
    return correlation


def _standard(scores: Floats) -> Floats:
    """Each row with mean 0 and length 1."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    standard: Floats = centred / np.sqrt((centred**2).sum(axis=1, keepdims=True))
    return standard


def _item_sums(scores: Floats, items: NDArray[np.int64], n_items: int) -> Floats:
    return np.array([np.bincount(items, weights=row, minlength=n_items) for row in scores])
