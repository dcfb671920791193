"""Pearson's r, Spearman's rho and Kendall's tau-b, each with p, interval and bootstrap.

p: Student's t with n - 2 degrees for r and rho; for tau-b SciPy's, which is that of the exact null
distribution (Kendall 1938) when there are no ties and n <= 33, else of the normal approximation with
Kendall's (1970) tie correction. Student's t knows no bound: it gives 0 to a correlation of 1, which three
pairs in random order have one time in six. So rho of at most 8 pairs is set beside all their orders, ties
and all, and so are r and tau-b where they are 1 or -1.

Intervals: Fisher's z. Its variance is 1 / (n - 3) for r (Fisher 1921), (1 + rho^2 / 2) / (n - 3) for rho
(Bonett & Wright 2000) and 0.437 / (n - 4) for tau (Fieller, Hartley & Pearson 1957). At |r| = 1 z is
infinite, and there is no interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics._agreement import interval_text
from palaver.statistics.bootstrap import (
    Floats,
    Interval,
    Resampling,
    Rng,
    percentile_interval,
    resample_sums,
)
from palaver.tabular import Tabular, columns_of

Method = Literal["pearson", "spearman", "kendall"]
METHODS: tuple[Method, ...] = get_args(Method)

_MOST_ORDERED = 8  # pairs whose orders are all looked at: 8! = 40,320
_PERFECT = 1 - 1e-12  # beyond it a correlation differs from 1 by rounding only
_ROUNDING = 1e-9  # two standardised values that differ by less are equal
_NO_VARIANCE = 1e-12  # share of a replicate's sum of squares below which its variance is rounding error


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CorrelationResult(Tabular):
    """A correlation; `reason` says why whatever is nan here is nan."""

    method: Method
    value: float
    p: float
    """Two-sided, against no association."""
    low: float
    high: float
    confidence: float
    n: int
    dropped: int
    notes: tuple[str, ...]
    reason: str
    boot: Interval | None
    """Percentile interval over resampled pairs, where replicates were asked for."""

    def _headline(self) -> str:
        return f"{self.method} = {interval_text(self)}; {self.n:,} pairs"

    def _tables(self) -> dict[str, Any]:
        return {"correlation": columns_of(type(self), [self], leave_out=("boot",))}


def correlate(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Method = "pearson",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng | None = None,
) -> CorrelationResult:
    """Correlation of the pairs (x, y); pairs with a missing or infinite value are dropped and counted.

    >>> result = correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], method="kendall")
    >>> round(result.value, 3), round(result.p, 3)
    (0.6, 0.233)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    resampling = Resampling.of(confidence, n_replicates, rng)
    a, b, dropped = _complete_pairs(x, y)

    value, p, reason = math.nan, math.nan, _why_undefined(a, b)
    if not reason:
        value, p = _COMPUTE[method](a, b)
        if math.isnan(p):
            reason = f"p needs at least 3 pairs, found {a.size}"
    low, high = _fisher_interval(value, a.size, method, confidence)
    if math.isnan(low) and not reason:
        reason = f"the interval needs at least {_least_for_interval(method)} pairs, found {a.size}"
        if abs(value) > _PERFECT and a.size >= _least_for_interval(method):
            reason = f"no interval: a correlation of {value:.0f} does not show how sure it is"
    return CorrelationResult(
        method=method,
        value=value,
        p=p,
        low=low,
        high=high,
        confidence=confidence,
        n=a.size,
        dropped=dropped,
        notes=(f"{dropped} pairs with a missing or infinite value",) if dropped else (),
        reason=reason,
        boot=_bootstrap(a, b, method, resampling) if n_replicates else None,
    )


def coefficient(x: ArrayLike, y: ArrayLike, method: Method) -> float:
    """The value of `correlate` alone; nan where it is undefined."""
    a, b, _ = _complete_pairs(x, y)
    if _why_undefined(a, b):
        return math.nan
    if method == "kendall":
        return _kendall(a, b)[0]
    return _r(_mid_ranks(a), _mid_ranks(b)) if method == "spearman" else _r(a, b)


def prepare(values: Floats, method: Method) -> Floats:
    """Values that have the same `coefficient` with others, so made that `prepared_coefficient` is quick."""
    known = np.isfinite(values)
    prepared = np.full(values.shape, np.nan)
    if method == "kendall" or not known.any() or (values[known] == values[known][0]).all():
        prepared[known] = values[known]
    else:
        own = values[known]
        prepared[known] = _standardise(_mid_ranks(own) if method == "spearman" else own)
    return prepared


def prepared_coefficient(x: Floats, y: Floats, method: Method) -> float:
    """The `coefficient` of two whole results of `prepare`."""
    known = np.isfinite(x)
    if method == "kendall" or not np.array_equal(known, np.isfinite(y)):
        return coefficient(x, y, method)
    a, b = x[known], y[known]
    return math.nan if _why_undefined(a, b) else float(np.clip((a * b).sum(), -1.0, 1.0))


def _complete_pairs(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats, int]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"x and y must be 1-D and equally long, found shapes {a.shape} and {b.shape}")
    complete = np.isfinite(a) & np.isfinite(b)
    return a[complete], b[complete], int(a.size - complete.sum())


def _why_undefined(a: Floats, b: Floats) -> str:
    if a.size < 2:
        return f"a correlation needs at least 2 pairs, found {a.size}"
    # compared value by value: the variance of equal floats need not come out as exactly 0
    constant = [name for name, side in (("x", a), ("y", b)) if (side == side[0]).all()]
    return f"all values of {' and of '.join(constant)} are equal" if constant else ""


