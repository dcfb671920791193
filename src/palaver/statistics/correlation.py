"""Pearson's r, Spearman's rho and Kendall's tau-b, each with p, interval and bootstrap.

p: Student's t with n - 2 degrees for r and rho; for tau-b the exact null distribution (Kendall 1938)
when there are no ties and n <= 33, else the normal approximation with Kendall's (1970) tie correction.

Intervals: Fisher's z. Its variance is 1 / (n - 3) for r (Fisher 1921), (1 + rho^2 / 2) / (n - 3) for rho
(Bonett & Wright 2000) and 0.437 / (n - 4) for tau (Fieller, Hartley & Pearson 1957). At |r| = 1 the
interval is that single point. tau-b takes O(n log n): a sort and one pass with a Fenwick tree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics._agreement_inputs import Rng, check_options
from palaver.statistics.bootstrap import Floats, Interval, percentile_interval, resample_sums

Method = Literal["pearson", "spearman", "kendall"]
METHODS: tuple[Method, ...] = get_args(Method)

_EXACT_BELOW = 34  # pairs; SciPy's choice, so that both give the same p
_NO_VARIANCE = 1e-12  # share of a replicate's sum of squares below which its variance is rounding error


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationResult:
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


def correlate(
    x: ArrayLike,
    y: ArrayLike,
    *,
    method: Method = "pearson",
    confidence: float = 0.95,
    n_replicates: int = 0,
    rng: Rng = None,
) -> CorrelationResult:
    """Correlation of the pairs (x, y); pairs with a missing or infinite value are dropped and counted.

    >>> result = correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], method="kendall")
    >>> round(result.value, 3), round(result.p, 3)
    (0.6, 0.233)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    check_options(confidence, n_replicates, rng)
    a, b, dropped = _complete_pairs(x, y)

    value, p, reason = math.nan, math.nan, _why_undefined(a, b)
    if not reason:
        value, p = _COMPUTE[method](a, b)
        if math.isnan(p):
            reason = f"p needs at least 3 pairs, found {a.size}"
    low, high = _fisher_interval(value, a.size, method, confidence)
    if math.isnan(low) and not reason:
        reason = f"the interval needs at least {_least_for_interval(method)} pairs, found {a.size}"
    boot = None
    if n_replicates:
        boot = _bootstrap(a, b, method, confidence, n_replicates, np.random.default_rng(rng))
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
        boot=boot,
    )


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
    return np.asarray(centred / np.sqrt(centred @ centred))


def _pearson(a: Floats, b: Floats) -> tuple[float, float]:
    from scipy.special import betainc

    r = float(np.clip(_standardise(a) @ _standardise(b), -1.0, 1.0))
    if a.size < 3:
        return r, math.nan
    # equals 2 * P(T > |t|) for t = r * sqrt((n - 2) / (1 - r^2)), without dividing by zero at |r| = 1
    return r, float(betainc(a.size / 2 - 1, 0.5, (1 - r) * (1 + r)))


def _spearman(a: Floats, b: Floats) -> tuple[float, float]:
    return _pearson(_mid_ranks(a), _mid_ranks(b))


def _mid_ranks(values: Floats) -> Floats:
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes])


def _kendall(a: Floats, b: Floats) -> tuple[float, float]:
    from palaver.statistics._correlation_kernels import concordance

    x, y, ties_x, ties_y = _sorted_codes(a, b)
    n, weight = x.size, np.ones(x.size, dtype=np.int64)
    score = int(concordance(x, y, weight, ties_y.size))
    pairs = n * (n - 1) // 2
    untied_x = pairs - float((ties_x * (ties_x - 1) / 2).sum())
    untied_y = pairs - float((ties_y * (ties_y - 1) / 2).sum())
    tau = min(1.0, max(-1.0, score / math.sqrt(untied_x) / math.sqrt(untied_y)))
    fewest = (pairs - abs(score)) // 2  # discordant or concordant pairs, whichever are fewer
    if untied_x == untied_y == pairs and (n < _EXACT_BELOW or fewest <= 1):
        return tau, _kendall_exact_p(fewest, n)
    return tau, _kendall_normal_p(score, n, ties_x, ties_y)


