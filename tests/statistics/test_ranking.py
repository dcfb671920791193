"""Paired bootstrap, rank groups and comparisons: properties, brute force, degenerate input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.statistics.ranking import (
    RankGroup,
    as_comparisons,
    comparisons_from_scores,
    format_groups,
    paired_bootstrap,
    rank_groups,
    win_fractions,
    win_matrix,
)

quick = settings(max_examples=50, deadline=None)


def names(n):
    return [f"s{i}" for i in range(n)]


# Rank groups


def test_labels_read_as_in_the_papers():
    groups = (
        RankGroup(first=1, last=2, systems=("Slug2Slug", "TGen")),
        RankGroup(first=3, last=3, systems=("Sheffield",)),
    )
    assert format_groups(groups) == "1.–2. Slug2Slug + TGen, 3. Sheffield"


def groups_by_definition(means, better, systems, confidence):
    order = sorted(range(len(systems)), key=lambda i: (-means[i], systems[i]))
    groups, current = [], []
    for place, i in enumerate(order):
        current.append(systems[i])
        above, below = order[: place + 1], order[place + 1 :]
        if all(better[a][b] >= confidence for a in above for b in below):
            groups.append(tuple(current))
            current = []
    return groups


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0.5, 0.99))
@quick
def test_a_line_is_drawn_exactly_where_all_above_beat_all_below(n, seed, confidence):
    rng = np.random.default_rng(seed)
    means = rng.integers(0, 4, n).astype(float)
    better = np.where(rng.random((n, n)) < 0.7, 1.0, rng.random((n, n)))
    groups = rank_groups(means, better, names(n), confidence)
    assert [g.systems for g in groups] == groups_by_definition(means, better, names(n), confidence)
    assert [g.first for g in groups] == [1, *(g.last + 1 for g in groups[:-1])]
    assert groups[-1].last == n


def test_a_chain_of_neighbours_alone_does_not_separate():
    better = [[0.5, 1.0, 0.5], [0.0, 0.5, 1.0], [0.5, 0.0, 0.5]]
    assert format_groups(rank_groups([3, 2, 1], better, ["a", "b", "c"])) == "1.–3. a + b + c"


def test_the_bound_itself_separates_and_undefined_does_not():
    assert len(rank_groups([2, 1], [[0.5, 0.95], [0.05, 0.5]], ["a", "b"], 0.95)) == 2
    assert len(rank_groups([2, 1], [[0.5, np.nan], [np.nan, 0.5]], ["a", "b"], 0.95)) == 1
    assert rank_groups([np.nan, 1], np.ones((2, 2)), ["a", "b"])[0].systems == ("b",)
    assert rank_groups([], np.empty((0, 0)), []) == ()


def test_equal_means_are_ordered_by_name():
    half = np.full((3, 3), 0.5)
    assert rank_groups([1, 1, 1], half, ["c", "a", "b"])[0].systems == ("a", "b", "c")


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_few_items_separate_nobody(n):
    """One of two equal systems is ahead on all n items as often as a coin falls on one side n times."""
    scores = np.column_stack([np.arange(n) + 1.0, np.arange(n)])
    result = paired_bootstrap(scores, ["a", "b"], n_replicates=100, rng=0)
    assert result.wins[0, 1] == 1 - 0.5**n
    assert len(result.groups) == (2 if n == 5 else 1)


def test_a_system_with_few_items_is_not_separated_from_one_with_many():
    scores = np.column_stack([np.full(50, 3.0) + np.arange(50) / 100, np.full(50, np.nan)])
    scores[:3, 1] = [1, 1.1, 1.2]
    result = paired_bootstrap(scores, ["many", "few"], n_replicates=100, rng=0)
    assert result.wins[0, 1] == 1 - 0.5**3


def test_items_of_one_group_are_drawn_together():
    """Each of ten items four times is ten items, not forty."""
    rng = np.random.default_rng(0)
    one = rng.normal(size=(10, 2))
    alone = paired_bootstrap(one, ["a", "b"], n_replicates=4000, rng=1)
    repeated = np.repeat(one, 4, axis=0)
    together = paired_bootstrap(
        repeated, ["a", "b"], by=np.repeat(np.arange(10), 4) * 7, n_replicates=4000, rng=1
    )
    apart = paired_bootstrap(repeated, ["a", "b"], n_replicates=4000, rng=1)
    assert together.n_items == 10
    np.testing.assert_allclose(together.means, alone.means)
    np.testing.assert_allclose(together.samples.std(axis=0), alone.samples.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(apart.samples.std(axis=0), alone.samples.std(axis=0) / 2, rtol=0.05)


def test_wrong_arguments_of_rank_groups():
    with pytest.raises(ValueError, match="confidence"):
        rank_groups([1.0], [[0.5]], ["a"], 1.0)
    with pytest.raises(ValueError, match="2 systems need"):
        rank_groups([1.0], [[0.5]], ["a", "b"])


# Paired bootstrap

tables = st.tuples(st.integers(2, 30), st.integers(1, 5), st.integers(0, 2**32 - 1))


def table_of(shape, missing=0.0):
    n, m, seed = shape
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, m)) + rng.normal(size=m)
    scores[rng.random((n, m)) < missing] = np.nan
    return scores


@given(tables, st.sampled_from([0.0, 0.4]))
@quick
def test_permuted_systems_give_permuted_results(shape, missing):
    scores = table_of(shape, missing)
    order = np.random.default_rng(shape[2]).permutation(shape[1])
    a = paired_bootstrap(scores, names(shape[1]), n_replicates=50, rng=1)
    b = paired_bootstrap(scores[:, order], [names(shape[1])[i] for i in order], n_replicates=50, rng=1)
    np.testing.assert_allclose(a.wins[np.ix_(order, order)], b.wins)
    np.testing.assert_allclose(a.means[order], b.means)
    assert {g.systems for g in a.groups} == {g.systems for g in b.groups}


@given(tables, st.sampled_from([0.0, 0.4]), st.floats(0.01, 100), st.floats(-1000, 1000))
@quick
def test_a_change_of_scale_changes_no_comparison(shape, missing, factor, shift):
    scores = table_of(shape, missing)
    a = paired_bootstrap(scores, names(shape[1]), n_replicates=50, rng=1)
    b = paired_bootstrap(scores * factor + shift, names(shape[1]), n_replicates=50, rng=1)
    np.testing.assert_allclose(a.wins, b.wins)
    np.testing.assert_allclose(a.means * factor + shift, b.means, atol=1e-9)
    lows = [i.low * factor + shift for i in a.intervals]
    np.testing.assert_allclose(lows, [i.low for i in b.intervals], atol=1e-9)
    assert a.groups == b.groups


@given(tables, st.sampled_from([0.0, 0.4]))
@quick
def test_wins_and_losses_add_up(shape, missing):
    result = paired_bootstrap(table_of(shape, missing), names(shape[1]), n_replicates=50, rng=1)
    both = result.wins + result.wins.T
    np.testing.assert_allclose(both[~np.isnan(both)], 1.0)


def test_a_system_ties_with_its_copy():
    x = np.random.default_rng(0).normal(size=(40, 1)) / 3
    result = paired_bootstrap(np.hstack([x, x, x - 5]), ["a", "b", "c"], rng=0)
    assert result.wins[0, 1] == 0.5
    assert format_groups(result.groups) == "1.–2. a + b, 3. c"


def test_equal_values_tie_whatever_the_number_of_items():
    scores = np.full((30, 2), 0.1)
    scores[:7, 0] = np.nan
    result = paired_bootstrap(scores, ["a", "b"], rng=0)
    assert result.wins.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert result.intervals[0].low == pytest.approx(0.1)


def test_exact_fraction_by_enumeration():
    """Koehn's fraction over all 3^3 samples of three items, of which the bootstrap draws at random."""
    scores = np.array([[1.0, 0.0], [0.0, 0.7], [0.5, 0.5]])
    gaps = [sum(scores[i, 0] - scores[i, 1] for i in draw) for draw in itertools.product(range(3), repeat=3)]
    exact = np.mean([(g > 1e-12) + 0.5 * (abs(g) <= 1e-12) for g in gaps])
    result = paired_bootstrap(scores, ["a", "b"], n_replicates=40_000, rng=3)
    assert result.wins[0, 1] == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_against_a_plain_loop(missing):
    scores = table_of((60, 3, 8), missing) + np.array([0.0, 0.2, 0.4])
    result = paired_bootstrap(scores, names(3), n_replicates=4000, rng=0)
    rng = np.random.default_rng(99)
    means = np.array([np.nanmean(scores[rng.integers(0, 60, 60)], axis=0) for _ in range(4000)])
    expected = (means[:, :, None] > means[:, None, :]).mean(axis=0)
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(result.wins[off], expected[off], atol=0.04)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    np.testing.assert_allclose([i.low for i in result.intervals], low, atol=0.05)
    np.testing.assert_allclose([i.high for i in result.intervals], high, atol=0.05)
    np.testing.assert_allclose(result.means, np.nanmean(scores, axis=0))


