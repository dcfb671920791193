"""Tests between two judges: Williams by formula and simulation, swaps beside listing all of them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import t as student

from palaver.statistics.dependent_correlations import swap_tests, williams_test


def test_williams_by_the_formula():
    a, b, between, n = 0.5, 0.4, 0.6, 100
    k = 1 - a**2 - b**2 - between**2 + 2 * a * b * between
    statistic = (a - b) * math.sqrt(
        ((n - 1) * (1 + between)) / (2 * k * (n - 1) / (n - 3) + ((a + b) ** 2 / 4) * (1 - between) ** 3)
    )
    result = williams_test(a, b, between, n)
    assert result.statistic == pytest.approx(statistic)
    assert result.p == pytest.approx(2 * student.sf(abs(statistic), n - 3))


def test_williams_rejects_as_often_as_it_says():
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(600):
        people = rng.normal(size=40)
        a, b = people + rng.normal(size=40), people + rng.normal(size=40)
        r = np.corrcoef([people, a, b])
        rejected += williams_test(r[0, 1], r[0, 2], r[1, 2], 40).p < 0.05
    assert 0.03 < rejected / 600 < 0.075


def test_williams_says_why_it_cannot():
    assert "4 items" in williams_test(0.1, 0.2, 0.3, 3).reason
    assert "undefined" in williams_test(math.nan, 0.2, 0.3, 30).reason
    same = williams_test(0.5, 0.5, 1.0, 30)
    assert same.p == 1.0
    assert same.reason


def test_swaps_are_those_of_whole_items():
    rng = np.random.default_rng(3)
    item = np.repeat(np.arange(6), 2)
    people = rng.normal(size=12)
    judges = np.array([people + rng.normal(size=12) * 0.4, rng.normal(size=12)])
    standard = (judges - judges.mean(axis=1, keepdims=True)) / judges.std(axis=1, keepdims=True)

    def difference(a, b):
        return np.corrcoef(people, a)[0, 1] - np.corrcoef(people, b)[0, 1]

    observed = difference(*standard)
    drawn = []
    for swap in product([False, True], repeat=6):
        moved = np.array(swap)[item]
        drawn.append(
            difference(np.where(moved, standard[1], standard[0]), np.where(moved, standard[0], standard[1]))
        )
    exact = np.mean(np.abs(drawn) >= abs(observed) - 1e-12)
    differences, p = swap_tests(people, judges, item, n_permutations=4000, rng=0)
    assert differences[0, 1] == pytest.approx(observed)
    assert differences[1, 0] == pytest.approx(-observed)
    assert p[0, 1] == pytest.approx(exact, abs=0.03)


def test_equal_judges_cannot_be_told_apart():
    rng = np.random.default_rng(0)
    people = rng.normal(size=30)
    one = people + rng.normal(size=30)
    _, p = swap_tests(people, [one, one], np.arange(30), n_permutations=100, rng=0)
    assert p[0, 1] == 1.0
