"""Pools, folds of whole groups, shuffled and resampled pools."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.personality import splits
from palaver.personality.splits import (
    by_fold,
    fold_groups,
    members,
    resample_groups,
    shuffle_pools,
    smallest_side,
)

labels = st.lists(st.integers(0, 3), min_size=8, max_size=80).map(lambda rest: np.array([0, 1, 2, 3, *rest]))


@given(labels)
@settings(max_examples=50, deadline=None)
def test_members_are_all_rows_of_a_character(label: Any) -> None:
    found = members(label, 5)
    assert [rows.tolist() for rows in found] == [np.flatnonzero(label == k).tolist() for k in range(5)]


@given(labels, st.integers(1, 12), st.integers(2, 5), st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_no_group_is_in_two_folds(label: Any, n_groups: int, n_folds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=label.size)
    pools = members(label, 4)
    fold = fold_groups(pools, group, n_groups, n_folds, rng)
    sides = by_fold(pools, group, fold, n_folds)
    for i, side in enumerate(sides):
        here = {int(g) for rows in side for g in group[rows]}
        for other in sides[i + 1 :]:
            assert not here & {int(g) for rows in other for g in group[rows]}
    for c in range(4):  # nothing lost, nothing twice
        assert sorted(np.concatenate([side[c] for side in sides]).tolist()) == pools[c].tolist()
    assert smallest_side(sides) == min(rows.size for side in sides for rows in side)


def test_folds_are_even_for_each_character() -> None:
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(100), 20)
    label = rng.choice(3, size=2000, p=[0.7, 0.25, 0.05])
    pools = members(label, 3)
    sides = by_fold(pools, group, fold_groups(pools, group, 100, 5, rng), 5)
    for c, rows in enumerate(pools):
        shares = np.array([side[c].size for side in sides]) / rows.size
        assert (np.abs(shares - 0.2) < 0.05).all()


def test_many_groups_are_split_at_random(monkeypatch: Any) -> None:
    monkeypatch.setattr(splits, "_BALANCED_UP_TO", 10)
    fold = fold_groups([np.arange(50)], np.arange(50), 50, 5, np.random.default_rng(0))
    assert np.bincount(fold).tolist() == [10] * 5
    assert fold.tolist() != sorted(fold.tolist())


@given(labels, st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_pseudo_characters_have_the_same_utterances_and_sizes(label: Any, seed: int) -> None:
    pools = members(label, 4)
    dealt = shuffle_pools(pools, np.random.default_rng(seed))
    assert [rows.size for rows in dealt] == [rows.size for rows in pools]
    assert sorted(np.concatenate(dealt).tolist()) == list(range(label.size))


def test_pseudo_characters_are_nobody() -> None:
    """Each pseudo-character has about as much of every character."""
    label = np.repeat(np.arange(4), 500)
    for rows in shuffle_pools(members(label, 4), np.random.default_rng(0)):
        assert (np.abs(np.bincount(label[rows], minlength=4) - 125) < 50).all()


@given(labels, st.integers(1, 9), st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_resampled_pools_are_whole_groups(label: Any, n_groups: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=label.size)
    pools = members(label, 4)
    for rows, found in zip(pools, resample_groups(pools, group, rng), strict=True):
        assert set(found.tolist()) <= set(rows.tolist())
        there = np.unique(group[rows])
        times = {int(g): set() for g in there}
        for row in rows.tolist():
            times[int(group[row])].add(int((found == row).sum()))
        assert all(len(each) == 1 for each in times.values())  # all of a group as often as each other
        assert sum(each.pop() for each in times.values()) == there.size
