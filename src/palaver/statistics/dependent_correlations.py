"""Is one judge closer to people than another? Two correlations that share a variable and their items.

Williams' test (1959; Steiger 1980) is for Pearson's r of independent items. The permutation test lets the two
judges change places in whole items, as often as not (PERM-BOTH of Deutsch, Dror & Roth 2021), so items may
hold several outputs; scores are brought to one scale first, ranks for Spearman's rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import Floats, Rng

_LEAST_ROOM = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationTest:
    """`difference` is the first judge's correlation with people minus the second's; p is two-sided."""

    test: Literal["williams", "permutation"]
    difference: float
    statistic: float
    p: float
    n: int
    reason: str = ""


def williams_test(with_a: float, with_b: float, between: float, n: int) -> CorrelationTest:
    """From people's correlation with judge a, with judge b, and that of the judges, over `n` items.

    >>> round(williams_test(0.5, 0.4, 0.6, 100).p, 3)
    0.206
    """
    from scipy.special import stdtr

    def result(statistic: float, p: float, reason: str = "") -> CorrelationTest:
        return CorrelationTest(
            test="williams", difference=with_a - with_b, statistic=statistic, p=p, n=n, reason=reason
        )

    if n < 4:
        return result(math.nan, math.nan, f"Williams' test needs at least 4 items, found {n}")
    if not all(map(math.isfinite, (with_a, with_b, between))):
        return result(math.nan, math.nan, "a correlation is undefined")
    determinant = 1 - with_a**2 - with_b**2 - between**2 + 2 * with_a * with_b * between
    mean = (with_a + with_b) / 2
    room = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - between) ** 3
    if 1 - between < _LEAST_ROOM or room <= 0:
        return result(0.0, 1.0, "the two judges say the same")
    statistic = (with_a - with_b) * math.sqrt((n - 1) * (1 + between) / room)
    return result(statistic, min(1.0, 2 * float(stdtr(n - 3, -abs(statistic)))))


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
