"""Codes without gaps, and the distinct values of a column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.statistics.codes import dense_codes, distinct_values


@given(codes=st.lists(st.integers(-50, 50) | st.integers(10**9, 10**9 + 5), max_size=30))
def test_dense_codes_are_those_of_unique(codes: list[int]) -> None:
    array = np.array(codes, dtype=np.int64)
    dense, n = dense_codes("item", array)
    distinct, expected = np.unique(array, return_inverse=True)
    assert dense.tolist() == expected.tolist()
    assert n == distinct.size


def test_codes_are_whole_numbers() -> None:
    with pytest.raises(ValueError, match="item must hold integer codes"):
        dense_codes("item", np.array([0.5]))


@given(values=st.lists(st.integers(-5, 9).map(float) | st.floats(-3, 3), min_size=1, max_size=30))
def test_distinct_values_are_those_of_unique(values: list[float]) -> None:
    array = np.array(values)
    distinct, code = distinct_values(array)
    assert distinct.tolist() == np.unique(array).tolist()
    assert np.array_equal(distinct[code], array)
