"""Kappa against the SAS manual, Fleiss (1971), statsmodels, and resampled data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats import inter_rater

from palaver.statistics import kappa as module
from palaver.statistics.bootstrap import Resampling
from palaver.statistics.kappa import (
    WEIGHTS,
    KappaResult,
    PairwiseKappa,
    cohen_kappa,
    fleiss_kappa,
    fleiss_kappa_ratings,
    pairwise_kappa,
)

quick = settings(max_examples=50, deadline=None)

# SAS/STAT manual, PROC FREQ, "Skin Condition Data": two dermatologists, terrible / poor / marginal / clear
SKIN = np.array([[10, 4, 1, 0], [5, 10, 12, 2], [2, 4, 12, 5], [0, 2, 6, 13]])

# Fleiss 1971, table 1: 30 patients, 6 psychiatrists, 5 diagnoses
DIAGNOSES = np.array(
    [
        *([0, 0, 0, 6, 0], [0, 3, 0, 0, 3], [0, 1, 4, 0, 1], [0, 0, 0, 0, 6], [0, 3, 0, 3, 0]),
        *([2, 0, 4, 0, 0], [0, 0, 4, 0, 2], [2, 0, 3, 1, 0], [2, 0, 0, 4, 0], [0, 0, 0, 0, 6]),
        *([1, 0, 0, 5, 0], [1, 1, 0, 4, 0], [0, 3, 3, 0, 0], [1, 0, 0, 5, 0], [0, 2, 0, 3, 1]),
        *([0, 0, 5, 0, 1], [3, 0, 0, 1, 2], [5, 1, 0, 0, 0], [0, 2, 0, 4, 0], [1, 0, 2, 0, 3]),
        *([0, 0, 0, 0, 6], [0, 1, 0, 5, 0], [0, 2, 0, 1, 3], [2, 0, 0, 4, 0], [1, 0, 0, 4, 1]),
        *([0, 5, 0, 1, 0], [4, 0, 0, 0, 2], [0, 2, 0, 4, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 6]),
    ]
)

# the ten subjects, fourteen raters and five categories of many textbooks and encyclopaedias
FOURTEEN = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def spread(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two raters' labels behind a table."""
    i, j = np.nonzero(table)
    return np.repeat(i, table[i, j]), np.repeat(j, table[i, j])


def as_ratings(counts: np.ndarray) -> np.ndarray:
    """Rows of ratings behind (items, categories) counts, nan-padded."""
    width = counts.sum(axis=1).max()
    rows = [np.repeat(np.arange(counts.shape[1]), row) for row in counts]
    return np.array(
        [np.pad(row.astype(float), (0, width - row.size), constant_values=np.nan) for row in rows]
    )


def numbers(result: KappaResult) -> list[float]:
    names = ("value", "se", "se0", "z", "p", "low", "high", "observed", "expected")
    return [getattr(result, name) for name in names]


@pytest.mark.parametrize(
    ("weights", "published"),
    [("none", (0.3449, 0.0724, 0.2030, 0.4868)), ("linear", (0.5082, 0.0655, 0.3798, 0.6366))],
)
def test_the_sas_manual(weights: str, published: tuple[float, ...]) -> None:
    result = cohen_kappa(*spread(SKIN), weights=weights)  # type: ignore[arg-type]
    low, high = result.value - 1.96 * result.se, result.value + 1.96 * result.se  # as the manual has it
    assert (result.value, result.se, low, high) == pytest.approx(published, abs=5e-5)
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.012)
    if weights == "none":
        assert result.se0 == pytest.approx(0.0612, abs=5e-5)
        assert result.z == pytest.approx(5.6366, abs=5e-5)


def test_fleiss_1971() -> None:
    result = fleiss_kappa(DIAGNOSES)
    assert result.value == pytest.approx(0.430, abs=5e-4)
    assert result.observed == pytest.approx(0.556, abs=5e-4)
    assert result.expected == pytest.approx(0.220, abs=5e-4)
    assert result.z == pytest.approx(17.65, abs=5e-3)  # irr::kappam.fleiss(diagnoses) prints z = 17.7
    assert (result.n_items, result.n_raters, result.n_categories) == (30, 6, 5)


def test_fourteen_raters() -> None:
    assert fleiss_kappa(FOURTEEN).value == pytest.approx(0.210, abs=5e-4)


