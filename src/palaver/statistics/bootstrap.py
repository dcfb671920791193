"""Bootstrap over items: every statistic here is a function of sums over items, so a replicate is a sum.

A replicate draws n items with replacement and adds up their rows of sufficient statistics. Doing that
as how often each item is drawn, times the table, takes one compiled loop and one matrix product.

Items with the same row are interchangeable: how often a row is drawn is multinomial, with the number of
items that have it as its weight. Ratings on a few steps have few distinct rows, however many items there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator | int


class Rows(Protocol):
    """A table that need not lie in memory: slices of its rows are arrays."""

    shape: tuple[int, int]

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice) -> Floats: ...


MANY = 2**14
"""From this many items on it pays to look for equal ones."""
_CACHED = 2**17
"""Weights held at once: one megabyte."""
_PART = 2**12
"""Many different items are drawn in parts of this size, whose weights stay in the cache."""
_PART_ROWS = 128
_THREADS = 2
_DRAWS_PER_BINOMIAL = 40
"""How many single draws take as long as one binomial number."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, how sure it is and how it was found."""

    low: float
    high: float
    confidence: float
    method: str
    n_replicates: int = 0
    n_undefined: int = 0
    """Replicates on which the statistic was undefined; they are left out of the percentiles."""


@dataclass(frozen=True, slots=True, eq=False)
class Resampling:
    """How intervals are found: confidence, bootstrap replicates (0: none) and their random numbers."""

    confidence: float
    n_replicates: int
    rng: np.random.Generator

    @classmethod
    def of(cls, confidence: float, n_replicates: int, rng: Rng | None) -> Resampling:
        """Refuse a confidence outside (0, 1), a negative number of replicates, a bootstrap without a seed."""
        check_fraction("confidence", confidence)
        if n_replicates < 0:
            raise ValueError(f"n_replicates must be 0 or more, not {n_replicates}")
        if n_replicates and rng is None:
            raise ValueError("a bootstrap needs rng: a numpy Generator or an integer seed")
        return cls(confidence, n_replicates, np.random.default_rng(rng))


def check_fraction(name: str, value: float) -> None:
    """Raise unless 0 < value < 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {value}")


def check_replicates(n_replicates: int) -> None:
    """Raise unless there is at least one replicate."""
    if n_replicates < 1:
        raise ValueError(f"n_replicates must be at least 1, found {n_replicates}")


def pays_to_fold(n_distinct: int, n_items: int) -> bool:
    """Whether a multinomial over the distinct items is faster than drawing every item."""
    return n_items >= MANY and n_distinct * _DRAWS_PER_BINOMIAL <= n_items


def resample_sums(
    stats: ArrayLike, n_replicates: int, rng: np.random.Generator, times: Floats | None = None
) -> Floats:
    """Column sums of `n_replicates` bootstrap samples of the rows of `stats`, as (replicates, columns).

    `times` says how many items have each row; without it each row is one item. `resample_rows` does the same
    for a table that does not fit into memory.

    >>> resample_sums([[1.0, 2.0]], 3, np.random.default_rng(0)).tolist()
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    table = np.ascontiguousarray(stats, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"stats must be a table of (items, columns), not of shape {table.shape}")
    if table.shape[0] == 0:
        raise ValueError("cannot resample zero items")
    if table.shape[0] >= 2**32:
        raise ValueError("more than 2**32 items")
    if times is None and len(table) >= MANY:
        return resample_rows(table, n_replicates, rng)
    return _resample(table, times, n_replicates, rng)


def resample_rows(table: Rows, n_replicates: int, rng: np.random.Generator) -> Floats:
    """`resample_sums` of a table that is read part by part."""
    if len(table) < MANY:
        return resample_sums(table[:], n_replicates, rng)
    folded = _fold_rows(table)
    if folded is None:
        return _resample_in_parts(table, n_replicates, rng)
    return _resample(*folded, n_replicates, rng)


