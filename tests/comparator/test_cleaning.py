from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
from palaver.comparator.cleaning import Cleaning, CleanSettings, clean
from palaver.comparator.method import MethodSettings
from palaver.comparator.representation import represent
from palaver.comparator.training_data import Pairs, RatedDialogue, RatedDialogues
from palaver.errors import DataError

_spec = importlib.util.spec_from_file_location("method_sample", Path(__file__).with_name("method_sample.py"))
assert _spec is not None
assert _spec.loader is not None
method_sample = importlib.util.module_from_spec(_spec)  # test files here are no package
_spec.loader.exec_module(method_sample)
encode, sample = method_sample.encode, method_sample.sample
QUICK = MethodSettings(heads=1, trees=10, folds=3, ridge=30.0)


@pytest.fixture(scope="module")
def judged() -> tuple[RatedDialogues, set[str], Cleaning]:
    ratings, bad = sample(n_raters=24)
    x = represent(ratings.dialogues, encode)
    pairs = Pairs(np.array([0, 2]), np.array([1, 3]), np.array([1, -1], np.int8))
    return ratings, bad, clean(ratings, x, pairs=pairs, pairs_x=x, method=QUICK)


def test_careless_raters_are_found(judged: tuple[RatedDialogues, set[str], Cleaning]) -> None:
    ratings, bad, cleaning = judged
    is_bad = np.array([row.rater in bad for row in ratings.rows])
    higher = cleaning.suspicion[is_bad][:, None] > cleaning.suspicion[~is_bad]
    assert higher.mean() > 0.85  # the area under the curve
    dropped = {rater.rater for rater in cleaning.raters if rater.verdict == "drop"}
    assert dropped
    assert dropped <= bad
    assert sum(cleaning.counts.values()) == len(ratings)


def test_every_verdict_has_a_reason(judged: tuple[RatedDialogues, set[str], Cleaning]) -> None:
    _, _, cleaning = judged
    assert all(row.reasons for row in cleaning.ratings if row.verdict != "keep")
    same = next(rater for rater in cleaning.raters if rater.rater == "w23")
    assert same.verdict == "drop"
    assert "everything nearly the same" in same.reasons[0]
    assert all(0 <= row.expected <= 100 for row in cleaning.ratings)


def test_shapley_values_add_up_by_rater(judged: tuple[RatedDialogues, set[str], Cleaning]) -> None:
    _, _, cleaning = judged
    for rater in cleaning.raters[:5]:
        own = sum(row.shapley or 0 for row in cleaning.ratings if row.rater == rater.rater)
        assert rater.shapley is not None
        assert np.isclose(rater.shapley, own)


def test_the_same_dialogue_twice_is_suspicious() -> None:
    ratings, _ = sample(n_bad=0)
    first = ratings.rows[0]
    copy = first.dialogue.model_copy(update={"id": "copy"})
    more = RatedDialogues((*ratings.rows, RatedDialogue(copy, first.rating, "w9", "h9")), ratings.scale)
    cleaning = clean(more, represent(more.dialogues, encode), method=QUICK)
    assert "the same turns as d0" in cleaning.ratings[-1].reasons
    assert cleaning.ratings[-1].verdict != "keep"


def test_ratings_without_raters_are_judged_one_by_one() -> None:
    ratings, _ = sample()
    bare = RatedDialogues(tuple(RatedDialogue(r.dialogue, r.rating) for r in ratings.rows), ratings.scale)
    cleaning = clean(bare, represent(bare.dialogues, encode), method=QUICK)
    assert cleaning.raters == ()
    assert any("only single dialogues" in note for note in cleaning.notes)


def test_thresholds_must_be_in_order() -> None:
    with pytest.raises(DataError, match="must not lie above"):
        CleanSettings(drop=0.8, doubt=0.5)