def test_fleiss_of_many_items_is_that_of_their_patterns() -> None:
    counts = np.random.default_rng(2).multinomial(3, [0.5, 0.3, 0.2], size=20_000)
    folded = fleiss_kappa_ratings(as_ratings(counts), n_replicates=200, rng=0)
    plain = fleiss_kappa(counts, n_replicates=200, rng=0)
    assert numbers(folded) == pytest.approx(numbers(plain), rel=1e-9)
    assert folded.boot is not None
    assert plain.boot is not None
    assert (folded.boot.low, folded.boot.high) == pytest.approx((plain.boot.low, plain.boot.high), abs=1.5e-3)


square = st.integers(2, 5).flatmap(lambda k: arrays(np.int64, (k, k), elements=st.integers(0, 9)))


@quick
@given(table=square, weights=st.sampled_from(WEIGHTS))
def test_cohen_against_statsmodels(table: np.ndarray, weights: str) -> None:
    table = table + np.eye(len(table), dtype=int)  # all categories in use
    result = cohen_kappa(*spread(table), weights=weights)  # type: ignore[arg-type]
    if table.sum() == np.trace(table):
        assert numbers(result)[:2] == pytest.approx([1, 0])
        return  # there statsmodels takes the root of a rounding error
    oracle = inter_rater.cohens_kappa(table, wt=None if weights == "none" else weights)
    ours = [result.value, result.se, result.se0, result.p]
    theirs = [oracle.kappa, oracle.std_kappa, oracle.std_kappa0, oracle.pvalue_two_sided]
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    if result.se > 0:
        assert -1 <= result.low < result.value < result.high <= 1


def test_an_interval_never_leaves_the_range_of_kappa() -> None:
    """Nineteen of twenty agree: kappa + 1.96 se would be 1.09."""
    result = cohen_kappa([0, 1] * 10, [0, 1] * 9 + [0, 0])
    assert result.value + 1.96 * result.se > 1
    assert 0.4 < result.low < result.value < result.high < 1


def test_perfect_agreement_has_no_interval() -> None:
    for result in (cohen_kappa([0, 1, 2], [0, 1, 2]), fleiss_kappa([[3, 0], [0, 3]])):
        assert result.value == 1
        assert math.isnan(result.low)
        assert "no interval" in result.reason


@pytest.mark.parametrize(("truth", "n"), [(0.3, 50), (0.6, 30), (0.8, 50), (0.9, 100)])
def test_the_interval_covers_the_truth(truth: float, n: int) -> None:
    """Four equally frequent categories; kappa +- 1.96 se covers 0.90 to 0.94 of the time here."""
    shares = truth * np.eye(4) / 4 + (1 - truth) / 16
    tables = np.random.default_rng(1).multinomial(n, shares.ravel(), size=600)
    results = [cohen_kappa(*spread(table.reshape(4, 4)), categories=range(4)) for table in tables]
    covered = [r.low <= truth <= r.high for r in results if not r.reason]
    assert 0.93 <= np.mean(covered) <= 0.985


def every_two(table: np.ndarray, weights: str = "none") -> PairwiseKappa:
    item, rater = np.nonzero(np.isfinite(table))
    values = table[item, rater]
    return pairwise_kappa(item, rater, values, weights=weights, categories=range(4), min_shared=3)  # type: ignore[arg-type]


def ordinal_ratings(n: int, raters: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (n, 1)) + rng.integers(-1, 2, (n, raters))
    return np.clip(table, 0, 3).astype(float)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_every_two_raters_is_cohens_kappa_of_each_pair(weights: str) -> None:
    table = ordinal_ratings(30, 4)
    table[np.random.default_rng(1).random(table.shape) < 0.2] = np.nan
    result = every_two(table, weights)
    for a, b, value, n in zip(result.first, result.second, result.values, result.n_shared, strict=True):
        one = cohen_kappa(table[:, a], table[:, b], weights=weights, categories=range(4))  # type: ignore[arg-type]
        assert (value, n) == (pytest.approx(one.value), one.n_items)
    assert (result.values.size, result.value) == (6, pytest.approx(result.values.mean()))
    single = every_two(table[:, :2], weights)
    alone = cohen_kappa(table[:, 0], table[:, 1], weights=weights, categories=range(4))  # type: ignore[arg-type]
    assert [single.value, single.se, single.low] == pytest.approx([alone.value, alone.se, alone.low])


