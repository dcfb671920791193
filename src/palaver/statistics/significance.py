"""Tests of difference between means (t, bootstrap, permutation), and Holm's correction for many tests.

- Levene (1960) with the median as centre (Brown & Forsythe 1974), then Student's or Welch's t: the
  procedure of Xing & Fernández 2018 (footnote 9), who do not say which centre; "mean" is the other choice.
- Bootstrap of a paired mean difference under the shifted null (Efron & Tibshirani 1993, section 16.4), and
  permutation tests, exact where the permutations can be listed. Monte Carlo p values count the observed
  arrangement itself, (1 + k) / (1 + B), so that none is 0 (Phipson & Smyth 2010).
- Holm 1979.

All p values are two-sided, and every difference is the first sample minus the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palaver.statistics.bootstrap import (
    Floats,
    Rng,
    check_fraction,
    check_replicates,
    least_p,
    percentile_interval,
    resample_sums,
)

_BLOCK_CELLS = 2**21  # permutations are made in blocks of about this many numbers (16 MB)
_TIE = 1e-12  # relative: a permutation this close to the observed difference counts as equally large


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificanceTest:
    """What every test says: p, what was left out, and the `reason` why p is nan where it is."""

    p: float = math.nan
    dropped: int = 0
    notes: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeveneTest(SignificanceTest):
    """Are the variances of several groups equal?"""

    statistic: float = math.nan
    df_between: int
    df_within: int
    center: str
    n: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanTest(SignificanceTest):
    """Student's or Welch's t for two independent samples, whichever Levene's test called for."""

    test: Literal["student", "welch"]
    statistic: float = math.nan
    df: float = math.nan
    mean_difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float
    cohens_d: float = math.nan
    """The difference in units of the pooled standard deviation, whichever test was used."""
    levene_statistic: float
    levene_p: float
    alpha: float
    """Welch is used when Levene's p is below this."""
    n_a: int
    n_b: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapTest(SignificanceTest):
    """Paired bootstrap of a mean difference."""

    mean_difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    confidence: float
    n: int
    n_replicates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest(SignificanceTest):
    """Permutation test of a mean difference; `exact` when every arrangement was looked at."""

    mean_difference: float
    paired: bool
    exact: bool
    n_a: int
    n_b: int
    n_permutations: int
    """Arrangements looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HolmResult:
    """Adjusted p values in the order given; an undefined p stays nan, is not rejected and does not count."""

    p: Floats
    adjusted: Floats
    reject: NDArray[np.bool_]
    alpha: float
    n_tests: int
    dropped: int
    notes: tuple[str, ...]


def levene(*groups: ArrayLike, center: Literal["median", "mean"] = "median") -> LeveneTest:
    """Levene's test: a one-way analysis of variance of the distances from each group's centre."""
    if center not in ("median", "mean"):
        raise ValueError(f"center must be 'median' or 'mean', not {center!r}")
    if len(groups) < 2:
        raise ValueError(f"Levene's test compares at least 2 groups, found {len(groups)}")
    finite, dropped, notes = _finite(*groups)
    n = tuple(group.size for group in finite)
    df_between, df_within = len(n) - 1, sum(n) - len(n)
    result = LeveneTest(
        df_between=df_between, df_within=df_within, center=center, n=n, dropped=dropped, notes=notes
    )
    if min(n) < 2:
        return replace(result, reason=f"each group needs at least 2 values, found {min(n)}")
    middle = np.median if center == "median" else np.mean
    distances = [np.abs(group - middle(group)) for group in finite]
    grand = np.concatenate(distances).mean()
    means = [distance.mean() for distance in distances]
    between = sum(d.size * (m - grand) ** 2 for d, m in zip(distances, means, strict=True))
    within = sum(((d - m) ** 2).sum() for d, m in zip(distances, means, strict=True))
    if within <= _TIE * sum((d**2).sum() for d in distances):
        return replace(result, reason=f"within each group all values lie equally far from the {center}")
    from scipy.special import fdtrc

    statistic = float(between / df_between / (within / df_within))
    return replace(result, statistic=statistic, p=float(fdtrc(df_between, df_within, statistic)))


def compare_means(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alpha: float = 0.05,
    confidence: float = 0.95,
) -> MeanTest:
    """Levene first (at `alpha`); Student's t if the variances look equal, Welch's otherwise.

    Where Levene's test is undefined Welch is used, which assumes less.
    """
    check_fraction("alpha", alpha)
    check_fraction("confidence", confidence)
    (x, y), dropped, notes = _finite(a, b)
    spread = levene(x, y)
    student = spread.p >= alpha
    result = MeanTest(
        test="student" if student else "welch",
        mean_difference=float(x.mean() - y.mean()) if x.size and y.size else math.nan,
        confidence=confidence,
        levene_statistic=spread.statistic,
        levene_p=spread.p,
        alpha=alpha,
        n_a=x.size,
        n_b=y.size,
        dropped=dropped,
        notes=notes,
    )
    if min(x.size, y.size) < 2:
        return replace(result, reason=f"each sample needs at least 2 values, found {x.size} and {y.size}")
    var_x, var_y = _variance(x), _variance(y)
    df = float(x.size + y.size - 2)
    pooled = ((x.size - 1) * var_x + (y.size - 1) * var_y) / df
    if pooled == 0:
        return replace(result, reason="neither sample varies")
    from scipy.special import stdtr, stdtrit

    if student:
        var_x = var_y = pooled
    part_x, part_y = var_x / x.size, var_y / y.size
    if not student:  # Welch-Satterthwaite
        df = (part_x + part_y) ** 2 / (part_x**2 / (x.size - 1) + part_y**2 / (y.size - 1))
    if spread.reason:
        notes = (*notes, f"Welch's test, as Levene's is undefined: {spread.reason}")
    error = math.sqrt(part_x + part_y)
    statistic = result.mean_difference / error
    reach = float(stdtrit(df, 0.5 + confidence / 2)) * error
    return replace(
        result,
        statistic=statistic,
        df=df,
        p=2 * float(stdtr(df, -abs(statistic))),
        low=result.mean_difference - reach,
        high=result.mean_difference + reach,
        cohens_d=result.mean_difference / math.sqrt(pooled),
        notes=notes,
    )


def paired_bootstrap_test(
    a: ArrayLike, b: ArrayLike, n_replicates: int, rng: Rng, *, confidence: float = 0.95
) -> BootstrapTest:
    """Is the mean of a - b over paired items different from 0? Items are resampled.

    p is never below that of a sign test in which all items that differ point one way (`least_p`).
    """
    check_fraction("confidence", confidence)
    check_replicates(n_replicates)
    d, dropped, notes = _differences(a, b)
    result = BootstrapTest(
        mean_difference=float(d.mean()) if d.size else math.nan,
        confidence=confidence,
        n=d.size,
        n_replicates=n_replicates,
        dropped=dropped,
        notes=notes,
    )
    if d.size < 2:
        return replace(result, reason=f"the bootstrap needs at least 2 pairs, found {d.size}")
    if (d == d[0]).all():
        notes = (*notes, "all differences are equal: resampling them shows no uncertainty")
    # one set of replicates serves both: their shifts are the null, and around the mean the interval
    mean = result.mean_difference
    shifts = resample_sums((d - mean)[:, None], n_replicates, np.random.default_rng(rng))[:, 0] / d.size
    as_large = np.abs(shifts) >= abs(mean) - _TIE * np.abs(d).max()
    n_differ = int((np.abs(d) > _TIE * np.abs(d).max()).sum())  # what is rounding only is no difference
    p = max((1 + int(as_large.sum())) / (1 + n_replicates), least_p(n_differ))
    interval = percentile_interval(mean + shifts, confidence)
    return replace(result, p=p, low=interval.low, high=interval.high, notes=notes)


def permutation_test(
    a: ArrayLike, b: ArrayLike, *, paired: bool, n_permutations: int = 10_000, rng: Rng
) -> PermutationTest:
    """Is the mean difference larger than chance? Signs are flipped (paired) or groups reassigned.

    All arrangements are listed when there are at most `n_permutations`; otherwise that many are drawn.
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, not {n_permutations}")
    if paired:
        values, dropped, notes = _differences(a, b)
        n_a = n_b = values.size
        difference = float(values.mean()) if n_a else math.nan
        size = 2**n_a if n_a < 64 else math.inf
        observed = values.sum()
    else:
        (x, y), dropped, notes = _finite(a, b)
        n_a, n_b = x.size, y.size
        values = np.concatenate([x, y])
        difference = float(x.mean() - y.mean()) if n_a and n_b else math.nan
        size = math.comb(n_a + n_b, n_a) if min(n_a, n_b) < 64 else math.inf  # at least 2**64 then
        # around the grand mean the first group's sum alone orders the differences of means
        values = values - values.mean() if values.size else values
        observed = values[:n_a].sum()
    exact = bool(size <= n_permutations)
    result = PermutationTest(
        mean_difference=difference,
        paired=paired,
        exact=exact,
        n_a=n_a,
        n_b=n_b,
        n_permutations=int(size) if exact else n_permutations,
        dropped=dropped,
        notes=notes,
    )
    if not n_a or not n_b:
        return replace(result, reason=f"the test needs values on both sides, found {n_a} and {n_b}")
    generator = None if exact else np.random.default_rng(rng)
    sums = (_flipped_sums if paired else _group_sums)(values, n_a, n_permutations, generator)
    least = abs(observed) - _TIE * np.abs(values).sum()
    as_large = sum(int((np.abs(block) >= least).sum()) for block in sums)
    return replace(result, p=as_large / size if exact else (1 + as_large) / (1 + n_permutations))


