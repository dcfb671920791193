"""KNN-Shapley against full enumeration of subsets and against a plain loop."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.comparator.cmade import _kernels
from palaver.comparator.cmade._distances import distance_blocks
from palaver.comparator.cmade.shapley import knn_shapley, pair_values, signed_wins
from palaver.comparator.training_data import Pairs
from palaver.errors import DataError


def enumerate_shapley(train: np.ndarray, y: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    """The definition: every subset, with v(S) = 1/K sum over its nearest min(K, |S|)."""
    order = np.argsort(((train - query) ** 2).sum(axis=1), kind="stable")
    n = len(y)

    def worth(members: set[int]) -> float:
        return sum(y[i] for i in [i for i in order if i in members][:k]) / k

    values = np.zeros(n)
    for m in range(n):
        others = [i for i in range(n) if i != m]
        for size in range(n):
            for chosen in combinations(others, size):
                gain = worth({*chosen, m}) - worth(set(chosen))
                values[m] += gain / comb(n - 1, size) / n
    return values


def plain_recursion(train: np.ndarray, y: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    order = np.argsort(((train - query) ** 2).sum(axis=1), kind="stable")
    n = len(y)
    s = np.zeros(n)
    s[order[-1]] = y[order[-1]] / max(n, k)
    for i in range(n - 1, 0, -1):
        s[order[i - 1]] = s[order[i]] + (y[order[i - 1]] - y[order[i]]) / k * min(k, i) / i
    return s


def whole_points(seed: int, n: int, d: int) -> np.ndarray:
    """Whole numbers: distances are exact in float32, so that ties are ties."""
    return np.random.default_rng(seed).integers(-4, 5, (n, d)).astype(np.float32)


def as_pairs(rows: list[tuple[int, int, int]]) -> Pairs:
    first, second, label = np.array(rows).T
    return Pairs(first, second, label.astype(np.int8))


@pytest.mark.parametrize("k", range(1, 10))
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_the_closed_form_is_the_enumeration(n: int, k: int) -> None:
    train, query = whole_points(n, n, 2), whole_points(99 + k, 1, 2)
    y = np.random.default_rng(k).integers(1, 6, n).astype(float)
    got = knn_shapley(train, y, query, k=k)
    assert np.allclose(got, enumerate_shapley(train, y, query[0], k), atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 10**6), st.sampled_from([1, 2, 64]))
def test_pairs_are_the_difference_of_two_games(n: int, k: int, seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    train, dev = whole_points(seed, n, 3), whole_points(seed + 1, 4, 3)
    y = rng.normal(size=n)
    rows = [(0, 1, 1), (2, 1, -1), (0, 1, 1), (3, 2, -1)]
    expected = np.zeros(n)
    for p, q, label in rows:
        expected += label * (enumerate_shapley(train, y, dev[p], k) - enumerate_shapley(train, y, dev[q], k))
    pairs = as_pairs(rows)
    assert np.allclose(pair_values(train, y, dev, pairs, k=k, block=block), expected, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400), st.integers(1, 60), st.integers(0, 10**6))
def test_larger_sets_follow_the_recursion_and_add_up(n: int, k: int, seed: int) -> None:
    train, queries = whole_points(seed, n, 5), whole_points(seed + 1, 7, 5)
    rng = np.random.default_rng(seed)
    y, weights = rng.normal(size=n), rng.integers(-3, 4, 7).astype(float)
    got = knn_shapley(train, y, queries, weights, k=k, block=3)
    expected = sum(w * plain_recursion(train, y, q, k) for w, q in zip(weights, queries, strict=True))
    assert np.allclose(got, expected, atol=1e-11)
    # Shapley values share out v of the whole set: the rating the regressor gives.
    nearest = [np.argsort(((train - q) ** 2).sum(axis=1), kind="stable")[:k] for q in queries]
    assert np.isclose(got.sum(), sum(w * y[i].sum() / k for w, i in zip(weights, nearest, strict=True)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3000), st.sampled_from([0.0, 1e-3, 1.0, 1e6, 1e30]), st.integers(0, 10**6))
def test_the_radix_sort_is_a_stable_sort(n: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = (rng.choice([0.0, 1.0, 7.0]) + spread * rng.random(n) ** rng.choice([1, 8])).astype(np.float32)
    keys[rng.random(n) < 0.3] = keys[0]
    order = np.empty(n, np.uint32)
    _kernels.argsort_bits(
        keys.view(np.uint32), order, np.empty((2, n), np.uint64), np.empty((3, 4096), np.int64)
    )
    assert np.array_equal(order, np.argsort(keys, kind="stable"))


def test_distances_hold_far_from_the_origin() -> None:
    rng = np.random.default_rng(0)
    train = (rng.normal(size=(300, 64)) + 100).astype(np.float32)
    queries = (rng.normal(size=(70, 64)) + 100).astype(np.float32)
    for begin, distances in distance_blocks(train, queries, 64):
        exact = ((train.astype(float) - queries[begin : begin + 64, None].astype(float)) ** 2).sum(axis=2)
        assert np.abs(distances - exact).max() < 2e-2  # of about 128; without the centre it is above 0.1


def test_wins_are_counted_with_their_sign() -> None:
    assert signed_wins(as_pairs([(0, 1, 1), (0, 1, 1), (2, 0, 1)]), 4).tolist() == [1, -2, 1, 0]


def test_a_dialogue_that_wins_as_often_as_it_loses_counts_for_nothing() -> None:
    train, dev = whole_points(0, 20, 3), whole_points(1, 2, 3)
    assert not pair_values(train, np.arange(20.0), dev, as_pairs([(0, 1, 1), (0, 1, -1)])).any()


def test_misrated_dialogues_have_low_values() -> None:
    """Two clouds, good and bad; in the good one every fifth dialogue was given the lowest rating."""
    rng = np.random.default_rng(3)
    good = np.repeat([True, False], 100)
    place = np.where(good, 3.0, -3.0)[:, None]
    train, dev = place + rng.normal(size=(200, 4)), place[[0, -1]] + rng.normal(size=(2, 4))
    y = np.where(good, 5.0, 1.0)
    wrong = np.arange(0, 100, 5)
    y[wrong] = 1.0
    values = pair_values(train, y, dev, as_pairs([(0, 1, 1)]), k=10)
    right = np.setdiff1d(np.arange(100), wrong)
    assert values[wrong].mean() < 0 < values[right].mean()
    assert (values[wrong][:, None] < values[right]).mean() > 0.9
    # Where the scale begins does not matter: what it adds to one side of a pair it adds to the other.
    assert np.allclose(pair_values(train, y - 3, dev, as_pairs([(0, 1, 1)]), k=10), values)


def test_bad_input_is_refused() -> None:
    x, y = np.ones((3, 2)), np.ones(3)
    for call, text in [
        (lambda: knn_shapley(x, y, x, k=0), "k must be 1 or more"),
        (lambda: knn_shapley(x, y, x, block=0), "block must be 1 or more"),
        (lambda: knn_shapley(x, y[:2], x), "one number for each of 3"),
        (lambda: knn_shapley(x, y, np.ones((3, 5))), "5 dimensions, the training points have 2"),
        (lambda: knn_shapley(np.ones(3), y, x), "table of"),
        (lambda: pair_values(x, y, x, as_pairs([(0, 3, 1)])), "outside 0 .. 2"),
        (lambda: pair_values(x, y, x, as_pairs([(0, 1, 0)])), "must be 1"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    bad = x.copy()
    bad[1, 1] = np.nan
    for call, text in [
        (lambda: knn_shapley(np.ones((0, 2)), [], x), "is empty"),
        (lambda: knn_shapley(x, [1, np.nan, 2], x), "values must be finite: 1 of 3"),
        (lambda: knn_shapley(bad, y, x), "train must be finite .* the first at 1"),
        (lambda: knn_shapley(x, y, bad), "queries must be finite .* the first at"),
        (lambda: pair_values(x, y, x, Pairs(*np.zeros((3, 0), np.int64))), "no compared pairs"),
    ]:
        with pytest.raises(DataError, match=text):
            call()
