"""Normalisation: the definition by a loop as oracle, invariances, values without a logarithm or spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from palaver.statistics.normalise import NORMALISATIONS, normalise

SETTINGS = settings(max_examples=50, deadline=None)
rows = st.lists(st.tuples(st.integers(1, 999_999), st.sampled_from("abcd")), min_size=1, max_size=40)


def split(table):
    return np.array([v for v, _ in table], dtype=float), np.array([r for _, r in table])


def looped_z(values, raters):
    out = np.zeros(values.size)
    for rater in set(raters.tolist()):
        mine = raters == rater
        if np.unique(values[mine]).size > 1:
            out[mine] = stats.zscore(values[mine], ddof=1)
    return out


def test_magnitude_estimation_as_the_paper_explains_it():
    # Novikova et al. 2018, section 3: twice as good as the reference is 200 for a reference of 100
    result = normalise([200, 50, 100], None, "ratio", reference=100)
    assert result.values.tolist() == [2.0, 0.5, 1.0]
    assert normalise([200, 50], None, "ratio", reference=[50, 200]).values.tolist() == [4.0, 0.25]


def test_worked_z_scores():
    # a: mean 4, squares 4 + 0 + 4, sd 2; b: mean 15, sd sqrt(50)
    result = normalise([2, 10, 4, 20, 6], ["a", "b", "a", "b", "a"], "z")
    half = math.sqrt(0.5)
    assert result.values == pytest.approx([-1, -half, 0, half, 1])
    assert (result.n_raters, result.dropped, result.notes) == (2, 0, ())


@SETTINGS
@given(table=rows)
def test_equals_a_loop_over_raters(table):
    values, raters = split(table)
    assert normalise(values, raters, "z").values == pytest.approx(looped_z(values, raters), abs=1e-9)
    logs = np.log(values)
    assert normalise(values, raters, "log-z").values == pytest.approx(looped_z(logs, raters), abs=1e-9)
    assert normalise(values, raters, "log").values.tolist() == logs.tolist()
    assert normalise(values, raters, "raw").values.tolist() == values.tolist()


@SETTINGS
@given(table=rows, seed=st.integers(0, 99))
def test_invariances(table, seed):
    values, raters = split(table)
    order = np.random.default_rng(seed).permutation(values.size)
    for method in ("z", "log-z"):
        base = normalise(values, raters, method)
        assert normalise(values[order], raters[order], method).values == pytest.approx(
            base.values[order], abs=1e-9
        )
        renamed = np.array(["dbca".index(r) * 100 - 7 for r in raters])  # other names, integers, other order
        assert normalise(values, renamed, method).values == pytest.approx(base.values, abs=1e-9)
    factor = np.array([{"a": 1.0, "b": 10.0, "c": 0.5, "d": 3.0}[r] for r in raters])
    # a rater's own unit of measurement leaves no trace, which is what the normalisation is for
    assert normalise(values * factor, raters, "z").values == pytest.approx(
        normalise(values, raters, "z").values, abs=1e-6
    )
    assert normalise(values * factor, raters, "log-z").values == pytest.approx(
        normalise(values, raters, "log-z").values, abs=1e-4
    )


@pytest.mark.parametrize("method", ["log", "log-z"])
def test_values_without_a_logarithm_become_nan_and_are_counted(method):
    result = normalise([1, 0, -3, np.nan, np.inf, 8], ["a"] * 6, method)
    assert np.isnan(result.values).tolist() == [False, True, True, True, True, False]
    assert result.dropped == 4
    assert result.notes == ("2 missing or infinite values", "2 values of zero or below")
    clean = normalise([1, 8], ["a", "a"], method)
    assert result.values[[0, 5]].tolist() == clean.values.tolist()


def test_raw_and_z_keep_zero_and_negative_values():
    assert normalise([0, -3, np.nan], None, "raw").values == pytest.approx([0, -3, np.nan], nan_ok=True)
    assert normalise([0, -2], ["a", "a"], "z").dropped == 0


def test_ratio_counts_unusable_rows_once():
    result = normalise([10, 0, 30, 40, np.nan], None, "ratio", reference=[5, 5, 0, np.nan, -1])
    assert result.values == pytest.approx([2, np.nan, np.nan, np.nan, np.nan], nan_ok=True)
    assert result.dropped == 4
    assert result.notes[-1] == "3 rows whose reference is not positive"


@pytest.mark.parametrize("method", ["z", "log-z"])
def test_raters_without_spread_sit_at_their_own_mean(method):
    value, rater = [0.1, 0.1, 0.1, 7, 1, 2, np.nan], ["flat", "flat", "flat", "single", "c", "c", "gone"]
    result = normalise(value, rater, method)
    assert result.values[:4].tolist() == [0.0] * 4
    assert np.abs(result.values[4:6]) == pytest.approx(math.sqrt(0.5))
    assert math.isnan(result.values[6])
    assert result.n_raters == 3
    assert result.notes[1:] == (
        "1 raters with fewer than two values: z is 0",
        "1 raters who gave one value throughout: z is 0",
    )


@pytest.mark.parametrize("method", NORMALISATIONS)
def test_empty_and_all_missing(method):
    reference = 100 if method == "ratio" else None
    assert normalise([], [], method, reference=reference).values.size == 0
    lost = normalise([np.nan, np.nan], ["a", "b"], method, reference=reference)
    assert np.isnan(lost.values).all()
    assert lost.dropped == 2


def test_the_input_is_left_alone():
    value = np.array([1.0, 0.0, 4.0])
    normalise(value, ["a"] * 3, "log-z")
    assert value.tolist() == [1, 0, 4]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: normalise([1], ["a"], "logz"), "raw, log, z, log-z, ratio"),
        (lambda: normalise([[1]], ["a"], "raw"), "1-D"),
        (lambda: normalise([1, 2], ["a"], "z"), "each of 2 values"),
        (lambda: normalise([1, 2], None, "log-z"), "found none"),
        (lambda: normalise([1, 2], None, "ratio"), "reference goes with"),
        (lambda: normalise([1, 2], None, "log", reference=100), "reference goes with"),
        (lambda: normalise([1, 2], None, "ratio", reference=0), "positive"),
        (lambda: normalise([1, 2], None, "ratio", reference=[1, 2, 3]), "one per value"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_values_too_small_to_have_a_variance_have_no_z(recwarn):
    result = normalise([5e-324, 1e-323, 5e-324], [0, 0, 0], "z")
    assert result.values.tolist() == [0.0, 0.0, 0.0]
    assert not recwarn.list