def _standardise(values: Floats) -> Floats:
    """Mean 0 and length 1."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    if abs(exponent) > 300:  # sums or squares would overflow, or vanish
        values = np.ldexp(values, -exponent)
    centred = values - values.mean()
    # sums and no product of vectors: on a busy machine the threads of BLAS would wait for each other
    return np.asarray(centred / np.sqrt(np.square(centred).sum()))


def _r(a: Floats, b: Floats) -> float:
    return float(np.clip((_standardise(a) * _standardise(b)).sum(), -1.0, 1.0))


def _pearson(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy.special import betainc

    r = _r(a, b)
    if a.size < 3:
        return r, math.nan
    if abs(r) > _PERFECT:
        return math.copysign(1.0, r), _order_p(a, b, r)
    # equals 2 * P(T > |t|) for t = r * sqrt((n - 2) / (1 - r^2))
    return r, float(betainc(a.size / 2 - 1, 0.5, (1 - r) * (1 + r)))


def _spearman(a: Floats, b: Floats) -> tuple[float, float]:
    ranks_a, ranks_b = _mid_ranks(a), _mid_ranks(b)
    rho, p = _pearson(ranks_a, ranks_b)
    return rho, _order_p(ranks_a, ranks_b, rho) if 3 <= a.size <= _MOST_ORDERED else p


def _order_p(a: Floats, b: Floats, r: float) -> float:
    """The share of all orders of `b` in which the correlation is as large; of many pairs only if it is 1."""
    if a.size <= _MOST_ORDERED:
        drawn = _standardise(b)[_orders(a.size)] @ _standardise(a)
        return float((np.abs(drawn) >= abs(r) - 1e-9).mean())
    # equal values may change places, and the order may be turned round where values are so symmetric that
    # this gives the opposite correlation
    _, times = np.unique(b, return_counts=True)
    log_share = sum(math.lgamma(n + 1) for n in times.tolist()) - math.lgamma(b.size + 1)
    turned = np.sort(_standardise(b)) + np.sort(_standardise(b))[::-1]
    sides = 2 if np.abs(turned).max() < _ROUNDING else 1
    return min(1.0, sides * math.exp(log_share))


@cache
def _orders(n: int) -> NDArray[np.int64]:
    """All orders of n places, one a row."""
    return np.array(list(permutations(range(n))))


def _mid_ranks(values: Floats) -> Floats:
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes])


def _kendall(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy.stats import kendalltau

    result = kendalltau(a, b)
    tau, p = float(result.statistic), float(result.pvalue)
    if abs(tau) > _PERFECT and a.size > 2:  # the normal approximation gives ties too small a p
        return math.copysign(1.0, tau), _order_p(_mid_ranks(a), _mid_ranks(b), tau)
    return tau, p


_COMPUTE = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}


def _least_for_interval(method: Method) -> int:
    return 5 if method == "kendall" else 4


def _fisher_interval(value: float, n: int, method: Method, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtri

    if math.isnan(value) or n < _least_for_interval(method):
        return math.nan, math.nan
    if abs(value) > _PERFECT:
        return math.nan, math.nan
    if method == "pearson":
        variance = 1 / (n - 3)
    elif method == "spearman":
        variance = (1 + value**2 / 2) / (n - 3)
    else:
        variance = 0.437 / (n - 4)
    reach = float(ndtri(0.5 + confidence / 2)) * math.sqrt(variance)
    centre = math.atanh(value)
    return math.tanh(centre - reach), math.tanh(centre + reach)


def _bootstrap(a: Floats, b: Floats, method: Method, resampling: Resampling) -> Interval:
    if _why_undefined(a, b):
        samples = np.full(resampling.n_replicates, np.nan)
    elif method == "pearson":
        samples = _pearson_replicates(a, b, resampling)
    else:
        from palaver.statistics._kernels import rank_replicates

        values_x, x = np.unique(a, return_inverse=True)
        values_y, y = np.unique(b, return_inverse=True)
        order = np.argsort(x, kind="stable")
        n_codes = (values_x.size, values_y.size)
        seed = resampling.rng.integers(1, 2**63, dtype=np.uint64)
        kendall = method == "kendall"
        samples = rank_replicates(x[order], y[order], n_codes, kendall, resampling.n_replicates, seed)
    return percentile_interval(samples, resampling.confidence)


def _pearson_replicates(a: Floats, b: Floats, resampling: Resampling) -> Floats:
    """r of each replicate from five sums; standardised first, so that little cancels in the spreads."""
    x, y = _standardise(a), _standardise(b)
    columns = np.stack([x, y, x * x, y * y, x * y], axis=1)
    sums = resample_sums(columns, resampling.n_replicates, resampling.rng)
    sum_x, sum_y, sum_xx, sum_yy, sum_xy = sums.T
    spread_x = a.size * sum_xx - sum_x**2
    spread_y = a.size * sum_yy - sum_y**2
    varies = (spread_x > _NO_VARIANCE * a.size * sum_xx) & (spread_y > _NO_VARIANCE * a.size * sum_yy)
    r = np.full(resampling.n_replicates, np.nan)
    product = a.size * sum_xy - sum_x * sum_y
    r[varies] = product[varies] / np.sqrt(spread_x[varies]) / np.sqrt(spread_y[varies])
    return np.asarray(np.clip(r, -1.0, 1.0))
