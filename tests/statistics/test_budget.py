"""Plans: the variance formula in a simulation, what is cheapest, and what no money buys."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palaver.statistics.budget import DifferenceVariances, Prices, cheapest_plan

VARIANCES = DifferenceVariances(dialogue=1.0, people=0.02, cell=0.8, foretold=0.6)


def test_the_variance_is_that_of_simulated_studies() -> None:
    """With the best weight, as the formula has it."""
    rng = np.random.default_rng(0)
    n, each, people, judged, estimates = 30, 2, 10, 300, []
    for _ in range(3000):
        known = math.sqrt(0.6) * rng.standard_normal(judged)
        difference = known[:n] + math.sqrt(0.4) * rng.standard_normal(n)
        means = difference + math.sqrt(0.8 / each) * rng.standard_normal(n)
        level = math.sqrt(0.02) * rng.standard_normal(people).mean()
        weight = 1 - n / judged
        estimates.append(level + (means - weight * known[:n]).mean() + weight * known[n:].mean())
    expected = VARIANCES.variance(n, each, people, judged)
    assert np.var(estimates) == pytest.approx(expected, rel=0.1)


def test_the_cheapest_study_is_the_cheapest_of_all() -> None:
    prices = Prices(rating=0.5, judge=0.01)
    found = cheapest_plan(VARIANCES, prices, available=150, reach=0.4)
    assert found is not None
    assert found.reach <= 0.4
    assert found.cost == pytest.approx(found.n_ratings * 0.5)
    helped = cheapest_plan(VARIANCES, prices, available=150, reach=0.4, with_judge=True)
    assert helped is not None
    assert helped.cost < found.cost
    assert helped.n_judged == 150


def test_a_budget_is_kept_and_more_buys_more() -> None:
    plans = [
        cheapest_plan(VARIANCES, Prices(rating=1.0), available=400, budget=budget)
        for budget in (60, 120, 240)
    ]
    reaches = [plan.reach for plan in plans if plan is not None]
    assert reaches == sorted(reaches, reverse=True)
    assert all(plan.cost <= budget for plan, budget in zip(plans, (60, 120, 240), strict=True) if plan)


def test_what_cannot_be_bought_is_none_and_what_makes_no_sense_is_refused() -> None:
    assert cheapest_plan(VARIANCES, Prices(rating=1.0), available=20, reach=0.01) is None
    with pytest.raises(ValueError, match="price"):
        cheapest_plan(VARIANCES, Prices(rating=0.0), available=20, reach=0.5)
    with pytest.raises(ValueError, match="either"):
        cheapest_plan(VARIANCES, Prices(rating=1.0), available=20)
