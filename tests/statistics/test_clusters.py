"""Intervals clustered by dialogue and rater: by hand, by ANOVA, and in simulated studies with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from palaver.statistics.clusters import clustered_difference, clustered_mean, contrast


def crossed(n_dialogues: int, n_raters: int) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(n_dialogues), n_raters), np.tile(np.arange(n_raters), n_dialogues)


def test_a_balanced_design_is_the_textbook_anova() -> None:
    """Var(mean) = (MS dialogues + MS raters - MS rest) / (D R), with Satterthwaite's degrees of freedom."""
    rng = np.random.default_rng(3)
    n, k = 9, 5
    table = 0.8 * rng.standard_normal((n, 1)) + 0.6 * rng.standard_normal(k) + rng.standard_normal((n, k))
    dialogue, rater = crossed(n, k)
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    ms_rows, ms_columns = k * rows.var(ddof=1), n * columns.var(ddof=1)
    rest = table - rows[:, None] - columns + table.mean()
    ms_rest = np.sum(rest**2) / ((n - 1) * (k - 1))
    variance = (ms_rows + ms_columns - ms_rest) / (n * k)
    squares = ms_rows**2 / (n - 1) + ms_columns**2 / (k - 1) + ms_rest**2 / ((n - 1) * (k - 1))
    found = clustered_mean(table.ravel(), dialogue, rater)
    assert found.value == pytest.approx(table.mean())
    assert found.se == pytest.approx(math.sqrt(variance))
    assert found.df == pytest.approx((variance * n * k) ** 2 / squares)
    reach = stats.t.ppf(0.975, found.df) * found.se
    assert (found.low, found.high) == pytest.approx((found.value - reach, found.value + reach))


def test_without_raters_it_is_the_t_interval_of_dialogue_means() -> None:
    rng = np.random.default_rng(1)
    table = rng.standard_normal((12, 4)) + rng.standard_normal((12, 1))
    found = clustered_mean(table.ravel(), np.repeat(np.arange(12), 4))
    expected = stats.t.interval(0.95, 11, table.mean(), stats.sem(table.mean(axis=1)))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.dialogue_share == pytest.approx(1)


def test_a_paired_difference_is_the_mean_of_cell_differences() -> None:
    """What dialogues and raters have in common in both systems is gone from the difference."""
    rng = np.random.default_rng(2)
    dialogue, rater = crossed(10, 4)
    level = 5 * rng.standard_normal(10)[dialogue] + 3 * rng.standard_normal(4)[rater]
    first, second = rng.standard_normal((2, dialogue.size))
    both = clustered_difference(
        np.r_[first + level, second + level],
        np.r_[np.ones(40, bool), np.zeros(40, bool)],
        np.r_[dialogue, dialogue],
        np.r_[rater, rater],
    )
    alone = clustered_mean(first - second, dialogue, rater)
    assert (both.value, both.se, both.df) == pytest.approx((alone.value, alone.se, alone.df))


def test_equal_weights_are_no_weights_and_a_weight_of_two_is_no_second_rater() -> None:
    rng = np.random.default_rng(5)
    dialogue, rater = crossed(8, 4)
    value = rng.standard_normal(32)
    plain = clustered_mean(value, dialogue, rater)
    weighted = clustered_mean(value, dialogue, rater, weight=np.full(32, 7.0))
    assert weighted.se == pytest.approx(plain.se)
    heavy = clustered_mean(value, dialogue, rater, weight=np.where(dialogue < 4, 2.0, 1.0))
    assert heavy.value == pytest.approx(np.average(value, weights=np.where(dialogue < 4, 2.0, 1.0)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 50), st.floats(-20, 20))