def _resample(table: Floats, times: Floats | None, n_replicates: int, rng: np.random.Generator) -> Floats:
    sums = np.empty((n_replicates, table.shape[1]))
    # A few replicates at a time: their weights stay in the cache, and the product is left to BLAS.
    rows = max(8, _CACHED // table.shape[0])
    begin = 0
    for weights in draw_blocks(len(table), times, n_replicates, rows, rng):
        np.matmul(weights, table, out=sums[begin : begin + len(weights)])
        begin += len(weights)
    return sums


def draw_blocks(
    n_rows: int, times: Floats | None, n_replicates: int, block_size: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """How often each row is drawn, in blocks of (replicates, rows) that are overwritten."""
    if times is not None:
        n_items = int(times.sum())
        for begin in range(0, n_replicates, block_size):
            size = min(block_size, n_replicates - begin)
            yield rng.multinomial(n_items, times / n_items, size=size).astype(np.float64)
        return
    from palaver.statistics._kernels import draw_weights

    state = rng.integers(1, 2**63, dtype=np.uint64)
    block = np.empty((min(block_size, n_replicates), n_rows))
    n_draws = np.full(len(block), n_rows)
    for begin in range(0, n_replicates, block_size):
        weights = block[: n_replicates - begin]
        state = np.uint64(draw_weights(weights, n_draws, state))
        yield weights


def _fold_rows(table: Rows) -> tuple[Floats, Floats] | None:
    """The distinct rows and how often each occurs; None where too few are equal."""
    starts = range(0, len(table), MANY)
    key = np.concatenate([_row_keys(table[start : start + MANY]) for start in starts])
    if not pays_to_fold(_n_distinct(key), len(key)):
        return None
    _, first, place, times = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    distinct = np.empty((len(first), table.shape[1]))
    for start in starts:
        here = (first >= start) & (first < start + MANY)
        distinct[here] = table[start : start + MANY][first[here] - start]
    for start in starts:
        if not np.array_equal(distinct[place[start : start + MANY]], table[start : start + MANY]):
            return None  # two rows with one hash
    return distinct, times.astype(np.float64)


def _row_keys(rows: Floats) -> NDArray[np.uint64]:
    """A hash of each row; -0.0 and 0.0 are the same number."""
    with np.errstate(over="ignore"):
        key = np.zeros(len(rows), dtype=np.uint64)
        for column in rows.T:
            key = key * np.uint64(0x9E3779B97F4A7C15) + (column + 0.0).view(np.uint64)
            key ^= key >> np.uint64(29)
    return key


def _n_distinct(key: NDArray[np.uint64]) -> int:
    ordered = np.sort(key)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _resample_in_parts(table: Rows, n_replicates: int, rng: np.random.Generator) -> Floats:
    """The same for many different rows: first how many draws each part gets, then on which rows they fall."""
    from palaver.statistics._kernels import draw_weights

    n = len(table)
    starts = np.arange(0, n, _PART)
    share = np.diff(starts, append=n) / n
    n_draws = rng.multinomial(n, share, size=n_replicates).T.copy()  # (parts, replicates)
    seeds = rng.integers(1, 2**63, size=starts.size, dtype=np.uint64)

    def part_sums(start: int, draws: Ints, state: np.uint64) -> Floats:
        part = table[start : start + _PART]
        block = np.empty((min(_PART_ROWS, n_replicates), len(part)))
        of_part = np.empty((n_replicates, table.shape[1]))
        for begin in range(0, n_replicates, _PART_ROWS):
            of_block = draws[begin : begin + _PART_ROWS]
            weights = block[: of_block.size]
            state = np.uint64(draw_weights(weights, of_block, state))
            np.matmul(weights, part, out=of_part[begin : begin + _PART_ROWS])
        return of_part

    sums = np.zeros((n_replicates, table.shape[1]))
    with ThreadPoolExecutor(_THREADS) as pool:
        for of_part in pool.map(part_sums, starts.tolist(), n_draws, seeds):
            sums += of_part
    return sums


def least_p(n_items: int) -> float:
    """The smallest two-sided p that so many items can give: that of n coins which all fall on one side.

    A bootstrap of few items knows no such bound: two items on which one side is ahead make all draws say so.

    >>> least_p(2), least_p(5)
    (0.5, 0.0625)
    """
    return float(0.5 ** max(0, n_items - 1))


def percentile_interval(samples: ArrayLike, confidence: float = 0.95) -> Interval:
    """The central interval of bootstrap `samples`; undefined (nan) samples are counted and left out."""
    values = np.asarray(samples, dtype=np.float64)
    defined = values[np.isfinite(values)]
    n_undefined = int(values.size - defined.size)
    if defined.size == 0:
        return Interval(np.nan, np.nan, confidence, "percentile", values.size, n_undefined)
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), confidence, "percentile", values.size, n_undefined)
