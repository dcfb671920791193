"""What is drawn for a repetition, and that the sides never meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaver.errors import UserError
from palaver.personality import plan as plan_module
from palaver.personality.plan import Kind, Plan, Settings, generator, group_folds
from palaver.personality.samples import draw_rows
from palaver.personality.splits import by_fold

SMALL = Settings(samples=20, size=20, repetitions=2, replicates=10, engine="local")


class Spy:
    """Vectors that are the drawn rows themselves, so that one sees whose they are."""

    def of(self, pools: Sequence[Any], n: int, size: int, seeds: Sequence[int]) -> Any:
        return np.concatenate([draw_rows(p, n, size, s) for p, s in zip(pools, seeds, strict=True)])

    def take(self, rows: Any) -> Spy:
        return self


def test_no_utterance_and_no_group_on_both_sides(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1, None], n=150, n_groups=30)
    plan = Plan(pools, SMALL)
    sides = by_fold(pools.members, pools.group, plan._folds[0], 5)
    folds = group_folds(sides, {"rows": Spy()}, 20, 20, np.random.default_rng(0))["rows"]
    assert len(folds) == 5
    seen = []
    for fold in folds:
        assert fold.tune is not None
        fit, held = fold.tune
        for a, b in ((fold.train, fold.test), (fit, held), (fit, fold.test), (held, fold.test)):
            rows_a, rows_b = (set(side.vectors.astype(int).ravel().tolist()) for side in (a, b))
            assert not rows_a & rows_b
            assert not set(pools.group[list(rows_a)].tolist()) & set(pools.group[list(rows_b)].tolist())
        for side in (fold.train, fold.test, fit, held):  # and every row is its character's
            rows = side.vectors.astype(int)
            assert (pools.label[rows] == side.label[:, None]).all()
        counts = [np.bincount(side.label).tolist() for side in (fold.train, fold.test, fit, held)]
        assert counts == [[16] * 3, [4] * 3, [4] * 3, [2] * 3]
        seen.append(set(pools.group[fold.test.vectors.astype(int).ravel()].tolist()))
    assert all(not a & b for i, a in enumerate(seen) for b in seen[i + 1 :])  # each group is tested once


def test_features_see_the_same_samples(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1], n=100)
    sides = by_fold(pools.members, pools.group, Plan(pools, SMALL)._folds[0], 5)
    folds = group_folds(sides, {"a": Spy(), "b": Spy()}, 20, 10, np.random.default_rng(0), tuned=False)
    assert all(
        (a.train.vectors == b.train.vectors).all() and a.tune is None
        for a, b in zip(folds["a"], folds["b"], strict=True)
    )


def test_every_condition_is_there(known: SimpleNamespace) -> None:
    plan = Plan(known.pools([0, 1]), replace(SMALL, unscaled_words=True))
    names = [[kind.name for kind, _ in task()] for task in plan.tasks()[:2]]
    by_sample = ["characters", "shuffled labels", "pseudo-characters", "words", "words, unscaled"]
    assert names == [by_sample, ["characters by group", "words by group", "pseudo-characters by group"]]
    assert [kind.name for kind, _ in plan.replicates(1.0)[0]()] == names[1][::2]
    assert (len(plan.tasks()), len(plan.replicates(1.0))) == (4, 10)


def test_leaving_words_out_changes_nothing_else(known: SimpleNamespace) -> None:
    pools = known.pools([0, 1], strength=0.02)
    with_words = dict(task_results(Plan(pools, SMALL)))
    without = dict(task_results(Plan(replace(pools, words={}), SMALL)))
    assert set(without) == {kind for kind in with_words if kind.features == "traits"}
    assert all(without[kind] == with_words[kind] for kind in without)


def task_results(plan: Plan) -> list[tuple[Kind, list[list[int]]]]:
    return [(kind, outcome.confusion.tolist()) for task in plan.tasks()[:2] for kind, outcome in task()]


def test_too_few_groups_to_split_by(known: SimpleNamespace) -> None:
    plan = Plan(known.pools([0, 1], n_groups=3), SMALL)
    assert "only 0 utterances of a character (person 0 speaks in 3 scenes)" in plan.no_groups
    assert len(plan.tasks()) == SMALL.repetitions
    assert plan.replicates(1.0) == []
    assert any("no split by scene" in note for note in plan.notes())


def test_smaller_samples_where_a_side_is_small(known: SimpleNamespace) -> None:
    plan = Plan(known.pools([0, 1], n=400, n_groups=200), replace(SMALL, size=100))
    assert 60 <= plan.size_by_group < 100
    assert not plan.no_groups
    assert any(f"samples have {plan.size_by_group} utterances" in note for note in plan.notes())
    small = Plan(known.pools([0, 1], n=300), replace(SMALL, size=100))
    assert any("person 0 (300), person 1 (300)" in note for note in small.notes())


def test_huge_pools_are_thinned_before_resampling(
    known: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "REPLICATE_UTTERANCES", 60)
    pools = known.pools([0, 1], n=200)
    thin = [plan_module._thinned(rows, np.random.default_rng(1)) for rows in pools.members]
    assert [rows.size for rows in thin] == [50, 50]
    assert all(set(a.tolist()) <= set(b.tolist()) for a, b in zip(thin, pools.members, strict=True))
    assert plan_module._thinned(np.arange(60), np.random.default_rng(1)).size == 60
    assert len(Plan(pools, replace(SMALL, size=8)).replicates(1.0)[0]()) == 2


def test_streams_of_chance_are_apart() -> None:
    draws = {
        generator(*key).integers(1 << 60) for key in [(0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1)]
    }
    assert len(draws) == 4
    assert generator(0, "a", 1).integers(1 << 60) == generator(0, "a", 1).integers(1 << 60)


def test_settings_that_make_no_protocol() -> None:
    with pytest.raises(UserError) as caught:
        Settings(samples=4, repetitions=1, folds=2, size=0, replicates=-1)
    assert len(caught.value.problems) == 4
    with pytest.raises(UserError, match="protocol"):
        Settings(samples=9)
