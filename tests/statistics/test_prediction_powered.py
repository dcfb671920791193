"""Prediction-powered inference against ppi-python's values, and what clusters and a bad judge change."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from palaver.statistics import prediction_powered_pairs as pairs_module
from palaver.statistics.clusters import clustered_mean
from palaver.statistics.prediction_powered import prediction_powered_mean
from palaver.statistics.prediction_powered_pairs import Comparisons, Verdicts, prediction_powered_strengths

ORACLE = json.loads((Path(__file__).parents[1] / "data/ppi_python.json").read_text())


@pytest.mark.parametrize("case", ORACLE["mean"]["results"], ids=lambda case: f"weight {case['weight']}")
def test_the_mean_is_that_of_ppi_python(case: dict[str, float]) -> None:
    """Its intervals are normal and divide by n; ours are those of t and divide by n - 1."""
    data = ORACLE["mean"]
    people, rated, unrated = (np.array(data[name]) for name in ("people", "rated", "unrated"))
    n, n_unrated = people.size, unrated.size
    found = prediction_powered_mean(people, rated, np.arange(n), None, unrated, weight=case["weight"])
    assert found.together.value == pytest.approx(case["estimate"])
    low, high = case["interval"]
    theirs = (high - low) / 2 / stats.norm.ppf(0.975)
    parts = (
        np.var(people - case["weight"] * rated) / n,
        case["weight"] ** 2 * np.var(unrated) / n_unrated,
    )
    assert theirs**2 == pytest.approx(sum(parts))
    ours = parts[0] * n / (n - 1) + parts[1] * n_unrated / (n_unrated - 1)
    assert found.together.se**2 == pytest.approx(ours)


def test_the_tuned_weight_is_that_of_ppi_python_but_for_pooling() -> None:
    data = ORACLE["mean"]
    people, rated, unrated = (np.array(data[name]) for name in ("people", "rated", "unrated"))
    found = prediction_powered_mean(people, rated, np.arange(people.size), None, unrated)
    assert found.together.value == pytest.approx(data["tuned"], abs=0.02)
    assert found.weight == pytest.approx(0.25, abs=0.15)
    assert found.worth_dialogues > 0
    assert found.ceiling == pytest.approx(1 / (1 - found.correlation**2))


def design(rows: str) -> pairs_module._Design:
    data, ending = ORACLE["pairs"], "_unrated" if rows == "unrated" else ""
    first, second = np.array(data[f"systems{ending}"]).T
    x = np.c_[pairs_module._columns(first, second, 3), data[f"position{ending}"]]
    verdict = np.array(data[f"verdict{ending}"])
    won = np.array(data["won"]) if rows == "rated" else verdict
    share = np.full(len(x), 1 / len(x))
    return pairs_module._Design(x, won, verdict, np.arange(len(x)), None, 3, share)


@pytest.mark.parametrize("case", ORACLE["pairs"]["results"], ids=lambda case: f"weight {case['weight']}")
def test_strengths_and_position_are_those_of_ppi_python(case: dict[str, list[float]]) -> None:
    rated, unrated = design("rated"), design("unrated")
    theta = pairs_module._solve(rated, unrated, case["weight"])
    assert theta == pytest.approx(np.array(case["estimate"]), abs=1e-4)
    found = pairs_module._pair(rated, unrated, theta, case["weight"], (0, 2), 0.95)
    width = (case["high"][0] - case["low"][0]) / 2 / stats.norm.ppf(0.975)
    assert found.value == pytest.approx(case["estimate"][0], abs=1e-4)
    assert found.se == pytest.approx(width, rel=0.05)  # its Hessian is that of all rows


def two_way_data(
    n: int = 40, n_unrated: int = 300, noise: float = 0.6, seed: int = 0
) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    quality = rng.standard_normal(n + n_unrated)
    judge = quality + noise * rng.standard_normal(quality.size)
    dialogue, rater = np.repeat(np.arange(n), 4), np.tile(np.arange(4), n)
    people = quality[dialogue] + 0.4 * rng.standard_normal(4)[rater] + 0.5 * rng.standard_normal(4 * n)
    return people, judge[dialogue], dialogue, rater, judge[n:]


def test_a_good_judge_makes_it_more_certain_and_a_bad_one_is_left_out() -> None:
    people, judge, dialogue, rater, unrated = two_way_data()
    good = prediction_powered_mean(people, judge, dialogue, rater, unrated)
    assert good.together.se < good.people.se
    assert good.people == clustered_mean(people, dialogue, rater)
    shuffled = np.random.default_rng(1).permutation(40)
    bad = prediction_powered_mean(people, judge[::4][shuffled][dialogue], dialogue, rater, unrated)
    assert bad.weight == 0
    assert "correlation with people" in bad.reason_off
    assert bad.together == bad.people
    assert bad.worth_dialogues == 0


def test_another_unit_of_the_judge_changes_nothing() -> None:
    people, judge, dialogue, rater, unrated = two_way_data()
    plain = prediction_powered_mean(people, judge, dialogue, rater, unrated)
    other = prediction_powered_mean(people, 100 + 7 * judge, dialogue, rater, 100 + 7 * unrated)
    assert other.together.value == pytest.approx(plain.together.value)
    assert other.together.se == pytest.approx(plain.together.se)
    assert other.weight == pytest.approx(plain.weight / 7)


def test_a_difference_of_systems() -> None:
    people, judge, dialogue, rater, unrated = two_way_data()
    half = people.size // 2
    second = np.arange(people.size) >= half
    shared = np.r_[dialogue[:half], dialogue[:half]]
    raters = np.r_[rater[:half], rater[:half]]
    found = prediction_powered_mean(people, judge, shared, raters, unrated, is_second=second)
    assert found.people.value == pytest.approx(people[:half].mean() - people[half:].mean())


@pytest.mark.parametrize(
    ("people", "judge", "unrated", "why"),
    [
        ([1.0, 2, 3, 4, 5, 6], [2.0] * 6, [1.0, 2.0, 3.0], "same score"),
        ([3.0] * 6, [1.0, 2, 3, 4, 5, 6], [1.0, 2.0, 3.0], "same rating"),
        ([1.0, 2, 3, 4], [1.0, 2, 3, 4], [1.0, 2.0], "4 dialogues in common"),
        ([1.0, 2, 3, 4, 5, 6], [1.0, 2, 3, 4, 5, 7], [], "adds nothing"),
    ],
)
def test_why_a_judge_is_left_out(
    people: list[float], judge: list[float], unrated: list[float], why: str
) -> None:
    found = prediction_powered_mean(people, judge, np.arange(len(people)), None, unrated)
    assert why in found.reason_off
    assert found.weight == 0


def comparisons(seed: int = 0, n: int = 60) -> tuple[Comparisons, Verdicts]:
    rng = np.random.default_rng(seed)
    strength = np.array([0.8, 0.0, -0.5])

    def draw(n_dialogues: int) -> tuple[np.ndarray, ...]:
        dialogue = np.repeat(np.arange(n_dialogues), 3)
        first, second = np.tile([0, 0, 1], n_dialogues), np.tile([1, 2, 2], n_dialogues)
        chance = 1 / (1 + np.exp(-(strength[first] - strength[second])))
        return dialogue, first, second, chance

    dialogue, first, second, chance = draw(n)
    won = rng.choice([0.0, 0.5, 1.0], chance.size, p=None)
    won = np.where(rng.random(chance.size) < 0.15, 0.5, (rng.random(chance.size) < chance).astype(float))
    judge = np.where(rng.random(chance.size) < 0.75, won, 1 - won)
    position = rng.choice([-1.0, 1.0], chance.size)
    rows = Comparisons(first, second, won, judge, dialogue, rng.integers(0, 6, chance.size), position)
    dialogue, first, second, chance = draw(300)
    return rows, Verdicts(first, second, (rng.random(chance.size) < chance).astype(float), dialogue + n)


def test_strengths_with_ties_positions_and_a_judge() -> None:
    found = prediction_powered_strengths(*comparisons(), ["a", "b", "c"])
    assert sum(found.strength) == pytest.approx(0)
    assert [(pair.first, pair.second) for pair in found.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert 0 < found.weight <= 1
    assert abs(found.position) < 0.6
    for pair in found.pairs:
        assert pair.interval.se < pair.people.se
        assert pair.adjusted_p >= pair.interval.p
    assert found.strength[0] > found.strength[2]


def test_a_system_that_lost_everything_has_no_strength() -> None:
    rows, verdicts = comparisons()
    lost = Comparisons(
        rows.first, rows.second, np.where(rows.second == 2, 1.0, rows.won), rows.prediction, rows.dialogue,
        rows.rater, rows.position,
    )  # fmt: skip
    found = prediction_powered_strengths(lost, verdicts, ["a", "b", "c"])
    assert "won or lost" in found.reason
    assert all(math.isnan(x) for x in found.strength)


def test_with_equal_probabilities_a_sample_is_what_it_is_without_them() -> None:
    people, judge, dialogue, rater, unrated = two_way_data()
    plain = prediction_powered_mean(people, judge, dialogue, rater, unrated)
    drawn = prediction_powered_mean(
        people, judge, dialogue, rater, unrated, sampling=np.full(people.size, 0.1)
    )
    assert drawn.people == plain.people
    assert drawn.together.value == pytest.approx(plain.together.value, abs=0.02)
    assert drawn.together.se == pytest.approx(plain.together.se, rel=0.03)
    assert drawn.together.n_dialogues == plain.together.n_dialogues

    rows, verdicts = comparisons()
    equal = dataclasses.replace(rows, sampling=np.full(rows.won.size, 0.2))
    everything = Verdicts(
        np.r_[rows.first, verdicts.first], np.r_[rows.second, verdicts.second],
        np.r_[rows.prediction, verdicts.prediction], np.r_[rows.dialogue, verdicts.dialogue],
    )  # fmt: skip
    together = prediction_powered_strengths(rows, verdicts, "abc")
    sampled = prediction_powered_strengths(equal, everything, "abc")
    assert sampled.n_unrated == together.n_unrated
    for a, b in zip(together.pairs, sampled.pairs, strict=True):
        assert b.people.se == pytest.approx(a.people.se)
        assert b.interval.value == pytest.approx(a.interval.value, abs=0.05)
        assert b.interval.se == pytest.approx(a.interval.se, rel=0.1)


def test_probabilities_put_right_what_unequal_drawing_shifts() -> None:
    """Good dialogues are drawn four times as often: the mean of the rated ones is too high."""
    rng = np.random.default_rng(3)
    quality = rng.standard_normal(4000)
    judge = quality + 0.5 * rng.standard_normal(quality.size)
    chance = np.where(quality > 0, 0.2, 0.05)
    drawn = rng.random(quality.size) < chance
    rated = np.flatnonzero(drawn)
    given = (quality[rated], judge[rated], np.arange(rated.size), None, judge[~drawn])
    naive = prediction_powered_mean(*given)
    right = prediction_powered_mean(*given, sampling=chance[rated])
    assert not naive.together.low <= quality.mean() <= naive.together.high
    assert right.together.low <= quality.mean() <= right.together.high
    assert right.together.se < right.people.se