def test_the_same_seed_gives_the_same_result():
    scores = table_of((20, 3, 1))
    a, b = (paired_bootstrap(scores, names(3), rng=np.random.default_rng(5)) for _ in range(2))
    assert (a.wins == b.wins).all()
    assert a.intervals == b.intervals
    assert (a.wins != paired_bootstrap(scores, names(3), rng=6).wins).any()


def test_what_is_missing_is_counted_and_named():
    scores = np.array([[1.0, 2.0, np.nan], [np.nan] * 3, [2.0, 3.0, np.nan], [0.0, np.nan, 5.0]])
    result = paired_bootstrap(scores, ["a", "b", "c"], rng=0)
    assert (result.n_items, result.dropped) == (3, 1)
    assert result.notes == ("1 item without any score", "c has 1 scored item")
    assert result.means.tolist() == [1.0, 2.5, 5.0]
    assert np.isnan(result.wins[2]).all()
    assert np.isnan(result.intervals[2].low)
    assert len(result.groups) == 1  # c has the best mean, but one item separates nothing


@pytest.mark.parametrize(
    "scores",
    [
        np.empty((0, 2)),
        np.full((4, 2), np.nan),
        np.array([[1.0, 2.0]]),
        np.array([[1.0, np.nan], [np.nan, 2.0]]),
    ],
)
def test_nothing_to_resample_is_undefined_with_a_reason(scores):
    result = paired_bootstrap(scores, ["a", "b"], rng=0)
    assert np.isnan(result.wins).all()
    assert "nothing to resample" in result.reason
    assert len(result.groups) <= 1


