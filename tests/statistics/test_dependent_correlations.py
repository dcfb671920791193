"""Tests between two judges: swaps beside listing all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from palaver.statistics.dependent_correlations import swap_tests


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
