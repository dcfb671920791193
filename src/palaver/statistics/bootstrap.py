"""Bootstrap over items: every statistic here is a function of sums over items, so a replicate is a sum.

A replicate draws n items with replacement and adds up their rows of sufficient statistics. Doing that
as how often each item is drawn, times the table, takes one compiled loop and one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_CACHED = 2**17
"""Weights held at once: one megabyte."""


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


def check_confidence(confidence: float) -> None:
    """Raise unless 0 < confidence < 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")


def resample_sums(stats: ArrayLike, n_replicates: int, rng: np.random.Generator) -> Floats:
    """Column sums of `n_replicates` bootstrap samples of the rows of `stats`, as (replicates, columns).

    >>> resample_sums([[1.0, 2.0]], 3, np.random.default_rng(0)).tolist()
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    from palaver.statistics._kernels import draw_weights

    table = np.ascontiguousarray(stats, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"stats must be a table of (items, columns), not of shape {table.shape}")
    if table.shape[0] == 0:
        raise ValueError("cannot resample zero items")
    if table.shape[0] >= 2**32:
        raise ValueError("more than 2**32 items")
    sums = np.empty((n_replicates, table.shape[1]))
    # A few replicates at a time: their weights stay in the cache, and the product is left to BLAS.
    rows = max(8, _CACHED // table.shape[0])
    weights = np.empty((min(rows, n_replicates), table.shape[0]))
    state = rng.integers(1, 2**63, dtype=np.uint64)
    for begin in range(0, n_replicates, rows):
        part = sums[begin : begin + rows]
        state = np.uint64(draw_weights(weights[: len(part)], state))
        np.matmul(weights[: len(part)], table, out=part)
    return sums


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
