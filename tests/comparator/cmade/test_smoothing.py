"""Nearest neighbours and smoothed ratings against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.comparator.cmade.smoothing import nearest, smooth
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
    assert np.array_equal(nearest(train, queries, k, block=block), sorted_neighbours(train, queries)[:, :k])


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 80), st.integers(1, 100), st.integers(0, 10**6))
def test_smoothing_is_the_mean_of_the_nearest(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 10, (n, 4)).astype(np.float32)
    y = rng.integers(1, 6, n).astype(float)
    assert np.allclose(smooth(x, y, k=k), y[sorted_neighbours(x, x)[:, :k]].mean(axis=1))


def test_more_neighbours_than_dialogues_make_all_ratings_exactly_equal() -> None:
    x = np.random.default_rng(0).normal(size=(7, 3))
    smoothed = smooth(x, [0.1, 0.2, 0.3, 0.7, 1.1, 1.3, 2.9], k=50)
    assert len(set(smoothed.tolist())) == 1


def test_bad_input_is_refused() -> None:
    x = np.ones((3, 2))
    for call, text in [
        (lambda: nearest(x, x, 0), "k must be 1 or more"),
        (lambda: smooth(x, [1, 2, 3], k=0), "k must be 1 or more"),
        (lambda: smooth(x, [1, 2]), "one number for each of 3"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
    for call, text in [
        (lambda: smooth(x, [1, np.nan, 3]), "ratings must be finite"),
        (lambda: smooth(x * np.inf, [1, 2, 3]), "must be finite"),
        (lambda: smooth(np.ones((0, 2)), []), "empty"),
    ]:
        with pytest.raises(DataError, match=text):
            call()
