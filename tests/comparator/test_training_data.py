from __future__ import annotations

import numpy as np
import pytest

from palaver.comparator.training_data import Pairs, RatedDialogue, RatedDialogues, TrainingData
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn


def rated(name: str, text: str = "hi", rating: float = 1.0, **labels: str) -> RatedDialogue:
    return RatedDialogue(Dialogue(id=name, turns=(Turn(speaker="user", text=text),), labels=labels), rating)


def test_used_rows_of_pairs() -> None:
    pairs = Pairs(np.array([3, 1]), np.array([1, 5]), np.array([1, -1], np.int8))
    assert pairs.used.tolist() == [1, 3, 5]
    assert pairs.worse.tolist() == [1, 1]


def test_the_digest_is_of_what_is_learnt_from() -> None:
    first = RatedDialogues((rated("a"), rated("b")), (1, 5))
    assert first.digest == RatedDialogues((rated("a", passed_qc="no"), rated("b")), (0, 1)).digest
    for other in (rated("b", text="ho"), rated("b", rating=2.0), rated("c")):
        assert first.digest != RatedDialogues((rated("a"), other), (1, 5)).digest
    pairs = Pairs(np.array([0]), np.array([1]), np.array([1], np.int8))
    assert pairs.digest != Pairs(pairs.first, pairs.second, -pairs.label).digest


def test_development_dialogues_are_not_trained_on() -> None:
    ratings = RatedDialogues((rated("a"), rated("b"), rated("c")), (1, 5))
    data = TrainingData.gather(ratings, dev=ratings.take([1]))
    assert data.ratings.ids == ("a", "c")
    assert data.notes == ("1 rated dialogues are in the development set and not trained on",)
    assert TrainingData.gather(ratings).ratings is ratings
    with pytest.raises(DataError, match="none is left"):
        TrainingData.gather(ratings, dev=ratings)


def test_pairs_of_rated_dialogues_are_held_out() -> None:
    ratings = RatedDialogues((rated("a"), rated("b"), rated("c"), rated("d")), (1, 5))
    data = TrainingData.gather(ratings, pairs=Pairs(np.array([3]), np.array([1]), np.array([1], np.int8)))
    assert data.ratings.ids == ("a", "c")
    assert data.dev is not None
    assert data.pairs is not None
    assert data.dev.ids == ("b", "d")
    assert (data.pairs.first.tolist(), data.pairs.second.tolist()) == ([1], [0])
