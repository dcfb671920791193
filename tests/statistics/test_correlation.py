"""Correlation: published examples, SciPy and brute force as oracles, invariances, degenerate input."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from palaver.statistics.correlation import METHODS, coefficient, correlate, prepare, prepared_coefficient

# Hollander & Wolfe 1973, p. 187: lightness of canned tuna and a panel's quality score.
TUNA_LIGHTNESS = [44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1]
TUNA_QUALITY = [2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8]

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
SETTINGS = settings(max_examples=50, deadline=None)

likert_pairs = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=5, max_size=60)
real_pairs = st.lists(
    st.tuples(st.floats(-1e6, 1e6, width=32), st.floats(-1e6, 1e6, width=32)), min_size=5, max_size=60
)


def columns(pairs):
    return np.array(pairs, dtype=float).T


def varies(x, y):
    return np.unique(x).size > 1 and np.unique(y).size > 1


def test_hollander_wolfe_kendall():
    result = correlate(TUNA_LIGHTNESS, TUNA_QUALITY, method="kendall")
    assert result.value == pytest.approx(4 / 9)  # T = 26 concordant of 36 pairs
    assert result.p == pytest.approx(0.1194, abs=5e-5)


def test_hollander_wolfe_pearson_as_printed_by_r():
    result = correlate(TUNA_LIGHTNESS, TUNA_QUALITY, method="pearson")
    assert result.value == pytest.approx(0.5711816, abs=5e-8)
    assert result.p == pytest.approx(0.1082, abs=5e-5)
    assert (result.low, result.high) == pytest.approx((-0.1497426, 0.8955795), abs=5e-8)


def test_anscombe_1973_first_and_fourth_set():
    x1, y1 = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5], [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26]
    y1 += [10.84, 4.82, 5.68]
    x4, y4 = [8] * 7 + [19] + [8] * 3, [6.58, 5.76, 7.71, 8.84, 8.47, 7.04, 5.25, 12.5, 5.56, 7.91, 6.89]
    assert correlate(x1, y1).value == pytest.approx(0.816, abs=5e-4)
    assert correlate(x4, y4).value == pytest.approx(0.816, abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
@SETTINGS
@given(pairs=st.one_of(likert_pairs, real_pairs))
def test_equals_scipy(method, pairs):
    x, y = columns(pairs)
    result = correlate(x, y, method=method)
    if not varies(x, y):
        assert math.isnan(result.value)
        assert "equal" in result.reason
        return
    oracle = SCIPY[method](x, y)
    assert result.value == pytest.approx(oracle.statistic, abs=1e-9)
    few_ranks = method == "spearman" and 3 <= len(x) <= 8  # p is exact, which SciPy's is not
    if abs(result.value) < 1 - 1e-9 and not few_ranks:
        assert result.p == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)


@SETTINGS
@given(pairs=likert_pairs)
def test_kendall_equals_counting_all_pairs(pairs):
    x, y = columns(pairs)
    if not varies(x, y):
        return
    score = untied_x = untied_y = 0
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        score += np.sign(a - c) * np.sign(b - d)
        untied_x += a != c
        untied_y += b != d
    assert correlate(x, y, method="kendall").value == pytest.approx(score / math.sqrt(untied_x * untied_y))


def test_pearson_interval_equals_scipy():
    x, y = np.random.default_rng(3).normal(size=(2, 40))
    result = correlate(x, y, confidence=0.9)
    oracle = stats.pearsonr(x, y).confidence_interval(0.9)
    assert (result.low, result.high) == pytest.approx((oracle.low, oracle.high))


def test_rank_intervals_follow_their_formulas():
    x, y = np.random.default_rng(4).normal(size=(2, 40))
    z = 1.959963984540054
    for method, variance in (("spearman", lambda r: (1 + r * r / 2) / 37), ("kendall", lambda r: 0.437 / 36)):
        result = correlate(x, y, method=method)
        width = math.atanh(result.high) - math.atanh(result.low)
        assert width == pytest.approx(2 * z * math.sqrt(variance(result.value)))
        assert math.atanh(result.high) + math.atanh(result.low) == pytest.approx(2 * math.atanh(result.value))


@pytest.mark.parametrize("method", METHODS)
def test_interval_covers_the_truth_as_often_as_it_says(method):
    # bivariate normal with r = 0.5: rho_s = 6/pi asin(r/2), tau = 2/pi asin(r)
    truth = {"pearson": 0.5, "spearman": 6 / np.pi * np.arcsin(0.25), "kendall": 2 / np.pi * np.arcsin(0.5)}
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(600):
        x = rng.normal(size=40)
        y = 0.5 * x + math.sqrt(0.75) * rng.normal(size=40)
        result = correlate(x, y, method=method)
        hits += result.low <= truth[method] <= result.high
    assert 0.92 <= hits / 600 <= 0.98


@pytest.mark.parametrize("method", METHODS)
@SETTINGS
@given(pairs=likert_pairs, seed=st.integers(0, 1000))
def test_invariances(method, pairs, seed):
    x, y = columns(pairs)
    if not varies(x, y):
        return
    base = correlate(x, y, method=method)
    order = np.random.default_rng(seed).permutation(x.size)
    same = pytest.approx(base.value, abs=1e-12)
    assert correlate(x[order], y[order], method=method).value == same
    assert correlate(y, x, method=method).value == same
    assert correlate(3 * x - 7, y / 2, method=method).value == same
    assert correlate(-x, y, method=method).value == pytest.approx(-base.value, abs=1e-12)
    assert correlate(np.tile(x, 2), np.tile(y, 2), method=method).value == same


@pytest.mark.parametrize("method", ["spearman", "kendall"])
@SETTINGS
@given(pairs=likert_pairs)
def test_rank_methods_ignore_monotone_change(method, pairs):
    x, y = columns(pairs)
    result, changed = correlate(x, y, method=method), correlate(np.exp(x), y**3, method=method)
    assert changed.value == pytest.approx(result.value, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_incomplete_pairs_are_dropped_and_counted(method):
    x, y = np.random.default_rng(6).normal(size=(2, 30))
    with_holes_x, with_holes_y = np.r_[x, np.nan, 1.0, np.inf], np.r_[y, 2.0, np.nan, 3.0]
    clean, holes = correlate(x, y, method=method), correlate(with_holes_x, with_holes_y, method=method)
    assert (holes.value, holes.p, holes.low, holes.high) == (clean.value, clean.p, clean.low, clean.high)
    assert (holes.n, holes.dropped) == (30, 3)
    assert holes.notes == ("3 pairs with a missing or infinite value",)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([], [], "at least 2 pairs, found 0"),
        ([1.0], [2.0], "at least 2 pairs, found 1"),
        ([np.nan] * 5, [1.0] * 5, "at least 2 pairs, found 0"),
        ([0.1] * 7, range(7), "all values of x are equal"),
        (range(7), [0.1] * 7, "all values of y are equal"),
        ([3] * 7, [0.1] * 7, "all values of x and of y are equal"),
    ],
)
def test_undefined_is_nan_with_a_reason(method, x, y, reason):
    result = correlate(x, y, method=method, n_replicates=10, rng=1)
    assert all(math.isnan(v) for v in (result.value, result.p, result.low, result.high))
    assert reason in result.reason
    assert math.isnan(result.boot.low)
    assert result.boot.n_undefined == 10


@pytest.mark.parametrize("method", METHODS)
def test_too_few_pairs_for_p_or_interval(method):
    two = correlate([1, 2], [5, 3], method=method)
    assert two.value == pytest.approx(-1)
    assert math.isnan(two.low)
    assert "found 2" in two.reason
    four = correlate([1, 2, 3, 4], [1, 3, 2, 4], method=method)
    assert 0 < four.p <= 1
    assert math.isnan(four.low) == (method == "kendall")


@pytest.mark.parametrize("method", METHODS)
def test_perfect_correlation(method):
    result = correlate(range(20), range(20), method=method)
    assert result.value == pytest.approx(1)
    assert 0 < result.p < 1e-15
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert "does not show how sure" in result.reason


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [3, 4, 5])
def test_few_pairs_in_one_order_are_no_proof(method, n):
    """Of all orders of n values two have a correlation of 1 or -1."""
    assert correlate(range(n), range(n), method=method).p == pytest.approx(2 / math.factorial(n))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1, 2, 3, 4, 5, 6], [1, 3, 2, 4, 6, 5]),
        ([1, 1, 2, 2, 3, 3, 3], [2, 1, 2, 4, 4, 5, 4]),
        ([0, 0, 0, 1], [0, 0, 0, 1]),
    ],
)
def test_spearman_of_few_pairs_is_that_of_all_their_orders(x, y):
    def rho(order):
        return SCIPY["spearman"](x, order).statistic

    orders = set(itertools.permutations(y))  # equally likely, as each stands for as many arrangements
    expected = np.mean([abs(rho(order)) >= abs(rho(y)) - 1e-9 for order in orders])
    assert correlate(x, y, method="spearman").p == pytest.approx(expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("x", "n_sides"),
    [
        (range(10), 2),
        ([0] * 4 + [1, 2, 3, 4, 5, 6], 1),  # no order of these gives -1
        ([0] * 8 + [1], 1),
        ([0] * 5 + [1] * 5, 2),
    ],
)
def test_p_of_many_pairs_in_one_order_counts_the_orders(method, x, n_sides):
    _, times = np.unique(x, return_counts=True)
    arrangements = math.prod(math.factorial(n) for n in times)
    p = correlate(x, x, method=method).p
    assert p == pytest.approx(n_sides * arrangements / math.factorial(len(x)))


@pytest.mark.parametrize("method", METHODS)
def test_prepared_values_have_the_same_coefficient(method):
    rng = np.random.default_rng(4)
    x, y, holes = rng.integers(1, 6, 30).astype(float), rng.normal(size=30), rng.normal(size=30)
    holes[3] = y[5] = x[5] = np.nan
    constant, empty = np.where(np.isnan(x), np.nan, 2.0), np.full(30, np.nan)
    for one, other in itertools.product([x, y, holes, constant, empty], repeat=2):
        expected = coefficient(one, other, method)
        a, b = prepare(one, method), prepare(other, method)
        assert prepared_coefficient(a, b, method) == pytest.approx(expected, nan_ok=True)
        assert coefficient(a[7:], b[7:], method) == pytest.approx(
            coefficient(one[7:], other[7:], method), nan_ok=True
        )


def test_spearman_of_few_pairs_rejects_as_seldom_as_it_says():
    rng = np.random.default_rng(0)
    p = np.array([correlate(*rng.normal(size=(2, 5)), method="spearman").p for _ in range(400)])
    assert (p <= 0.05).mean() <= 0.03  # 2 of 120 orders are that extreme; Student's t finds 10 of them


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200, 1e307])
def test_extreme_magnitudes(scale):
    x, y = np.array([1.0, 2, 3, 4, 6]), [2, 1, 4, 3, 5]
    assert correlate(x * scale, y).value == pytest.approx(correlate(x, y).value, rel=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_bootstrap_equals_a_resampling_loop(method):
    rng = np.random.default_rng(8)
    x = rng.integers(1, 7, 40).astype(float)
    y = x + rng.integers(0, 5, 40)
    boot = correlate(x, y, method=method, n_replicates=4000, rng=1).boot
    rows = rng.integers(0, 40, (1500, 40))
    looped = [SCIPY[method](x[r], y[r]).statistic for r in rows]
    assert (boot.low, boot.high) == pytest.approx(tuple(np.quantile(looped, [0.025, 0.975])), abs=0.03)
    assert boot == correlate(x, y, method=method, n_replicates=4000, rng=np.random.default_rng(1)).boot
    assert boot != correlate(x, y, method=method, n_replicates=4000, rng=2).boot


@pytest.mark.parametrize("method", METHODS)
def test_bootstrap_replicates_without_spread_are_counted(method):
    boot = correlate([1.1, 2.3, 2.9], [0.7, 0.1, 0.4], method=method, n_replicates=9000, rng=3).boot
    assert boot.n_undefined / 9000 == pytest.approx(1 / 9, abs=0.015)  # all three draws the same pair
    assert (boot.low, boot.high) == pytest.approx((-1, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: correlate([1, 2], [1, 2, 3]), "equally long"),
        (lambda: correlate([[1, 2]], [[1, 2]]), "1-D"),
        (lambda: correlate([1, 2], [1, 2], method="tau"), "pearson, spearman, kendall"),
        (lambda: correlate([1, 2], [1, 2], confidence=1.0), "between 0 and 1"),
        (lambda: correlate([1, 2], [1, 2], n_replicates=-1), "0 or more"),
        (lambda: correlate([1, 2], [1, 2], n_replicates=10), "needs rng"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_kendall_of_a_hundred_thousand_pairs_is_not_quadratic():
    x, y = np.random.default_rng(1).normal(size=(2, 100_000))
    correlate(x[:10], y[:10], method="kendall")
    start = time.perf_counter()
    correlate(x, y, method="kendall")
    assert time.perf_counter() - start < 2  # all 5e9 pairs take far longer


def test_import_is_light():
    modules = "correlation, significance, normalise, power, contingency"
    code = (
        f"import sys; from palaver.statistics import {modules}; "
        "print([m for m in sys.modules if m.split('.')[0] in ('scipy', 'numba')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
