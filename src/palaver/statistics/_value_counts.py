"""How often each value was given to each item, and Krippendorff's alpha of bootstrap samples of it.

Only pairs of item and value that occur are stored. A block of replicates is a matrix of weights (how
often each item was drawn) times the counts, dense where there are few values and sparse where not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaver.statistics._agreement import RatedItems
from palaver.statistics.bootstrap import Floats, Ints, Resampling, draw_blocks
from palaver.statistics.codes import distinct_values

_DENSE = 8  # a dense matrix of counts may have this many cells per rating
_BLOCK = 2**20  # numbers in one block of replicate weights
_FEW_VALUES = 512  # up to here the ratio differences of all pairs of values are a matrix
_NO_DIFFERENCE = 1e-12  # share of the largest possible below which a replicate's De is rounding error


Disagreements = Callable[[Floats, Floats, Floats], tuple[Floats, Floats, Floats]]
"""From weights, totals per value and their sum: observed, expected, and what expected was subtracted from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCounts:
    """Entries (item, code of value, count) ordered by item; `values` are distinct and ascending."""

    values: Floats
    totals: Floats
    """Ratings per value."""
    size: Floats
    """Ratings per item."""
    item: Ints
    code: Ints
    count: Floats
    times: Floats | None
    """How many items each item stands for; None for one."""

    def starts(self) -> Ints:
        """Where each item's entries begin, and the end."""
        return np.searchsorted(self.item, np.arange(self.size.size + 1)).astype(np.int64, copy=False)


def count_values(items: RatedItems, size: Floats) -> ValueCounts:
    """Tabulate ratings; `size` is the number of ratings of each item."""
    values, code = distinct_values(items.value)
    k = values.size
    key = items.item * k + code
    if size.size * k <= _DENSE * code.size:
        cells = np.bincount(key, minlength=size.size * k)
        key = np.flatnonzero(cells)
        count = cells[key]
    else:
        key, count = np.unique(key, return_counts=True)
    return ValueCounts(
        values=values,
        totals=np.bincount(code, items.weights, minlength=k).astype(np.float64),
        size=size,
        item=key // k,
        code=key % k,
        count=count.astype(np.float64),
        times=items.times,
    )


def resample_alpha(level: str, counts: ValueCounts, observed: Floats, resampling: Resampling) -> Floats:
    """Alpha of bootstrap samples of the items; `observed` is each item's own disagreement."""
    matrix = _matrix(counts, counts.count)
    disagreements = _DISAGREEMENTS[level](counts, matrix, observed)
    blocks = []
    n_items = counts.size.size
    n_replicates = resampling.n_replicates
    block_size = max(1, min(n_replicates, _BLOCK // max(n_items, counts.values.size)))
    for weights in draw_blocks(n_items, counts.times, n_replicates, block_size, resampling.rng):
        totals = np.asarray(weights @ matrix)  # (replicates, values)
        n = totals.sum(axis=1)
        do, de, largest = disagreements(weights, totals, n)
        blocks.append(alpha_of(do, de, n, largest))
    return np.concatenate(blocks)


def alpha_of(observed: Floats, expected: Floats, n: Floats, largest: Floats) -> Floats:
    """1 - Do / De from sums over pairs; undefined where a replicate's ratings are all equal.

    Sums that should cancel do not quite; `largest` is what De was subtracted from.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        alpha = 1 - (n - 1) * observed / expected
    return np.where(expected > _NO_DIFFERENCE * largest, alpha, np.nan)


def _matrix(counts: ValueCounts, entries: Floats) -> Any:
    """The entries as an (items, values) matrix, a NumPy array or a SciPy sparse one."""
    shape = (counts.size.size, counts.values.size)
    if shape[0] * shape[1] <= _DENSE * counts.size.sum():
        dense = np.zeros(shape)
        dense[counts.item, counts.code] = entries
        return dense
    from scipy.sparse import csr_array

    return csr_array((entries, counts.code, counts.starts()), shape=shape)


def _nominal(counts: ValueCounts, matrix: Any, observed: Floats) -> Disagreements:
    def disagreements(weights: Floats, totals: Floats, n: Floats) -> tuple[Floats, Floats, Floats]:
        return weights @ observed, n**2 - np.square(totals).sum(axis=1), n**2

    return disagreements


def _ordinal(counts: ValueCounts, matrix: Any, observed: Floats) -> Disagreements:
    """Mid-ranks R of the values depend on the sample, so the items' disagreements are taken anew.

    That of item u is 2 / (m - 1) times (m sum of R^2 - (sum of R)^2) over its m ratings.
    """
    each = 2 / (counts.size - 1)
    weighted = _matrix(counts, counts.count * (each * counts.size)[counts.item])
    rooted = _matrix(counts, counts.count * np.sqrt(each)[counts.item]).T

    def disagreements(weights: Floats, totals: Floats, n: Floats) -> tuple[Floats, Floats, Floats]:
        rank = np.cumsum(totals, axis=1) - totals / 2 - n[:, None] / 2  # centred
        item_sums = np.asarray(rank @ rooted)
        do = np.einsum("bv,bv->b", weights @ weighted, rank**2)
        do -= np.einsum("bi,bi->b", weights, np.square(item_sums, out=item_sums))
        square = n * np.einsum("bv,bv->b", totals, rank**2)
        return do, 2 * (square - np.einsum("bv,bv->b", totals, rank) ** 2), square

    return disagreements


def _ratio(counts: ValueCounts, matrix: Any, observed: Floats) -> Disagreements:
    few = counts.values.size <= _FEW_VALUES
    expected = ratio_by_table(counts.values) if few else ratio_by_quadrature(counts.values)

    def disagreements(weights: Floats, totals: Floats, n: Floats) -> tuple[Floats, Floats, Floats]:
        return weights @ observed, expected(totals), n**2

    return disagreements


def ratio_by_table(values: Floats) -> Callable[[Floats], Floats]:
    """De of rows of counts: the sum over pairs of values of counts times ((a - b) / (a + b))^2."""
    total = values[:, None] + values
    share = np.divide(values[:, None] - values, total, out=np.zeros_like(total), where=total > 0)
    square = np.square(share)

    def expected(counts: Floats) -> Floats:
        return np.asarray(np.einsum("bv,bv->b", counts @ square, counts))

    return expected


def ratio_by_quadrature(values: Floats) -> Callable[[Floats], Floats]:
    """The same for many values, without a table of their pairs, to about 1e-13 of n^2.

    ((a - b) / (a + b))^2 = 1 - 4ab / (a + b)^2 for a, b > 0, and 1 / z^2 is the integral of t exp(-tz)
    over t > 0, which the trapezoid rule in log t meets to 1e-14 at a step of 1/4. The double sum over
    pairs becomes one sum over the values for each node t. Zeros differ from all values but themselves.
    """
    positive = values[values > 0]
    step = 0.25
    t = np.exp(np.arange(-16 - np.log(2 * positive[-1]), 4 - np.log(2 * positive[0]), step))
    features = values[:, None] * np.exp(-values[:, None] * t)
    zero = float(values[0] == 0)

    def expected(counts: Floats) -> Floats:
        alike = 4 * step * (np.square(counts @ features) @ t**2)
        return np.asarray(counts.sum(axis=1) ** 2 - zero * counts[:, 0] ** 2 - alike)

    return expected


_DISAGREEMENTS: dict[str, Callable[[ValueCounts, Any, Floats], Disagreements]] = {
    "nominal": _nominal,
    "ordinal": _ordinal,
    "ratio": _ratio,
}
