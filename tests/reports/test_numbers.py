"""How numbers are written."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.reports import numbers

NAN = float("nan")


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(numbers).failed == 0


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_undefined_is_a_dash_never_zero(value: float) -> None:
    for write in (numbers.number, numbers.statistic, numbers.percent, numbers.seconds, numbers.hundred):
        assert write(value) == numbers.DASH
    assert numbers.p_value(NAN) == numbers.DASH


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<.001"), (0.00099, "<.001"), (0.001, ".001"), (0.05, ".050"), (0.9999, ">.999"), (1.0, "1.000")],
)
def test_p_values(p: float, text: str) -> None:
    assert numbers.p_value(p) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.1, 0.2, "[0.10, 0.20]"), (-0.3, 0.2, "[−0.30, 0.20]"), (NAN, 0.2, "[–, 0.20]"), (NAN, NAN, "")],
)
def test_intervals(low: float, high: float, text: str) -> None:
    assert numbers.interval(low, high) == text


def test_a_coefficient_close_to_one_is_not_shown_as_one() -> None:
    assert numbers.statistic(0.9961) == "0.996"
    assert numbers.statistic(-0.0031) == "−0.003"


@given(st.floats(-1e6, 1e6), st.integers(0, 4))
@settings(max_examples=50, deadline=None)
def test_number_reads_back_to_the_rounded_value(value: float, digits: int) -> None:
    text = numbers.number(value, digits)
    back = float(text.replace("−", "-").replace(",", ""))
    assert back == pytest.approx(value, abs=0.5000001 * 10**-digits)
    assert back != 0 or "−" not in text


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9))
@settings(max_examples=50, deadline=None)
def test_decimals_show_two_digits_of_the_middle_value(widths: list[float]) -> None:
    digits = numbers.decimals(widths)
    middle = sorted(widths)[len(widths) // 2]
    assert 0 <= digits <= 4
    assert digits == 4 or middle * 10**digits >= 9.999


def test_decimals_of_nothing() -> None:
    assert numbers.decimals([]) == numbers.decimals([NAN, 0.0]) == 2


def test_seconds_percent_count() -> None:
    assert [numbers.seconds(s) for s in (0.42, 42.4, 299, 3600)] == ["0.4 s", "42 s", "299 s", "60 min"]
    assert [numbers.percent(s) for s in (0, 0.004, 0.5, 0.996, 1)] == ["0%", "0.4%", "50%", "99.6%", "100%"]
    assert numbers.count(1234567) == "1,234,567"
    assert numbers.some(2, "criterion", "criteria") == "2 criteria"
