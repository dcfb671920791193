"""Significance: textbook examples, SciPy, statsmodels and enumeration as oracles, degenerate input."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from palaver.statistics import significance
from palaver.statistics.contingency import chi_square, mcnemar
from palaver.statistics.significance import (
    compare_means,
    holm,
    levene,
    paired_bootstrap_test,
    permutation_test,
)

SETTINGS = settings(max_examples=50, deadline=None)
# Student 1908: extra hours of sleep under two drugs.
SLEEP_1 = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SLEEP_2 = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
# Fisher 1935, section 21: Darwin's 15 pairs of crossed and self-fertilised maize, in eighths of an inch.
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
# NIST/SEMATECH e-Handbook, section 1.3.5.10: GEAR.DAT, diameters in ten batches (thousandths above 0.98).
GEAR = [
    [26, 16, 18, 20, 12, 13, 22, 19, 14, 20],
    [18, 26, 20, 22, 17, 18, 16, 20, 26, 8],
    [11, 7, 17, 19, 15, 14, 20, 19, 16, 16],
    [25, 22, 14, 20, 15, 14, 18, 16, 22, 16],
    [18, 18, 2, 10, 22, 4, 16, 13, 0, 16],
    [29, 33, 29, 17, 8, 22, 15, 18, 1, 16],
    [10, 24, 16, 21, 18, 20, 38, 30, 16, 22],
    [18, 20, 26, 20, 22, 16, 18, 16, 22, 26],
    [22, 18, 16, 15, 16, 24, 24, 18, 19, 11],
    [11, 15, 4, 14, 17, 17, 11, 18, 24, 17],
]

samples = st.lists(st.integers(-20, 20), min_size=2, max_size=25)


# Levene


def test_levene_nist_gear():
    result = levene(*GEAR)
    assert result.statistic == pytest.approx(1.705910, abs=1e-5)  # printed from single precision
    assert (result.df_between, result.df_within) == (9, 90)


@SETTINGS
@given(groups=st.lists(samples, min_size=2, max_size=4), center=st.sampled_from(["median", "mean"]))
def test_levene_equals_scipy(groups, center):
    result = levene(*groups, center=center)
    if result.reason:
        assert math.isnan(result.p)
        middle = np.median if center == "median" else np.mean
        assert all(np.ptp(np.abs(np.array(g) - middle(g))) < 1e-9 for g in groups)
        return
    oracle = stats.levene(*groups, center=center)
    assert (result.statistic, result.p) == pytest.approx((oracle.statistic, oracle.pvalue), abs=1e-12)


def test_levene_drops_missing_values_and_says_so():
    holes = levene([*SLEEP_1, np.nan], [*SLEEP_2, np.inf, np.nan])
    assert holes.p == levene(SLEEP_1, SLEEP_2).p
    assert (holes.dropped, holes.notes) == (3, ("3 missing or infinite values",))


# Student or Welch


def test_student_sleep():
    result = compare_means(SLEEP_1, SLEEP_2)  # R: t.test(extra ~ group, var.equal = TRUE)
    assert result.test == "student"
    assert result.levene_p > 0.05
    assert (result.statistic, result.df) == pytest.approx((-1.8608, 18), abs=5e-5)
    assert result.p == pytest.approx(0.07919, abs=5e-6)
    assert (result.low, result.high) == pytest.approx((-3.363874, 0.203874), abs=5e-7)
    assert result.cohens_d == pytest.approx(-0.8322, abs=5e-5)


def test_welch_sleep_when_levene_is_made_strict():
    result = compare_means(SLEEP_1, SLEEP_2, alpha=0.999)  # R: t.test(extra ~ group)
    assert result.test == "welch"
    assert (result.df, result.p) == pytest.approx((17.776, 0.07939), abs=5e-4)
    assert (result.low, result.high) == pytest.approx((-3.3654832, 0.2054832), abs=5e-7)


@pytest.mark.filterwarnings("ignore:Precision loss")  # SciPy's, when one of the samples is constant
@SETTINGS
@given(a=samples, b=samples)
def test_compare_means_equals_scipy(a, b):
    result = compare_means(a, b, confidence=0.9)
    if np.ptp(a) == np.ptp(b) == 0:
        assert math.isnan(result.p)
        assert result.reason == "neither sample varies"
        return
    assert (result.test == "student") == (result.levene_p >= 0.05)
    oracle = stats.ttest_ind(a, b, equal_var=result.test == "student")
    interval = oracle.confidence_interval(0.9)
    assert (result.statistic, result.df, result.p) == pytest.approx(
        (oracle.statistic, oracle.df, oracle.pvalue), abs=1e-9
    )
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


@SETTINGS
@given(a=samples, b=samples, seed=st.integers(0, 99))
def test_compare_means_invariances(a, b, seed):
    base = compare_means(a, b)
    if base.reason:
        return
    shuffled = np.random.default_rng(seed).permutation(a)
    assert compare_means(shuffled, b).p == pytest.approx(base.p)
    swapped = compare_means(b, a)
    assert (swapped.p, swapped.low) == pytest.approx((base.p, -base.high))
    scaled = compare_means(np.array(a) * 4 + 8, np.array(b) * 4 + 8)
    assert (scaled.p, scaled.cohens_d, scaled.low) == pytest.approx((base.p, base.cohens_d, 4 * base.low))


def test_unequal_variances_lead_to_welch():
    rng = np.random.default_rng(0)
    assert compare_means(rng.normal(0, 1, 50), rng.normal(0, 5, 20)).test == "welch"


def test_undefined_levene_leads_to_welch_with_a_note():
    result = compare_means([0.0, 1.0], [0.0, 10.0])
    assert result.test == "welch"
    assert math.isnan(result.levene_p)
    assert "Levene" in result.notes[0]
    assert 0 < result.p < 1


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [1, 2], "at least 2 values, found 0 and 2"),
        ([1.0], [1, 2], "at least 2 values, found 1 and 2"),
        ([np.nan, np.nan], [1, 2], "at least 2 values, found 0 and 2"),
        ([0.1] * 3, [0.3] * 3, "neither sample varies"),
    ],
)
def test_compare_means_undefined(a, b, reason):
    result = compare_means(a, b)
    assert all(math.isnan(v) for v in (result.statistic, result.df, result.p, result.low, result.cohens_d))
    assert reason in result.reason


# Paired bootstrap


def test_paired_bootstrap_equals_enumerating_all_resamples():
    a, b = np.array([5.0, 3, 8, 6, 4]), np.array([4.0, 1, 3, 7, 4])
    d = a - b
    means = np.array([d[list(rows)].mean() for rows in itertools.product(range(5), repeat=5)])
    exact = np.mean(np.abs(means - d.mean()) >= abs(d.mean()) - 1e-12)
    result = paired_bootstrap_test(a, b, 40_000, 1)
    assert result.p == pytest.approx(exact, abs=0.01)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.21)
    assert result.mean_difference == pytest.approx(d.mean())


def test_paired_bootstrap_is_seeded_and_antisymmetric():
    one, again = (
        paired_bootstrap_test(SLEEP_1, SLEEP_2, 500, seed) for seed in (1, np.random.default_rng(1))
    )
    assert one == again
    swapped = paired_bootstrap_test(SLEEP_2, SLEEP_1, 500, 1)
    assert (swapped.p, swapped.low, swapped.high) == pytest.approx((one.p, -one.high, -one.low))
    assert one.p < 0.01  # Student's paired t gives 0.0028
    moved = paired_bootstrap_test(np.array(SLEEP_1) + 9, np.array(SLEEP_2) + 9, 500, 1)
    assert moved.p == one.p


def test_paired_bootstrap_holds_its_level():
    rng = np.random.default_rng(2)
    p = [paired_bootstrap_test(rng.normal(size=60), rng.normal(size=60), 300, rng).p for _ in range(600)]
    assert 0.03 < np.mean(np.array(p) <= 0.05) < 0.085
    assert 0.42 < np.mean(p) < 0.58


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [2.0]), ([np.nan, 1, 2], [1, np.inf, 3])])
def test_paired_bootstrap_undefined(a, b):
    result = paired_bootstrap_test(a, b, 10, 0)
    assert math.isnan(result.p)
    assert math.isnan(result.low)
    assert "at least 2 pairs" in result.reason


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_bootstrap_of_few_pairs_finds_no_more_than_a_sign_test_can(n):
    rng = np.random.default_rng(n)
    a = rng.normal(size=n)
    ahead = paired_bootstrap_test(a + 10, a + rng.normal(size=n) / 10, 999, 0)
    assert ahead.p == permutation_test(a + 10, a, paired=True, rng=0).p == 2 / 2**n
    most_are_equal = paired_bootstrap_test([*a, *np.arange(50)], [*(a - 1), *np.arange(50)], 999, 0)
    assert most_are_equal.p >= 2 / 2**n


def test_what_differs_by_rounding_only_is_no_further_evidence():
    ahead, rounded = np.ones(5), np.full(20, 0.1 + 0.2)
    test = paired_bootstrap_test([*ahead, *rounded], [*(ahead - 1), *[0.3] * 20], 9999, 0)
    assert test.p >= 2 / 2**5


def test_paired_bootstrap_of_equal_differences():
    none = paired_bootstrap_test([1, 2, 3], [1, 2, 3], 99, 0)
    assert (none.p, none.low, none.high) == (1.0, 0.0, 0.0)
    one = paired_bootstrap_test([2, 3, 4], [1, 2, 3], 99, 0)
    assert one.p == 1 / 4  # as often three coins fall on one side
    assert "no uncertainty" in one.notes[0]


# Permutation


def test_fisher_1935_darwin():
    result = permutation_test(DARWIN, [0] * 15, paired=True, n_permutations=2**15, rng=0)
    assert result.exact
    assert result.n_permutations == 2**15
    assert result.p == 2 * 863 / 2**15


def test_efron_tibshirani_mice():
    treated, control = [94, 197, 16, 38, 99, 141, 23], [52, 104, 146, 10, 51, 30, 40, 27, 46]
    result = permutation_test(treated, control, paired=False, n_permutations=20_000, rng=0)
    assert result.exact
    assert result.n_permutations == math.comb(16, 7)
    assert result.mean_difference == pytest.approx(30.63, abs=5e-3)
    assert result.p == pytest.approx(2 * 0.132, abs=0.03)  # theirs (chapter 15): one side, 1000 draws


@pytest.mark.parametrize("paired", [True, False])
@SETTINGS
@given(pairs=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=6))
def test_exact_permutation_equals_scipy(paired, pairs):
    a, b = np.array(pairs, dtype=float).T
    result = permutation_test(a, b, paired=paired, rng=0)
    oracle = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    assert result.exact
    assert result.p == pytest.approx(oracle.pvalue)
    assert permutation_test(b, a, paired=paired, rng=0).p == pytest.approx(result.p)


@pytest.mark.parametrize("paired", [True, False])
def test_monte_carlo_approaches_the_exact_p(paired, monkeypatch):
    exact = permutation_test(SLEEP_1, SLEEP_2, paired=paired, n_permutations=200_000, rng=0)
    drawn = permutation_test(SLEEP_1, SLEEP_2, paired=paired, n_permutations=1000, rng=0)
    assert exact.exact
    assert not drawn.exact
    assert drawn.p == pytest.approx(exact.p, abs=5 * math.sqrt(exact.p / 1000))
    assert drawn == permutation_test(SLEEP_1, SLEEP_2, paired=paired, n_permutations=1000, rng=0)
    monkeypatch.setattr(significance, "_BLOCK_CELLS", 1000)  # many blocks give the same exact answer
    blocks = permutation_test(SLEEP_1, SLEEP_2, paired=paired, n_permutations=200_000, rng=0)
    assert blocks.p == exact.p


@pytest.mark.parametrize("paired", [True, False])
def test_monte_carlo_p_is_never_zero(paired):
    a, b = np.arange(100.0) + 500, np.arange(100.0)
    result = permutation_test(a, b, paired=paired, n_permutations=199, rng=0)
    assert result.p == 1 / 200


@pytest.mark.parametrize("paired", [True, False])
def test_permutation_of_equal_or_missing_values(paired):
    assert permutation_test([0.1] * 4, [0.1] * 4, paired=paired, rng=0).p == 1.0
    result = permutation_test([np.nan], [1.0], paired=paired, rng=0)
    assert math.isnan(result.p)
    assert result.dropped == 1
    assert "both sides" in result.reason
    assert math.isnan(permutation_test([], [], paired=paired, rng=0).p)


# Chi-square


def test_agresti_party_identification():
    result = chi_square([[762, 327, 468], [484, 239, 477]])  # Agresti 2007, table 2.5
    assert (result.statistic, result.df) == pytest.approx((30.07, 2), abs=5e-3)
    assert result.p == pytest.approx(2.954e-07, rel=1e-3)
    assert result.expected[0] == pytest.approx([703.7, 319.6, 533.7], abs=0.05)


@SETTINGS
@given(shape=st.sampled_from([(2, 2), (2, 3), (4, 3)]), seed=st.integers(0, 9999), correction=st.booleans())
def test_chi_square_equals_scipy(shape, seed, correction):
    table = np.random.default_rng(seed).integers(1, 30, shape)
    result = chi_square(table, correction=correction)
    oracle = stats.chi2_contingency(table, correction=correction)
    assert (result.statistic, result.p) == pytest.approx((oracle.statistic, oracle.pvalue))
    assert result.expected == pytest.approx(oracle.expected_freq)
    assert result.cramers_v == pytest.approx(stats.contingency.association(table, method="cramer"))
    assert result.corrected == (correction and shape == (2, 2))
    order = np.random.default_rng(seed).permutation(shape[0])
    assert chi_square(table[order].T, correction=correction).p == pytest.approx(result.p)
    assert chi_square(table * 2, correction=False).cramers_v == pytest.approx(result.cramers_v)


def test_chi_square_corrects_two_by_two_by_default():
    table = [[10, 20], [30, 5]]
    assert chi_square(table).p == chi_square(table, correction=True).p
    assert chi_square(table).p > chi_square(table, correction=False).p


def test_chi_square_drops_and_names_empty_rows_and_columns():
    table = [[10, 0, 20], [0, 0, 0], [30, 0, 5]]
    result = chi_square(table, rows=["TGen", "Sheffield", "Slug2Slug"], columns=["added", "missed", "ok"])
    assert result.p == chi_square([[10, 20], [30, 5]]).p
    assert result.notes == ("row Sheffield has no counts", "column missed has no counts")
    assert result.dropped == 2
    assert result.expected.shape == (3, 3)
    assert chi_square(table).notes == ("row 2 has no counts", "column 2 has no counts")


def test_chi_square_notes_small_expected_counts():
    result = chi_square([[1, 9], [8, 2]])
    assert result.smallest_expected == 4.5
    assert "below 5" in result.notes[0]


@pytest.mark.parametrize(
    "table", [[[5, 7]], [[5], [7]], [[0, 0], [0, 0]], [[1, 2], [0, 0]], np.zeros((0, 0))]
)
def test_chi_square_undefined(table):
    result = chi_square(table)
    assert all(math.isnan(v) for v in (result.statistic, result.p, result.cramers_v))
    assert result.df == 0
    assert "fewer than 2 rows or columns" in result.reason


# McNemar


def test_agresti_approval_ratings():
    result = mcnemar([[794, 86], [150, 570]])  # Agresti 1990, p. 350
    assert not result.exact
    uncorrected = 17.3559  # as published; the correction takes 1 from the root of its numerator
    assert result.statistic == pytest.approx((math.sqrt(uncorrected * 236) - 1) ** 2 / 236, abs=1e-4)


@SETTINGS
@given(b=st.integers(0, 60), c=st.integers(0, 60), exact=st.booleans())
def test_mcnemar_equals_statsmodels(b, c, exact):
    result = mcnemar(b, c, exact=exact)
    if b + c == 0:
        assert math.isnan(result.p)
        assert result.reason == "no discordant pairs"
        return
    assert result.p == pytest.approx(mcnemar(c, b, exact=exact).p)
    assert result.p == mcnemar([[7, b], [c, 3]], exact=exact).p
    if b == c and not exact:  # statsmodels corrects a difference of 0 by 1
        assert result.p == 1.0
        return
    oracle = statsmodels_mcnemar([[7, b], [c, 3]], exact=exact)
    assert (result.statistic, result.p) == pytest.approx((oracle.statistic, oracle.pvalue))


def test_mcnemar_chooses_exact_below_25():
    assert mcnemar(10, 14).exact
    assert not mcnemar(10, 15).exact
    assert not mcnemar(10, 14, exact=False).exact


# Holm


def test_holm_worked_example():
    # by Holm's rule: 4 * .005, 3 * .01, 2 * .03, and .04 may not fall below its predecessor
    result = holm([0.01, 0.04, 0.03, 0.005])
    assert result.adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert result.reject.tolist() == [True, False, False, True]


@SETTINGS
@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=20), seed=st.integers(0, 99))
def test_holm_equals_statsmodels(p, seed):
    result = holm(p)
    with mock.patch("gc.collect"):  # statsmodels collects at each call, late in a long run half a second
        adjusted = multipletests(p, alpha=0.05, method="holm")[1]
    assert result.adjusted == pytest.approx(adjusted)
    assert result.reject.tolist() == (adjusted <= 0.05).tolist()
    order = np.random.default_rng(seed).permutation(len(p))
    assert holm(np.array(p)[order]).adjusted == pytest.approx(result.adjusted[order])


def test_holm_keeps_undefined_p_out_of_the_count():
    result = holm([np.nan, 0.01, 0.04, np.nan])
    assert result.adjusted == pytest.approx([np.nan, 0.02, 0.04, np.nan], nan_ok=True)
    assert result.reject.tolist() == [False, True, True, False]
    assert (result.n_tests, result.dropped, result.notes) == (2, 2, ("2 undefined p values",))
    assert holm([]).n_tests == 0
    assert holm([np.nan]).reject.tolist() == [False]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: levene([1, 2]), "at least 2 groups"),
        (lambda: levene([1, 2], [3, 4], center="mode"), "'median' or 'mean'"),
        (lambda: levene([[1, 2]], [3, 4]), "1-D"),
        (lambda: compare_means([1, 2], [3, 4], alpha=0), "alpha"),
        (lambda: compare_means([1, 2], [3, 4], confidence=1), "confidence"),
        (lambda: paired_bootstrap_test([1, 2], [3], 10, 0), "equally long"),
        (lambda: paired_bootstrap_test([1, 2], [3, 4], 0, 0), "at least 1"),
        (lambda: permutation_test([1, 2], [3], paired=True, rng=0), "equally long"),
        (lambda: permutation_test([1, 2], [3], paired=False, n_permutations=0, rng=0), "at least 1"),
        (lambda: chi_square([1, 2]), "2-D"),
        (lambda: chi_square([[1, -2], [3, 4]]), "0 or more"),
        (lambda: chi_square([[1, np.nan], [3, 4]]), "0 or more"),
        (lambda: chi_square([[1, 2], [3, 4]], rows=["one"]), "2 row names"),
        (lambda: mcnemar([[1, 2, 3]]), "2 x 2"),
        (lambda: mcnemar(3), "2 x 2"),
        (lambda: mcnemar(1.5, 2), "whole numbers"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
        (lambda: holm([0.5], alpha=2), "alpha"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
