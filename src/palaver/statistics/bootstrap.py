"""Bootstrap over items: every statistic here is a function of sums over items, so a replicate is a sum.

A replicate draws n items with replacement and adds up their rows of sufficient statistics. Doing that
with one compiled gather keeps memory at O(replicates x columns) and needs no n x replicates matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


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


def resample_sums(stats: ArrayLike, n_replicates: int, rng: np.random.Generator) -> Floats:
    """Column sums of `n_replicates` bootstrap samples of the rows of `stats`, as (replicates, columns).

    >>> resample_sums([[1.0, 2.0]], 3, np.random.default_rng(0)).tolist()
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    from palaver.statistics._kernels import gather_sums

    table = np.ascontiguousarray(stats, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"stats must be a table of (items, columns), not of shape {table.shape}")
    if table.shape[0] == 0:
        raise ValueError("cannot resample zero items")
    if table.shape[0] >= 2**32:
        raise ValueError("more than 2**32 items")
    seed = rng.integers(1, 2**63, dtype=np.uint64)
    return np.asarray(gather_sums(table, n_replicates, seed))


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