def test_one_system_has_the_first_place():
    result = paired_bootstrap([[1.0], [2.0]], ["a"], rng=0)
    assert format_groups(result.groups) == "1. a"


def test_wrong_arguments_of_the_bootstrap():
    with pytest.raises(ValueError, match="2 systems"):
        paired_bootstrap([[1.0, 2.0, 3.0]], ["a", "b"], rng=0)
    with pytest.raises(ValueError, match="inf"):
        paired_bootstrap([[1.0, np.inf]], ["a", "b"], rng=0)
    with pytest.raises(ValueError, match="confidence"):
        paired_bootstrap([[1.0, 2.0]], ["a", "b"], confidence=95, rng=0)
    with pytest.raises(ValueError, match="n_replicates"):
        paired_bootstrap([[1.0, 2.0]], ["a", "b"], n_replicates=0, rng=0)


def test_undefined_replicates_do_not_count():
    samples = [[1.0, 0.0], [np.nan, 0.0], [0.0, 0.0]]
    assert win_fractions(samples).tolist() == [[0.5, 0.75], [0.25, 0.5]]


# Comparisons


@given(st.integers(0, 40), st.integers(1, 4), st.integers(0, 2**32 - 1))
@quick
def test_comparisons_are_all_pairs_of_a_screen(n, n_systems, seed):
    rng = np.random.default_rng(seed)
    screen, system = rng.integers(0, 8, n), rng.integers(0, n_systems, n)
    score = rng.choice([1.0, 2.0, 3.0, np.nan], n)
    result = comparisons_from_scores(screen, system, score)
    expected = []
    for s in sorted(set(screen.tolist())):
        rows = [k for k in range(n) if screen[k] == s and not np.isnan(score[k])]
        for i, j in itertools.combinations(rows, 2):
            if system[i] != system[j]:
                expected.append((system[i], system[j], np.sign(score[i] - score[j]), s))
    compared = list(zip(result.first, result.second, result.outcome, result.screen, strict=True))
    assert compared == expected
    assert result.dropped == np.isnan(score).sum()
    assert len(result) == len(expected)


def test_rows_left_out_are_named():
    result = comparisons_from_scores([0, 0, 0, 0], [0, 1, 1, 2], [1.0, 2.0, 3.0, np.nan])
    assert result.notes == ("1 row without a score", "1 pair of a system with itself")


@given(st.integers(0, 60), st.integers(2, 5), st.integers(0, 2**32 - 1))
@quick
def test_win_matrix_counts(n, n_systems, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n_systems, n)
    second = (first + rng.integers(1, n_systems, n)) % n_systems
    outcome = rng.integers(-1, 2, n)
    matrix = win_matrix(as_comparisons(first, second, outcome), n_systems)
    wins, ties = np.zeros((n_systems, n_systems)), np.zeros((n_systems, n_systems))
    for a, b, o in zip(first, second, outcome, strict=True):
        wins[a, b] += o > 0
        wins[b, a] += o < 0
        ties[a, b] += o == 0
        ties[b, a] += o == 0
    assert (matrix.wins == wins).all()
    assert (matrix.ties == ties).all()
    assert matrix.n_comparisons == n
    assert (matrix.games == np.bincount(np.r_[first, second], minlength=n_systems)).all()


def test_wrong_comparisons():
    with pytest.raises(ValueError, match="itself"):
        as_comparisons([0, 1], [1, 1], [1, 0])
    with pytest.raises(ValueError, match="equally long"):
        as_comparisons([0, 1], [1], [1, 0])
    with pytest.raises(ValueError, match="outcome"):
        as_comparisons([0], [1], [2])
    with pytest.raises(ValueError, match="outcome"):
        as_comparisons([0], [1], [0.5])
    with pytest.raises(ValueError, match="codes"):
        as_comparisons([-1], [1], [1])
    with pytest.raises(ValueError, match="integer codes"):
        as_comparisons([0.0], [1.0], [1])
    with pytest.raises(ValueError, match="0 to 1"):
        win_matrix(as_comparisons([0], [2], [1]), 2)
    with pytest.raises(ValueError, match="equally long"):
        comparisons_from_scores([0, 0], [0], [1.0])


def test_groups_of_items_are_counted_as_such() -> None:
    scores = np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 1.0]])
    apart = paired_bootstrap(scores, ["a", "b"], by=[0, 0, 0], n_replicates=10, rng=0)
    assert apart.reason == "no system has two scored groups of items: there is nothing to resample"
    assert "a has 1 scored group of items" in apart.notes
