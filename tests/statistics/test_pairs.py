"""Pairs of outputs: counts and taus as SciPy has them, the tie search beside trying every threshold."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau, rankdata

from palaver.statistics.pairs import (
    calibrate_ties,
    count_pairs,
    draw_signs,
    rank_correlations,
    search_tie,
    soft_pairwise_accuracy,
    system_confidences,
)

steps = st.integers(0, 4).map(float)
tables = st.tuples(st.integers(1, 5), st.integers(2, 6)).flatmap(
    lambda shape: st.tuples(arrays(float, shape, elements=steps), arrays(float, shape, elements=steps))
)


def accuracy_by_hand(people, judge, threshold):
    """The mean over rows of the share of pairs got right, one pair at a time."""
    shares = []
    for h, m in zip(people, judge, strict=True):
        right = [
            np.sign(h[i] - h[j]) == (0 if abs(m[i] - m[j]) <= threshold else np.sign(m[i] - m[j]))
            for i, j in combinations(range(len(h)), 2)
            if not np.isnan([h[i], h[j], m[i], m[j]]).any()
        ]
        if right:
            shares.append(np.mean(right))
    return np.mean(shares) if shares else math.nan


@given(tables)
@settings(max_examples=60, deadline=None)
def test_no_threshold_is_better_than_the_one_found(pair):
    people, judge = pair
    threshold, accuracy = search_tie(people, judge)
    candidates = {0.0, *np.abs(judge[:, :, None] - judge[:, None, :]).ravel()}
    by_hand = {t: accuracy_by_hand(people, judge, t) for t in candidates}
    assert accuracy == pytest.approx(max(by_hand.values()))
    assert by_hand[threshold] == pytest.approx(accuracy)
    assert threshold == min(t for t, value in by_hand.items() if value == pytest.approx(accuracy))


@given(tables)
@settings(max_examples=40, deadline=None)
def test_tau_b_is_scipys(pair):
    people, judge = pair
    x, y = people.ravel(), judge.ravel()
    expected = kendalltau(x, y).statistic
    assert count_pairs(x, y).tau_b == pytest.approx(expected, nan_ok=True)
    ranks_x, ranks_y, tau = rank_correlations(x, y[None])
    assert tau[0] == pytest.approx(expected, nan_ok=True)
    assert ranks_x.tolist() == rankdata(x).tolist()
    assert ranks_y[0].tolist() == rankdata(y).tolist()


def test_tau_b_is_never_above_1():
    for n in range(3, 60):
        ranks = np.arange(n) // 2 * 1.0
        assert rank_correlations(ranks, ranks[None])[2] == [1.0]
        assert count_pairs(ranks, ranks).tau_b == 1.0


def test_counts_by_hand():
    counts = count_pairs([1, 2, 2, 4], [1, 3, 2, 2])
    assert (counts.concordant, counts.discordant) == (3, 1)
    assert (counts.tied_by_people, counts.tied_by_judge, counts.tied_by_both) == (1, 1, 0)
    assert counts.tau_a == pytest.approx(2 / 6)
    assert counts.gamma == pytest.approx(2 / 4)
    assert counts.tau_14 == pytest.approx(2 / 5)
    assert counts.accuracy == pytest.approx(3 / 6)
    assert count_pairs([1, 2], [0.0, 0.5], tie=0.5).tied_by_judge == 1


def test_a_missing_score_takes_its_pairs_away():
    people = np.array([[1, 2, np.nan], [1, np.nan, np.nan]])
    judge = np.array([[1, 2, 3.0], [1, 2, 3.0]])
    assert count_pairs(people, judge).n == 1
    assert search_tie(people, judge) == (0.0, 1.0)
    assert math.isnan(search_tie(people[1:], judge[1:])[1])


def test_thresholds_come_from_other_items():
    rng = np.random.default_rng(0)
    people = rng.integers(1, 4, size=(60, 6)).astype(float)
    noise = rng.normal(size=people.shape)  # knows nothing
    found = calibrate_ties(people, noise, n_folds=5)
    assert found.on_itself >= found.without_ties
    assert found.accuracy <= found.on_itself
    assert len(found.thresholds) == 5
    fold = np.repeat([0, 1], 30)
    two = calibrate_ties(people, noise, fold=fold)
    assert two.thresholds[0] == search_tie(people[fold == 1], noise[fold == 1])[0]
    by_hand = np.mean(
        [accuracy_by_hand(people[i : i + 1], noise[i : i + 1], two.thresholds[fold[i]]) for i in range(60)]
    )
    assert two.accuracy == pytest.approx(by_hand)
    assert np.nanmean(two.of_items) == pytest.approx(by_hand)


def test_differences_far_apart_are_found_too():
    people = np.array([[1.0, 1.0, 2.0, 3.0]])
    judge = np.array([[0.0, 1e-9, 1.0, 1e12]])  # one bin would hold all but the last
    threshold, accuracy = search_tie(people, judge)
    assert threshold == 1e-9
    assert accuracy == pytest.approx(1.0)


def test_confidence_in_systems_is_that_of_a_permutation_test():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(12, 3))
    every = np.array([[1 if (b >> i) & 1 else -1 for i in range(12)] for b in range(2**12)], dtype=np.float32)
    sure = system_confidences(scores, every)
    for place, (i, j) in enumerate(combinations(range(3), 2)):
        difference = scores[:, i] - scores[:, j]
        drawn = every.astype(float) @ difference
        observed = difference.sum()
        p = np.mean(drawn > observed + 1e-9) + np.mean(np.abs(drawn - observed) <= 1e-9) / 2
        assert sure[place] == pytest.approx(1 - p, abs=2e-3)
    with_gap = np.vstack([scores, [[np.nan, 1.0, 2.0]]])
    signs = draw_signs(13, 2000, 0)
    assert np.isfinite(system_confidences(with_gap, signs)).all()


def test_a_constant_judge_is_sure_of_nothing():
    people = system_confidences(np.random.default_rng(0).normal(size=(20, 4)), draw_signs(20, 500, 0))
    constant = system_confidences(np.ones((20, 4)), draw_signs(20, 500, 0))
    assert constant.tolist() == [0.5] * 6
    assert soft_pairwise_accuracy(people, people) == 1.0
    assert 0.5 <= soft_pairwise_accuracy(people, constant) < 1.0
    assert math.isnan(soft_pairwise_accuracy(np.array([np.nan]), np.array([0.5])))


def test_shapes_must_fit():
    with pytest.raises(ValueError, match="one shape"):
        count_pairs([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="fold"):
        calibrate_ties(np.ones((3, 2)), np.ones((3, 2)), fold=[0, 1])