def holm(p_values: ArrayLike, alpha: float = 0.05) -> HolmResult:
    """Holm's step-down correction: at most `alpha` chance of any false rejection among all the tests.

    >>> holm([0.01, 0.04, 0.03]).adjusted.tolist()
    [0.03, 0.06, 0.06]
    """
    check_fraction("alpha", alpha)
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or (p < 0).any() or (p > 1).any():
        raise ValueError(f"expected a 1-D array of p values between 0 and 1, found {p.tolist()}")
    defined = np.flatnonzero(~np.isnan(p))
    order = defined[np.argsort(p[defined], kind="stable")]
    adjusted = np.full(p.shape, np.nan)
    stepped = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    dropped = p.size - order.size
    return HolmResult(
        p=p,
        adjusted=adjusted,
        reject=adjusted <= alpha,
        alpha=alpha,
        n_tests=order.size,
        dropped=dropped,
        notes=(f"{dropped} undefined p values",) if dropped else (),
    )


def _finite(*samples: ArrayLike) -> tuple[list[Floats], int, tuple[str, ...]]:
    """Each sample without its missing and infinite values, how many those were, and a note of it."""
    arrays = [np.asarray(sample, dtype=np.float64) for sample in samples]
    if any(array.ndim != 1 for array in arrays):
        raise ValueError(f"samples must be 1-D, found shapes {[array.shape for array in arrays]}")
    kept = [array[np.isfinite(array)] for array in arrays]
    dropped = sum(array.size for array in arrays) - sum(array.size for array in kept)
    return kept, dropped, (f"{dropped} missing or infinite values",) if dropped else ()