def test_the_error_of_a_mean_of_pairs_against_the_jackknife() -> None:
    table = ordinal_ratings(200, 5)
    without = [every_two(np.delete(table, i, axis=0), "linear").value for i in range(200)]
    jackknife = math.sqrt(199 / 200 * np.square(without - np.mean(without)).sum())
    assert every_two(table, "linear").se == pytest.approx(jackknife, rel=0.02)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_mean_of_pairs_without_each_group_is_that_of_the_other_items(weights: str) -> None:
    table = ordinal_ratings(30, 4)
    table[np.random.default_rng(1).random(table.shape) < 0.3] = np.nan
    table[5:, 3] = np.nan  # the pairs of the last rater have too few items without some group
    item, rater = np.nonzero(np.isfinite(table))
    result = pairwise_kappa(
        item, rater, table[item, rater], weights=weights, categories=range(4), min_shared=3, group=item % 5
    )  # type: ignore[call-overload]
    without = [every_two(table[np.arange(30) % 5 != number], weights).value for number in range(5)]
    assert result.without == pytest.approx(without)
    assert np.ptp(without) > 0


def test_pairs_without_enough_items_are_counted() -> None:
    table = ordinal_ratings(12, 3)
    table[2:, 2] = np.nan
    result = every_two(table)
    assert (result.values.size, result.dropped, result.n_raters) == (1, 2, 2)
    assert result.notes == ("2 pairs of raters with fewer than 3 items in common",)
    assert result.to_polars("pairs").columns == ["first", "second", "value", "n_shared"]
    lonely = pairwise_kappa([0, 1, 2], [0, 1, 2], [1, 1, 2])
    assert math.isnan(lonely.value)
    assert lonely.reason == "no two raters judged 10 items in common"
    alike = pairwise_kappa([0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1], min_shared=2)
    assert "one category" in alike.reason


@quick
@given(counts=arrays(np.int64, (6, 3), elements=st.integers(0, 4)))
def test_fleiss_against_statsmodels(counts: np.ndarray) -> None:
    full = np.column_stack([counts, 13 - counts.sum(axis=1)])
    result = fleiss_kappa(full)
    if math.isnan(result.value):
        assert np.count_nonzero(full.sum(axis=0)) == 1
    else:
        assert result.value == pytest.approx(inter_rater.fleiss_kappa(full), abs=1e-12)


labels = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30)


@quick
@given(pairs=labels, seed=st.integers(0, 99), weights=st.sampled_from(WEIGHTS))
def test_items_have_no_order_and_raters_can_swap(
    pairs: list[tuple[int, int]], seed: int, weights: str
) -> None:
    a, b = np.array(pairs).T
    one = cohen_kappa(a, b, weights=weights)  # type: ignore[arg-type]
    order = np.random.default_rng(seed).permutation(a.size)
    other = cohen_kappa(b[order], a[order], weights=weights)  # type: ignore[arg-type]
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-12)


@quick
@given(pairs=labels, names=st.permutations("abcde"))
def test_names_of_categories_do_not_matter(pairs: list[tuple[int, int]], names: list[str]) -> None:
    a, b = np.array(pairs).T
    named = [[names[label] for label in column] for column in (a, b)]
    np.testing.assert_allclose(
        numbers(cohen_kappa(a, b)), numbers(cohen_kappa(*named)), rtol=1e-9, atol=1e-12
    )
    for weights in ("linear", "quadratic"):  # here the order matters, and is given
        one = cohen_kappa(a, b, weights=weights, categories=range(5))
        other = cohen_kappa(*named, weights=weights, categories=names)
        np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-12)