def test_scale_and_shift_pass_through(seed: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    dialogue, rater = rng.integers(0, 9, 60), rng.integers(0, 5, 60)
    value = rng.standard_normal(60)
    plain, moved = (
        clustered_mean(value, dialogue, rater),
        clustered_mean(scale * value + shift, dialogue, rater),
    )
    assert moved.se == pytest.approx(scale * plain.se, rel=1e-6)
    assert moved.low == pytest.approx(scale * plain.low + shift, rel=1e-6, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_expected_squares_hold_in_unbalanced_designs(seed: int) -> None:
    """The expectations that components are solved from, against the matrices they stand for."""
    from palaver.statistics import clusters

    rng = np.random.default_rng(seed)
    dialogue, rater, group = rng.integers(0, 6, 30), rng.integers(0, 4, 30), rng.integers(0, 2, 30)
    share = rng.random(30) + 0.1
    share /= np.bincount(group, share, minlength=2)[group]
    _, first, cell = np.unique(dialogue * 4 + rater, return_index=True, return_inverse=True)
    codes = {"rest": cell, "dialogue": dialogue, "rater": rater}
    parts = {
        name: clusters._Partition.of(name, code, int(code.max()) + 1, np.zeros(30), share, group)
        for name, code in codes.items()
    }
    sign = np.array([1.0, -1.0])[group]
    centre = np.eye(30) - (group[:, None] == group) * share[None, :]
    for a, of_a in codes.items():
        for b, of_b in codes.items():
            sums = np.eye(of_a.max() + 1)[of_a].T @ np.diag(sign * share) @ centre
            effect = np.diag(sign) @ np.eye(of_b.max() + 1)[of_b]
            expected = np.sum((sums @ effect) ** 2)
            found = clusters._expectation(parts[a], parts[b], parts["rest"], first)
            assert found == pytest.approx(expected)


def test_what_cannot_be_known_is_said() -> None:
    one = clustered_mean([1.0, 2.0, 3.0], [0, 0, 0], [0, 1, 2])
    assert math.isnan(one.low)
    assert "one dialogue" in one.reason
    flat = clustered_mean(np.full(12, 4.0), *crossed(4, 3))
    assert math.isnan(flat.low)
    assert "all ratings are equal" in flat.reason
    alike = clustered_mean([1.0, 3.0, 3.0, 1.0], *crossed(2, 2))
    assert alike.reason == "all dialogues come out alike, so nothing says how sure this is"
    two = clustered_mean([1.0, 2.0, 2.0, 4.0, 3.0, 3.5], *crossed(3, 2))
    assert "2 raters" in two.notes[0]
    assert two.low < two.high
    nested = clustered_mean([1.0, 2.0, 4.0, 3.0], [0, 1, 2, 3], [0, 1, 2, 3])  # a rater for each dialogue
    assert nested.se == pytest.approx(stats.sem([1, 2, 4, 3]))
    empty = clustered_mean([np.nan, np.nan], [0, 1], [0, 1])
    assert empty.reason == "there are no ratings"
    with pytest.raises(ValueError, match="weights must be above 0"):
        contrast(np.ones(2), np.zeros(2, int), [1.0], [0, 1], None, [1.0, 0.0])


def test_the_order_of_rows_does_not_matter_where_nothing_is_left_but_dialogues() -> None:
    """All ratings of a dialogue are equal: what is left is 0 but for rounding, which depends on the order."""
    value, dialogue, rater = np.array([[3.0, 3, 3, 4, 4], [0, 0, 0, 1, 1], [0, 2, 3, 1, 3]])
    forth = clustered_mean(value, dialogue.astype(int), rater.astype(int))
    order = [1, 2, 4, 3, 0]
    back = clustered_mean(value[order], dialogue[order].astype(int), rater[order].astype(int))
    assert (back.se, back.df) == pytest.approx((forth.se, forth.df))


def test_one_rater_for_each_dialogue_still_clusters_by_rater() -> None:
    rng = np.random.default_rng(0)
    rater = np.repeat(np.arange(5), 8)
    value = 2 * rng.standard_normal(5)[rater] + rng.standard_normal(40)
    assert clustered_mean(value, np.arange(40), rater).se > 1.5 * stats.sem(value)