def _sorted_codes(a: Floats, b: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, Floats]:
    """Dense codes of both sides in ascending order of the first, and the size of each group of ties."""
    _, x, ties_x = np.unique(a, return_inverse=True, return_counts=True)
    _, y, ties_y = np.unique(b, return_inverse=True, return_counts=True)
    order = np.argsort(x, kind="stable")
    return x[order], y[order], ties_x.astype(np.float64), ties_y.astype(np.float64)


def _kendall_exact_p(fewest: int, n: int) -> float:
    """Twice the chance of at most `fewest` inversions in a random order of n, capped at 1."""
    if n >= _EXACT_BELOW:  # only reached with at most one inversion: (1 or n) of n! orders
        return 2 * math.exp(-math.lgamma(n + 1 - fewest))
    chance = np.ones(1)
    for k in range(2, n + 1):  # the k-th value adds 0..k-1 inversions, each equally likely
        chance = np.convolve(chance, np.full(k, 1 / k))
    return min(1.0, 2 * float(chance[: fewest + 1].sum()))


def _kendall_normal_p(score: int, n: int, ties_x: Floats, ties_y: Floats) -> float:
    def pairs(t: Floats) -> float:
        return float((t * (t - 1)).sum())

    def triples(t: Floats) -> float:
        return float((t * (t - 1) * (t - 2)).sum())

    def corrected(t: Floats) -> float:
        return float((t * (t - 1) * (2 * t + 5)).sum())

    m = float(n) * (n - 1)
    variance = (m * (2 * n + 5) - corrected(ties_x) - corrected(ties_y)) / 18
    variance += pairs(ties_x) * pairs(ties_y) / (2 * m)
    variance += triples(ties_x) * triples(ties_y) / (9 * m * (n - 2))
    return math.erfc(abs(score) / math.sqrt(2 * variance))


_COMPUTE = {"pearson": _pearson, "spearman": _spearman, "kendall": _kendall}


def _least_for_interval(method: Method) -> int:
    return 5 if method == "kendall" else 4


def _fisher_interval(value: float, n: int, method: Method, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtri

    if math.isnan(value) or n < _least_for_interval(method):
        return math.nan, math.nan
    if abs(value) == 1:
        return value, value
    variance = {
        "pearson": lambda: 1 / (n - 3),
        "spearman": lambda: (1 + value**2 / 2) / (n - 3),
        "kendall": lambda: 0.437 / (n - 4),
    }[method]()
    reach = float(ndtri(0.5 + confidence / 2)) * math.sqrt(variance)
    centre = math.atanh(value)
    return math.tanh(centre - reach), math.tanh(centre + reach)


def _bootstrap(
    a: Floats, b: Floats, method: Method, confidence: float, n_replicates: int, rng: np.random.Generator
) -> Interval:
    if _why_undefined(a, b):
        return percentile_interval(np.full(n_replicates, np.nan), confidence)
    if method == "pearson":
        return percentile_interval(_pearson_replicates(a, b, n_replicates, rng), confidence)

    from palaver.statistics._correlation_kernels import kendall_replicates, spearman_replicates

    x, y, ties_x, ties_y = _sorted_codes(a, b)
    replicates = spearman_replicates if method == "spearman" else kendall_replicates
    seed = rng.integers(1, 2**63, dtype=np.uint64)
    return percentile_interval(replicates(x, y, ties_x.size, ties_y.size, n_replicates, seed), confidence)


def _pearson_replicates(a: Floats, b: Floats, n_replicates: int, rng: np.random.Generator) -> Floats:
    """r of each replicate from five sums; standardised first, so that little cancels in the spreads."""
    x, y = _standardise(a), _standardise(b)
    columns = np.stack([x, y, x * x, y * y, x * y], axis=1)
    sum_x, sum_y, sum_xx, sum_yy, sum_xy = resample_sums(columns, n_replicates, rng).T
    spread_x = a.size * sum_xx - sum_x**2
    spread_y = a.size * sum_yy - sum_y**2
    varies = (spread_x > _NO_VARIANCE * a.size * sum_xx) & (spread_y > _NO_VARIANCE * a.size * sum_yy)
    r = np.full(n_replicates, np.nan)
    product = a.size * sum_xy - sum_x * sum_y
    r[varies] = product[varies] / np.sqrt(spread_x[varies]) / np.sqrt(spread_y[varies])
    return np.asarray(np.clip(r, -1.0, 1.0))