@quick
@given(pairs=labels)
def test_twice_the_data_is_the_same_kappa_with_less_error(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    one, twice = cohen_kappa(a, b), cohen_kappa(np.tile(a, 2), np.tile(b, 2))
    np.testing.assert_allclose(twice.value, one.value, atol=1e-12)
    np.testing.assert_allclose(twice.se * math.sqrt(2), one.se, atol=1e-9)
    counts = np.eye(5)[a] + np.eye(5)[b]
    assert fleiss_kappa(np.tile(counts, (2, 1))).value == pytest.approx(
        fleiss_kappa(counts).value, nan_ok=True
    )


def test_binary_weighted_kappa_is_plain_kappa() -> None:
    a, b = spread(np.array([[20, 5], [10, 15]]))
    for weights in WEIGHTS:
        assert cohen_kappa(a, b, weights=weights).value == pytest.approx(0.4)


def test_unused_steps_of_the_scale() -> None:
    a, b = np.array([1, 1, 2, 5, 5, 2]), np.array([1, 2, 2, 5, 2, 2])
    guessed = cohen_kappa(a, b, weights="quadratic")
    given_all = cohen_kappa(a, b, weights="quadratic", categories=[1, 2, 3, 4, 5])
    assert "2 unused categories" in guessed.notes[0]
    assert given_all.notes == ()
    table = np.zeros((5, 5))
    np.add.at(table, (a - 1, b - 1), 1)
    assert given_all.value == pytest.approx(inter_rater.cohens_kappa(table, wt="quadratic").kappa)
    assert guessed.value != pytest.approx(given_all.value)


def test_fleiss_ratings_and_counts_agree() -> None:
    assert fleiss_kappa_ratings(as_ratings(DIAGNOSES)) == fleiss_kappa(DIAGNOSES)


def test_fleiss_with_unequal_numbers_by_hand() -> None:
    counts = np.array([[2, 1, 0], [0, 4, 1], [1, 0, 0], [0, 2, 0], [0, 0, 0], [1, 1, 3]])
    result = fleiss_kappa(counts)
    kept = counts[[0, 1, 3, 5]]
    shares = [sum(row[j] for row in kept) / kept.sum() for j in range(3)]
    agreement = [sum(c * (c - 1) for c in row) / (row.sum() * (row.sum() - 1)) for row in kept]
    expected = sum(share**2 for share in shares)
    assert result.value == pytest.approx((np.mean(agreement) - expected) / (1 - expected))
    assert (result.dropped, result.n_items, result.n_raters) == (2, 4, 5)
    assert result.notes[0] == "2 items with fewer than two ratings"
    assert "unequal" in result.notes[1]
    assert math.isnan(result.se0)
    assert math.isnan(result.p)
    assert result.low < result.value < result.high
    assert fleiss_kappa_ratings(as_ratings(counts)).value == pytest.approx(result.value)


def test_fleiss_null_error_is_the_spread_of_kappa_under_chance() -> None:
    rng = np.random.default_rng(1)
    results = [fleiss_kappa(rng.multinomial(5, [0.5, 0.3, 0.2], size=40)) for _ in range(1500)]
    values = np.array([result.value for result in results])
    assert np.mean([result.se0 for result in results]) == pytest.approx(values.std(), rel=0.08)
    assert np.mean([result.p < 0.05 for result in results]) == pytest.approx(0.05, abs=0.02)


def test_fleiss_error_is_the_spread_of_kappa_under_agreement() -> None:
    rng = np.random.default_rng(2)
    results = []
    for _ in range(400):
        shares = rng.dirichlet([0.6, 0.5, 0.4], size=60)
        size = rng.integers(3, 7, size=60)
        results.append(fleiss_kappa([rng.multinomial(m, p) for m, p in zip(size, shares, strict=True)]))
    values = np.array([result.value for result in results])
    assert np.mean([result.se for result in results]) == pytest.approx(values.std(), rel=0.12)


def test_fleiss_error_against_the_jackknife() -> None:
    """With lopsided shares most of the error comes through the expected agreement."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([4, 0.5, 0.3], size=1000)
    counts = np.array([rng.multinomial(m, p) for m, p in zip(rng.integers(2, 6, 1000), shares, strict=True)])
    without = [fleiss_kappa(np.delete(counts, i, axis=0)).value for i in range(1000)]
    jackknife = math.sqrt(999 / 1000 * np.square(without - np.mean(without)).sum())
    assert fleiss_kappa(counts).se == pytest.approx(jackknife, rel=0.006)


def test_cohen_bootstrap_has_the_moments_of_resampling() -> None:
    a, b = spread(SKIN)
    rng = np.random.default_rng(5)
    draws = rng.integers(0, a.size, size=(1500, a.size))
    for weights in WEIGHTS:
        loop = [
            cohen_kappa(a[draw], b[draw], weights=weights, categories=range(4)).value for draw in draws[:500]
        ]
        boot = cohen_kappa(a, b, weights=weights, n_replicates=4000, rng=1).boot
        assert boot is not None
        np.testing.assert_allclose([boot.low, boot.high], np.quantile(loop, [0.025, 0.975]), atol=0.035)


def test_cohen_replicates_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known tables in the place of drawn ones."""
    rng = np.random.default_rng(6)
    i, j = np.nonzero(SKIN)
    drawn = rng.multinomial(88, SKIN[i, j] / 88, size=30)

    class Known(np.random.Generator):
        def multinomial(self, n: int, p: object, size: int) -> np.ndarray:  # type: ignore[override]
            return drawn

    weights = module._agreement_weights(4, "linear")
    resampling = Resampling(0.95, 30, Known(np.random.PCG64(1)))
    samples = module._cohen_replicates(SKIN.astype(float), weights, resampling)
    for sample, cells in zip(samples, drawn, strict=True):
        table = np.zeros((4, 4), dtype=int)
        table[i, j] = cells
        result = cohen_kappa(*spread(table), weights="linear", categories=range(4))
        assert sample == pytest.approx(result.value, abs=1e-12)


def test_fleiss_bootstrap_is_kappa_of_resampled_items(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = np.random.default_rng(7).integers(0, 30, size=(50, 30))
    monkeypatch.setattr(
        module, "resample_sums", lambda t, b, rng, _: np.array([t[d].sum(axis=0) for d in draws])
    )
    counts = DIAGNOSES.copy()
    counts[4, 2] += 2
    boot = fleiss_kappa(counts, n_replicates=50, rng=0, confidence=0.8).boot
    values = [fleiss_kappa(counts[draw]).value for draw in draws]
    assert boot is not None
    np.testing.assert_allclose([boot.low, boot.high], np.quantile(values, [0.1, 0.9]), rtol=1e-9)


def test_the_seed_decides() -> None:
    a, b = spread(SKIN)
    for run in (
        lambda seed: cohen_kappa(a, b, n_replicates=100, rng=seed).boot,
        lambda seed: fleiss_kappa(DIAGNOSES, n_replicates=100, rng=seed).boot,
    ):
        assert run(1) == run(1) != run(2)


def test_missing_labels_are_dropped_and_counted() -> None:
    a = [1.0, 2.0, math.nan, 3.0, 1.0]
    b = [1.0, 2.0, 2.0, math.nan, 2.0]
    result = cohen_kappa(a, b)
    assert (result.dropped, result.n_items) == (2, 3)
    assert result.notes == ("2 items without both ratings",)
    assert result.value == pytest.approx(cohen_kappa([1, 2, 1], [1, 2, 2]).value)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: cohen_kappa([], [], n_replicates=5, rng=0), "no item"),
        (lambda: cohen_kappa([math.nan], [1.0]), "no item"),
        (lambda: cohen_kappa([3, 3, 3], [3, 3, 3], n_replicates=5, rng=0), "one category"),
        (lambda: cohen_kappa([3, 3], [3, 3], weights="linear", categories=[1, 2, 3]), "one category"),
        (lambda: fleiss_kappa(np.empty((0, 3))), "no item"),
        (lambda: fleiss_kappa([[1, 0], [0, 1]]), "no item"),
        (lambda: fleiss_kappa([[4, 0], [3, 0]], n_replicates=5, rng=0), "one category"),
        (lambda: fleiss_kappa_ratings(np.full((3, 3), np.nan)), "no item"),
        (lambda: fleiss_kappa_ratings(np.empty((0, 0))), "no item"),
    ],
)
def test_undefined_is_nan_with_a_reason(call: object, reason: str) -> None:
    result = call()  # type: ignore[operator]
    assert math.isnan(result.value)
    assert math.isnan(result.low)
    assert math.isnan(result.p)
    assert reason in result.reason
    assert result.boot is None


