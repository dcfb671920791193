"""Confidence sequences: the capital by hand, what they decide, and that looking often does no harm."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.statistics.clusters import clustered_difference, clustered_mean
from palaver.statistics.sequences import (
    FIRST_LOOK,
    betting_sequence,
    clustered_look,
    decide,
    widening,
)


def slow_capital(x: np.ndarray, mean: float, alpha: float) -> float:
    """The larger of the two halves of the hedged capital after all of x, bet by bet."""
    up = down = 1.0
    for t in range(1, x.size + 1):
        before = x[: t - 1]
        running = [(0.5 + before[: i + 1].sum()) / (i + 2) for i in range(before.size)]
        variance = (0.25 + sum((b - r) ** 2 for b, r in zip(before, running, strict=True))) / t
        bet = math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(t + 1)))
        up *= 1 + min(bet, 0.5 / mean) * (x[t - 1] - mean)
        down *= 1 - min(bet, 0.5 / (1 - mean)) * (x[t - 1] - mean)
    return max(up, down) / 2


def test_the_bounds_are_where_the_capital_reaches_one_over_alpha() -> None:
    x = np.random.default_rng(0).random(40)
    low, high = (ends[-1] for ends in betting_sequence(x, lowest=0, highest=1))
    for mean in np.linspace(0.02, 0.98, 49):
        lost = any(slow_capital(x[:t], mean, 0.05) >= 20 for t in range(1, 41))
        if lost:
            assert not low + 0.002 < mean < high - 0.002
        else:
            assert low <= mean <= high


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(-5, 5), st.floats(0.5, 20))
def test_betting_bounds_shrink_and_follow_the_scale(seed: int, lowest: float, span: float) -> None:
    x = np.random.default_rng(seed).random(30)
    low, high = betting_sequence(x, lowest=0, highest=1)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) <= 0).all()
    scaled = betting_sequence(lowest + span * x, lowest=lowest - 1e-9, highest=lowest + span + 1e-9)
    assert scaled[0] == pytest.approx(lowest + span * low, abs=1e-6 * span)


def test_betting_finds_a_difference_and_refuses_what_is_no_scale() -> None:
    x = np.random.default_rng(1).choice([0.4, 0.8, 1.0], 200)
    low, _ = betting_sequence(x, lowest=0, highest=1)
    assert low[-1] > 0.5
    with pytest.raises(ValueError, match="between 0 and 1"):
        betting_sequence([2.0], lowest=0, highest=1)
    with pytest.raises(ValueError, match="below highest"):
        betting_sequence([1.0], lowest=1, highest=1)


def test_decisions() -> None:
    assert decide(0.1, 0.5, None) == "better"
    assert decide(-0.5, -0.1, 0.2) == "worse"
    assert decide(-0.1, 0.15, 0.2) == "equivalent"
    assert decide(-0.1, 0.25, 0.2) == "go on"
    assert decide(-0.1, 0.1, None) == "go on"
    assert decide(math.nan, math.nan, 1.0) == "go on"


def test_the_widening_is_robbins_mixture_and_least_near_the_plan() -> None:
    log = -2 * math.log(0.05)
    rho2 = (log + math.log(log) + 1) / 100
    scale = 40 * rho2
    expected = math.sqrt((2 * (scale + 1) / scale) * math.log(math.sqrt(scale + 1) / 0.05))
    assert widening(40, 0.05, 100) == pytest.approx(expected)
    assert min(range(10, 1000, 10), key=lambda planned: widening(100, 0.05, planned)) in range(70, 140)
    assert widening(100, 0.05, 100) > 1.96


def paired(n: int, gap: float = 0.0, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    dialogue, rater = np.repeat(np.arange(n), 3), rng.integers(0, 6, 3 * n)
    value = np.c_[gap + rng.standard_normal(3 * n), rng.standard_normal(3 * n)].ravel()
    is_first = np.tile([True, False], 3 * n)
    return value, is_first, np.repeat(dialogue, 2), np.repeat(rater, 2)


def test_a_look_is_longer_than_the_interval_of_one_look() -> None:
    data = paired(30)
    look = clustered_look(*data, planned=30)
    once = clustered_difference(*data)
    assert look.value == pytest.approx(once.value)
    assert look.low < once.low
    assert look.high > once.high


def test_a_mean_of_differences_is_a_look_too() -> None:
    value, _, dialogue, rater = paired(30, gap=1.0)
    look = clustered_look(value, None, dialogue, rater, planned=30)
    assert look.value == pytest.approx(clustered_mean(value, dialogue, rater).value)


def test_too_early_and_too_few_raters_are_said() -> None:
    early = clustered_look(*paired(FIRST_LOOK - 1, gap=9.0), planned=100)
    assert early.decision == "go on"
    assert "first look" in early.reason
    value, is_first, dialogue, rater = paired(30, gap=9.0)
    two = clustered_look(value, is_first, dialogue, rater % 2, planned=30)
    assert two.decision == "go on"
    assert "2 raters" in two.reason
    flat = clustered_look(np.full(180, 3.0), is_first, dialogue, rater, planned=30)
    assert "all ratings are equal" in flat.reason


def test_watched_after_every_dialogue_equal_systems_are_seldom_told_apart() -> None:
    """The short form of the grid in docs/results/trust.json: at most 1 of 30 studies here."""
    alarms = 0
    for seed in range(30):
        value, is_first, dialogue, rater = paired(30, seed=seed)
        looks = (
            clustered_look(value[:m], is_first[:m], dialogue[:m], rater[:m], planned=30)
            for m in range(6 * FIRST_LOOK, 181, 12)
        )
        alarms += any(look.decision != "go on" for look in looks)
    assert alarms <= 1


def test_a_judge_decides_earlier() -> None:
    rng = np.random.default_rng(5)
    quality = 0.5 * np.array([[1.0, 0.0]]) + rng.standard_normal((60, 2))
    judge = quality + 0.2 * rng.standard_normal((60, 2))
    dialogue = np.repeat(np.arange(60), 3)
    value = (quality[dialogue] + 0.4 * rng.standard_normal((180, 2))).ravel()
    rows = (np.tile([True, False], 180), np.repeat(dialogue, 2), np.repeat(rng.integers(0, 6, 180), 2))
    half = 180
    first = [array[:half] for array in rows]
    alone = clustered_look(value[:half], *first, planned=60)
    helped = clustered_look(
        value[:half], *first, planned=60, prediction=judge[dialogue].ravel()[:half],
        unrated=(judge[:, 0] - judge[:, 1])[30:],
    )  # fmt: skip
    assert helped.high - helped.low < alone.high - alone.low


ORACLE = json.loads((Path(__file__).parents[1] / "data/confseq.json").read_text())
"""Written by experiments/trust/confseq_oracle.py with confseq 0.0.11."""


def test_bets_are_those_of_confseq() -> None:
    data = ORACLE["betting"]
    low, high = betting_sequence(data["values"], lowest=0, highest=1, alpha=ORACLE["alpha"])
    assert low == pytest.approx(np.array(data["low"]), abs=1e-9)
    assert high == pytest.approx(np.array(data["high"]), abs=1e-9)


@pytest.mark.parametrize(
    "case", ORACLE["normal_mixture"], ids=lambda case: f"{case['n']} of {case['planned']}"
)
def test_the_widening_is_confseqs_normal_mixture(case: dict[str, float]) -> None:
    reach = widening(case["n"], ORACLE["alpha"], case["planned"]) * math.sqrt(case["n"])
    assert reach == pytest.approx(case["bound"], rel=1e-9)
