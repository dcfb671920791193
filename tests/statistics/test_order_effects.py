"""The pull of the first place: found where it was put in, beside scikit-learn's logistic regression."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from palaver.statistics.order_effects import count_flips, fit_order

STRENGTHS = np.array([-0.8, 0.0, 0.8])


def play(n_items: int, position: float, longer: float = 0.0, seed: int = 0):
    """Every pair of three systems on every item in both orders, by a judge of known habits."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(n_items):
        for a, b in ((0, 1), (0, 2), (1, 2)):
            length = rng.normal()
            for first, second, sign in ((a, b, 1), (b, a, -1)):
                logit = STRENGTHS[first] - STRENGTHS[second] + position + longer * sign * length
                wins = float(rng.random() < 1 / (1 + math.exp(-logit)))
                rows.append((first, second, wins, item, sign * length))
    return [np.array(column) for column in zip(*rows, strict=True)]


def test_position_and_length_are_found_again() -> None:
    first, second, wins, item, length = play(400, position=0.7, longer=0.5)
    fit = fit_order(first, second, wins, item, covariates={"length": length})
    assert fit.effects["position"].low < 0.7 < fit.effects["position"].high
    assert fit.effects["length"].low < 0.5 < fit.effects["length"].high
    assert fit.strengths == pytest.approx(STRENGTHS, abs=0.15)
    assert fit.effects["position"].p < 1e-6


def test_the_fit_is_scikit_learns() -> None:
    first, second, wins, item, length = play(60, position=0.3, longer=0.2)
    design = np.zeros((wins.size, 4))
    rows = np.arange(wins.size)
    for column in (1, 2):  # the first system is the reference
        design[:, column - 1] = (first == column).astype(float) - (second == column)
    design[rows, 2] = 1
    design[:, 3] = length
    model = LogisticRegression(C=1e6, fit_intercept=False, tol=1e-10, max_iter=1000).fit(design, wins)
    fit = fit_order(first, second, wins, item, covariates={"length": length})
    assert fit.effects["position"].value == pytest.approx(model.coef_[0, 2], abs=1e-3)
    assert fit.effects["length"].value == pytest.approx(model.coef_[0, 3], abs=1e-3)


def test_no_position_is_not_rejected_too_often() -> None:
    rejected = sum(
        fit_order(*play(40, 0.0, seed=seed)[:4]).effects["position"].p < 0.05 for seed in range(120)
    )
    assert rejected / 120 < 0.11


def test_few_items_with_habits_of_their_own_are_not_a_pull() -> None:
    """Each item pulls to one place or the other; with normal quantiles one study in eight finds a pull."""
    rng = np.random.default_rng(0)
    first, second, _, item, _ = play(4, 0.0)
    rejected = 0
    for _ in range(150):
        pull = rng.normal(size=4)[item]
        wins = (rng.random(item.size) < 1 / (1 + np.exp(-pull))).astype(float)
        rejected += fit_order(first, second, wins, item).effects["position"].p < 0.05
    assert rejected / 150 < 0.08


def test_a_judge_that_always_says_first_is_told() -> None:
    first, second, _, item, _ = play(30, 0.0)
    fit = fit_order(first, second, np.ones(first.size), item)
    assert "without exception" in fit.reason
    assert math.isnan(fit.effects["position"].value)
    assert np.isfinite(fit.strengths).all()


def test_two_systems_and_few_items_are_no_pull_where_one_always_wins_from_one_place() -> None:
    """One verdict an item. Taken at their word, the fits find a pull in four of ten such studies."""
    rng = np.random.default_rng(0)
    n_defined = rejected = 0
    for _ in range(150):
        better_first = rng.random(10) < 0.5
        wins = (rng.random(10) < np.where(better_first, 0.75, 0.25)).astype(float)
        fit = fit_order(np.where(better_first, 0, 1), np.where(better_first, 1, 0), wins, np.arange(10))
        effect = fit.effects["position"]
        assert bool(fit.reason) == math.isnan(effect.p)
        n_defined += not fit.reason
        rejected += effect.p < 0.05
    assert n_defined > 40
    assert rejected / 150 < 0.05


def test_a_system_that_always_wins_leaves_the_pull_of_the_others() -> None:
    first, second, wins, item, _ = play(40, position=1.0)
    best = 3
    first, second, item = np.r_[first, [best] * 20], np.r_[second, [0] * 20], np.r_[item, np.arange(20)]
    fit = fit_order(first, second, np.r_[wins, np.ones(20)], item)
    assert not fit.reason
    assert fit.effects["position"].low < 1.0 < fit.effects["position"].high


def test_flips_tell_bias_from_noise() -> None:
    biased = count_flips([(1.0, 0.0)] * 6 + [(1.0, 1.0)] * 4)
    assert (biased.consistency, biased.bias, biased.noise) == (0.4, 0.6, 0.0)
    noisy = count_flips([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0)])
    assert (noisy.bias, noisy.noise) == (0.0, 0.5)
    assert math.isnan(count_flips([]).bias)


def test_too_little_has_a_reason() -> None:
    assert "two items" in fit_order([0], [1], [1.0], [0]).reason
    assert "ties" in fit_order([0, 1], [1, 0], [0.5, 0.5], [0, 1]).reason