def test_one_item() -> None:
    result = fleiss_kappa([[2, 1]])
    assert result.value == pytest.approx(-0.5)
    assert math.isnan(result.se)
    assert "one item" in result.notes[0]


def test_a_rater_who_always_says_the_same_has_no_test() -> None:
    result = cohen_kappa([0, 0, 0, 0], [0, 1, 0, 1])
    assert (result.value, result.se0) == (0, 0)
    assert math.isnan(result.z)
    assert "no test" in result.notes[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa([1, 2], [1, 2, 3]), "one length"),
        (lambda: cohen_kappa([1, 2], [1, 2], weights="cubic"), "weights"),
        (lambda: cohen_kappa([1, 2], ["a", "b"]), "one kind"),
        (lambda: cohen_kappa([None, "a"], ["a", "b"]), "numbers or strings"),
        (lambda: cohen_kappa([1, 9], [1, 2], categories=[1, 2, 3]), r"categories \[1, 2, 3\]: \[9\]"),
        (lambda: cohen_kappa([1, 2], [1, 2], categories=[1, 2, 2]), "different"),
        (lambda: cohen_kappa([1, 2], [1, 2], confidence=0), "confidence"),
        (lambda: cohen_kappa([1, 2], [1, 2], n_replicates=9), "rng"),
        (lambda: cohen_kappa(np.arange(3000.0), np.arange(3000.0)), "at most 2000"),
        (lambda: fleiss_kappa([1, 2]), "shape"),
        (lambda: fleiss_kappa([[1, -1]]), "whole"),
        (lambda: fleiss_kappa([[1, 0.5]]), "whole"),
        (lambda: fleiss_kappa([[1, math.nan]]), "whole"),
    ],
)
def test_wrong_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