def _differences(a: ArrayLike, b: ArrayLike) -> tuple[Floats, int, tuple[str, ...]]:
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"paired samples must be 1-D and equally long, found {x.shape} and {y.shape}")
    complete = np.isfinite(x) & np.isfinite(y)
    dropped = int(x.size - complete.sum())
    notes = (f"{dropped} pairs with a missing or infinite value",) if dropped else ()
    return x[complete] - y[complete], dropped, notes


def _variance(values: Floats) -> float:
    # equal floats: their mean may be off by a rounding, and the variance then is not exactly 0
    return 0.0 if (values == values[0]).all() else float(values.var(ddof=1))


def _blocks(total: int, width: int) -> Iterator[tuple[int, int]]:
    rows = max(1, _BLOCK_CELLS // max(1, width))
    for start in range(0, total, rows):
        yield start, min(total, start + rows)


def _flipped_sums(
    d: Floats, n: int, n_permutations: int, rng: np.random.Generator | None
) -> Iterator[Floats]:
    """Sums of the differences with flipped signs: all 2**n of them, or random ones with an `rng`."""
    for start, stop in _blocks(2**n if rng is None else n_permutations, n):
        if rng is None:
            flips = ((np.arange(start, stop)[:, None] >> np.arange(n)) & 1).astype(np.float64)
        else:
            random = rng.integers(0, 256, size=(stop - start, -(-n // 8)), dtype=np.uint8)
            flips = np.unpackbits(random, axis=1, count=n).astype(np.float64)
        yield d.sum() - 2 * (flips @ d)


def _group_sums(
    values: Floats, n_a: int, n_permutations: int, rng: np.random.Generator | None
) -> Iterator[Floats]:
    """Sums of a first group of `n_a` of the values: every such group, or random ones with an `rng`."""
    n = values.size
    if rng is not None:
        for start, stop in _blocks(n_permutations, n):
            shuffled = rng.permuted(np.broadcast_to(values, (stop - start, n)), axis=1)
            yield shuffled[:, :n_a].sum(axis=1)
        return
    groups = combinations(range(n), n_a)
    for start, stop in _blocks(math.comb(n, n_a), n_a):
        yield values[np.array(list(islice(groups, stop - start)))].sum(axis=1)
