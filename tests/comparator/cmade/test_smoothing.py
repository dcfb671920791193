"""Nearest neighbours and smoothed ratings against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.comparator.cmade.smoothing import nearest, rating_pairs, smooth
from palaver.errors import DataError


def sorted_neighbours(train: np.ndarray, queries: np.ndarray) -> np.ndarray:
    gaps = ((queries[:, None].astype(float) - train[None]) ** 2).sum(axis=2)
    return np.argsort(gaps, axis=1, kind="stable")


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 200), st.integers(1, 40), st.integers(0, 10**6), st.sampled_from([1, 5, 64]))
def test_nearest_is_the_head_of_a_stable_sort(n: int, k: int, seed: int, block: int) -> None:
    rng = np.random.default_rng(seed)
    train = rng.integers(-3, 4, (n, 3)).astype(np.float32)  # whole numbers: many exact ties
    queries = rng.integers(-3, 4, (9, 3)).astype(np.float32)
    found, distances = nearest(train, queries, k, block=block)
    expected = sorted_neighbours(train, queries)[:, :k]
    assert found.dtype == np.int32
    assert np.array_equal(found, expected)
    exact = np.sqrt(((queries[:, None] - train[expected]) ** 2).sum(axis=2))
    assert np.allclose(distances, exact, atol=1e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 80), st.integers(1, 100), st.integers(0, 10**6), st.booleans())
def test_smoothing_is_the_mean_of_the_nearest(n: int, k: int, seed: int, include_self: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 10, (n, 4)).astype(np.float32)
    y = rng.integers(1, 6, n).astype(float)
    order = sorted_neighbours(x, x)
    if not include_self:
        wider = order[:, : k + 1]  # a copy of the dialogue may stand before it, or push it out
        order = np.stack([[j for j in [*row, -1] if j != i][: min(k, n - 1)] for i, row in enumerate(wider)])
    once = y[order[:, :k]].mean(axis=1)
    assert np.allclose(smooth(x, y, k=k, include_self=include_self), once)
    twice = once[order[:, :k]].mean(axis=1)
    assert np.allclose(smooth(x, y, k=k, rounds=2, include_self=include_self), twice)


def test_more_neighbours_than_dialogues_make_all_ratings_exactly_equal() -> None:
    x = np.random.default_rng(0).normal(size=(7, 3))
    smoothed = smooth(x, [0.1, 0.2, 0.3, 0.7, 1.1, 1.3, 2.9], k=50)
    assert len(set(smoothed.tolist())) == 1
    with pytest.raises(DataError, match="nothing to compare"):
        rating_pairs(smoothed, 10, 0)


def test_pairs_from_ratings_drop_equal_ones() -> None:
    y = np.array([1.0, 1.0, 1.0, 2.0, 3.0])
    pairs = rating_pairs(y, 5000, 0)
    assert len(pairs.label) == 5000
    assert np.array_equal(np.sign(y[pairs.first] - y[pairs.second]), pairs.label)
    # 3 of the 10 pairs are equal: 5000 / 0.7 draws
    assert abs(pairs.dropped["equal ratings"] - 5000 * 3 / 7) < 200
    again = rating_pairs(y, 5000, 0)
    assert np.array_equal(pairs.first, again.first)
    assert np.array_equal(pairs.second, again.second)
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == {
        (i, j) for i in range(5) for j in range(5) if y[i] != y[j]
    }


def test_bad_input_is_refused() -> None:
    x = np.ones((3, 2))
    for call, text in [
        (lambda: nearest(x, x, 0), "k must be 1 or more"),
        (lambda: smooth(x, [1, 2, 3], k=0), "k must be 1 or more"),
        (lambda: smooth(x, [1, 2, 3], rounds=0), "rounds must be 1 or more"),
        (lambda: smooth(x, [1, 2]), "one number for each of 3"),
        (lambda: rating_pairs([1, 2], 0, 0), "n_pairs must be 1 or more"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    for call, text in [
        (lambda: smooth(x, [1, np.nan, 3]), "ratings must be finite"),
        (lambda: smooth(x * np.inf, [1, 2, 3]), "must be finite"),
        (lambda: smooth(np.ones((0, 2)), []), "empty"),
        (lambda: smooth(x[:1], [1], include_self=False), "needs two dialogues"),
        (lambda: rating_pairs([], 5, 0), "nothing to compare"),
    ]:
        with pytest.raises(DataError, match=text):
            call()
