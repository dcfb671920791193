"""Accuracy, kappa and calibration against what a textbook says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palaver.comparator.evaluation import calibration, connected, evaluate_pairs
from palaver.comparator.training_data import Pairs
from palaver.errors import DataError
from palaver.statistics.kappa import cohen_kappa


def make(first: list[int], second: list[int], label: list[int]) -> Pairs:
    return Pairs(np.array(first), np.array(second), np.array(label, np.int8))


def test_accuracy_counts_ties_half() -> None:
    result = evaluate_pairs([3.0, 2.0, 2.0, 0.0], make([0, 1, 2, 3], [1, 2, 3, 0], [1, 1, -1, -1]))
    assert result.accuracy == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert (result.n, result.n_ties, result.n_groups) == (4, 1, 1)
    assert 0 <= result.low <= result.accuracy <= result.high <= 1


def test_kappa_is_that_of_statistics() -> None:
    rng = np.random.default_rng(0)
    pairs = make(list(range(0, 200, 2)), list(range(1, 200, 2)), rng.choice([-1, 1], 100).tolist())
    scores = rng.random(200)
    result = evaluate_pairs(scores, pairs)
    said = np.sign(scores[pairs.first] - scores[pairs.second])
    known = cohen_kappa(said, pairs.label)
    assert result.kappa == pytest.approx(known.value)
    assert result.n_groups == 100
    chance = 1 - (1 - result.accuracy) / (1 - result.kappa)
    assert result.kappa_se == pytest.approx(
        math.sqrt(result.accuracy * (1 - result.accuracy) / 100) / (1 - chance)
    )


def test_the_interval_widens_where_pairs_hang_together() -> None:
    """20 groups of 10 pairs that are all right or all wrong are 20 observations, not 200."""
    n, inside = 20, 10
    first = [g * 11 for g in range(n) for _ in range(inside)]
    second = [g * 11 + 1 + i for g in range(n) for i in range(inside)]
    scores = np.zeros(n * 11)
    scores[::11] = [1 if g % 2 else -1 for g in range(n)]
    result = evaluate_pairs(scores, make(first, second, [1] * (n * inside)))
    assert result.accuracy == 0.5
    assert result.high - result.low > 0.35  # 200 pairs on their own would give 0.14


def test_connected_groups() -> None:
    assert len(set(connected(make([0, 1, 5, 7], [1, 2, 6, 0], [1, 1, 1, 1])).tolist())) == 2


@pytest.mark.parametrize("scores", [[1.0], [1.0, math.nan], [[1.0, 2.0]]])
def test_bad_scores(scores: list[float]) -> None:
    with pytest.raises(DataError):
        evaluate_pairs(scores, make([0], [1], [1]))


def test_no_pairs_and_one_sided_labels() -> None:
    with pytest.raises(DataError, match="no compared pairs"):
        evaluate_pairs([1.0], make([], [], []))
    result = evaluate_pairs([2.0, 1.0], make([0], [1], [1]))
    assert math.isnan(result.kappa)


def test_calibration_by_hand() -> None:
    result = calibration([0.05, 0.95, 0.95, 1.0], [-1, 1, -1, 1], bins=10)
    assert [b.n for b in result.bins] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 3]
    assert result.bins[9].rate == pytest.approx(2 / 3)
    assert math.isnan(result.bins[5].rate)
    expected = (1 * 0.05 + 3 * abs(2.9 / 3 - 2 / 3)) / 4
    assert result.ece == pytest.approx(expected)
    with pytest.raises(DataError, match="between 0 and 1"):
        calibration([1.5], [1])


def test_honest_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    result = calibration(p, np.where(rng.random(50_000) < p, 1, -1))
    assert result.ece < 0.01
    assert result.brier == pytest.approx(1 / 6, abs=0.01)
