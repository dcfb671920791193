"""The shared bootstrap: moments of the multinomial it must follow, determinism, errors, percentiles."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from palaver.statistics import bootstrap
from palaver.statistics.bootstrap import draw_blocks, percentile_interval, resample_sums


@pytest.mark.parametrize("n", [2, 7, 50])
def test_sums_have_the_mean_and_covariance_of_a_multinomial_bootstrap(n: int) -> None:
    """E = column sums; Cov = n times the population covariance of the rows (Efron & Tibshirani 1993)."""
    rng = np.random.default_rng(n)
    table = rng.normal(loc=[0, 5, -2], size=(n, 3))
    replicates = 40_000
    sums = resample_sums(table, replicates, rng)
    covariance = n * np.cov(table.T, bias=True)
    error = np.sqrt(np.diag(covariance) / replicates)
    assert np.all(np.abs(sums.mean(axis=0) - table.sum(axis=0)) < 5 * error)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(np.cov(sums.T) / scale, covariance / scale, atol=0.04)


def test_indicator_columns_give_multinomial_counts() -> None:
    sums = resample_sums(np.eye(5), 20_000, np.random.default_rng(3))
    assert np.array_equal(sums, np.round(sums))
    assert np.all(sums.sum(axis=1) == 5)
    assert abs(np.mean(sums == 0) - (1 - 1 / 5) ** 5) < 0.01  # an item is left out with this chance
    assert abs(np.mean(sums == 5) - (1 / 5) ** 5) < 0.0005


@pytest.mark.parametrize("n", [1, 2, 7, 10])
def test_weights_are_multinomial(n: int) -> None:
    blocks = draw_blocks(n, None, 30_000, 1000, np.random.default_rng(n))
    weights = np.concatenate([block.copy() for block in blocks])
    assert weights.shape == (30_000, n)
    assert np.all(weights.sum(axis=1) == n)
    np.testing.assert_allclose(weights.mean(axis=0), 1, atol=0.03)
    covariance = np.eye(n) - 1 / n
    np.testing.assert_allclose(np.cov(weights.T).reshape(n, n), covariance, atol=0.04)


def test_items_are_drawn_independently_of_each_other_across_replicates() -> None:
    sums = resample_sums(np.arange(9.0)[:, None], 20_000, np.random.default_rng(5))[:, 0]
    assert abs(np.corrcoef(sums[:-1], sums[1:])[0, 1]) < 0.03


def test_the_seed_decides() -> None:
    table = np.arange(20.0).reshape(10, 2)
    one, again, other = (resample_sums(table, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_one_call_after_another_on_one_generator_differs() -> None:
    rng = np.random.default_rng(1)
    table = np.arange(20.0).reshape(10, 2)
    assert not np.array_equal(resample_sums(table, 50, rng), resample_sums(table, 50, rng))


def test_input_of_any_layout_and_type() -> None:
    table = np.arange(20).reshape(2, 10).T
    seeds = (np.random.default_rng(4), np.random.default_rng(4))
    assert np.array_equal(
        resample_sums(table, 9, seeds[0]), resample_sums(np.ascontiguousarray(table, float), 9, seeds[1])
    )


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((2, 2, 2)), np.zeros((0, 4))])
def test_wrong_tables_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"shape|zero items"):
        resample_sums(bad, 10, np.random.default_rng(0))


def test_percentiles() -> None:
    interval = percentile_interval(np.arange(101.0), 0.90)
    assert (interval.low, interval.high) == pytest.approx((5, 95))
    assert (interval.confidence, interval.n_replicates, interval.n_undefined) == (0.90, 101, 0)


def test_percentiles_leave_out_and_count_the_undefined() -> None:
    interval = percentile_interval([math.nan, 1.0, 2.0, 3.0, math.inf], 0.5)
    assert (interval.low, interval.high) == pytest.approx((1.5, 2.5))
    assert (interval.n_replicates, interval.n_undefined) == (5, 2)


def test_percentiles_of_nothing_defined() -> None:
    interval = percentile_interval([math.nan] * 4)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert interval.n_undefined == 4


def plain_sums(table: np.ndarray, n_replicates: int, rng: np.random.Generator) -> np.ndarray:
    """The bootstrap as the textbook has it: draw n rows with replacement and add them up."""
    return np.array([table[rng.integers(0, len(table), len(table))].sum(axis=0) for _ in range(n_replicates)])


def test_patterns_are_drawn_as_items_are() -> None:
    """Sums of 20,000 items with 12 distinct rows, folded, against drawing every item."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=12), rng.integers(0, 4, 12)])
    table = rows[rng.integers(0, 12, 20_000)]
    folded, times = bootstrap._fold_rows(table)
    assert len(folded) == 12
    assert times is not None
    assert times.sum() == 20_000
    np.testing.assert_allclose(times @ folded, table.sum(axis=0), rtol=1e-12)
    same_distribution(resample_sums(table, 4000, rng), plain_sums(table, 800, rng))


def test_many_different_items_are_drawn_in_parts() -> None:
    rng = np.random.default_rng(2)
    table = rng.normal(loc=[1, -5], size=(bootstrap.MANY + 321, 2))
    assert bootstrap._fold_rows(table) is None
    same_distribution(resample_sums(table, 4000, rng), plain_sums(table, 800, rng))
    ones = resample_sums(np.column_stack([table, np.ones(len(table))]), 200, rng)[:, 2]
    assert (ones == len(table)).all()


def same_distribution(ours: np.ndarray, plain: np.ndarray) -> None:
    """Quantiles of both agree within their Monte-Carlo error; sums of many items are normal."""
    spread = plain.std(axis=0)
    for q in (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975):
        density = NormalDist().pdf(NormalDist().inv_cdf(q))
        error = math.sqrt(q * (1 - q) * (1 / len(ours) + 1 / len(plain))) / density
        assert np.all(
            np.abs(np.quantile(ours, q, axis=0) - np.quantile(plain, q, axis=0)) < 4 * error * spread
        )
    assert np.all(np.abs(ours.std(axis=0) / spread - 1) < 4 * math.sqrt(0.5 / len(ours) + 0.5 / len(plain)))


def test_the_seed_decides_over_patterns_and_parts() -> None:
    rng = np.random.default_rng(3)
    few = rng.integers(0, 3, size=(bootstrap.MANY, 1)).astype(float)
    many = rng.normal(size=(bootstrap.MANY, 1))
    for table in (few, many):
        one, again, other = (resample_sums(table, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert np.array_equal(one, again)
        assert not np.array_equal(one, other)
