"""The difference of two ICCs: its values, its error rate, and which items are drawn together."""

from __future__ import annotations

import numpy as np
import pytest

from palaver.statistics.icc import icc_long
from palaver.statistics.icc_difference import RatedOutputs, compare_icc

pytestmark = pytest.mark.filterwarnings("error")


def design(truth: np.ndarray, noise: float, rng: np.random.Generator, k: int = 3) -> RatedOutputs:
    """Three outputs an item, k ratings an output."""
    output, rater = np.divmod(np.arange(truth.size * k), k)
    value = truth[output] + noise * rng.normal(size=output.size)
    return RatedOutputs(output=output, rater=rater, item=output // 3, value=value)


@pytest.mark.parametrize("crossed", [False, True])
def test_the_values_are_those_of_the_icc(crossed: bool) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=90)
    a, b = design(truth, 0.5, rng), design(truth, 2.0, rng, k=4)
    b.value[5] = np.nan
    for size, result in zip("1k", compare_icc(a, b, crossed=crossed, n_replicates=200, rng=0), strict=True):
        form = f"ICC({2 if crossed else 1},{size})"
        values = [icc_long(d.output, d.rater, d.value)[form].value for d in (a, b)]
        assert (result.form, result.a, result.b) == (form, *map(pytest.approx, values))
        assert result.difference == pytest.approx(values[0] - values[1])
        assert 0 < result.low < result.difference < result.high
        assert result.p == pytest.approx(2 / 201)
        assert (result.n_items_a, result.n_items_b, result.n_shared) == (30, 30, 30)


def test_equal_agreement_is_called_different_in_one_of_twenty() -> None:
    rng = np.random.default_rng(5)
    p, covered = [], []
    for _ in range(300):
        truth = np.repeat(rng.normal(size=40), 3) + rng.normal(size=120)
        result = compare_icc(design(truth, 2.0, rng), design(truth, 2.0, rng), n_replicates=200, rng=rng)[1]
        p.append(result.p)
        covered.append(result.low <= 0 <= result.high)
    assert 0.02 <= np.mean(np.array(p) < 0.05) <= 0.08
    assert 0.92 <= np.mean(covered) <= 0.98


def test_shared_items_are_drawn_together() -> None:
    """The same ratings under the same names differ by nothing in every replicate; under others they may."""
    ratings = design(np.random.default_rng(1).normal(size=60), 1.0, np.random.default_rng(2))
    same = compare_icc(ratings, ratings, n_replicates=100, rng=0)[1]
    assert (same.low, same.high, same.p) == (0, 0, 1)
    renamed = RatedOutputs(
        output=ratings.output, rater=ratings.rater, item=ratings.item + 20, value=ratings.value
    )
    apart = compare_icc(ratings, renamed, n_replicates=100, rng=0)[1]
    assert apart.n_shared == 0
    assert apart.low < 0 < apart.high


def test_four_items_prove_nothing() -> None:
    rng = np.random.default_rng(5)
    truth = 3 * rng.normal(size=12)
    result = compare_icc(design(truth, 0.1, rng), design(0 * truth, 1.0, rng), n_replicates=999, rng=0)[1]
    assert result.n_shared < 5
    assert result.p >= 2 / 2**result.n_shared


def test_what_cannot_be_measured_has_a_reason() -> None:
    rng = np.random.default_rng(1)
    good = design(rng.normal(size=60), 1.0, rng)
    alike = RatedOutputs(output=good.output, rater=good.rater, item=good.item, value=np.ones(good.value.size))
    assert compare_icc(good, alike, rng=0)[1].reason == "no agreement can be measured in b"
    single = RatedOutputs(output=good.output, rater=good.rater, item=0 * good.item, value=good.value)
    assert "one item" in compare_icc(single, single, rng=0)[1].reason
