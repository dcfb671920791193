"""The rating study on the paper's own table and on small hand-made cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palaver.comparator.rating_study import study_file, study_ratings
from palaver.comparator.training_data import Pairs, RatedDialogue, RatedDialogues
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn


def test_table_1_of_the_paper() -> None:
    ratings = np.repeat([1, 2, 3, 4, 5], [386, 404, 566, 664, 1588])
    study = study_ratings(ratings, (1, 5))
    assert study.counts == (386, 404, 566, 664, 1588)
    assert [round(100 * f, 1) for f in study.fractions] == [10.7, 11.2, 15.7, 18.4, 44.0]
    assert study.j_shaped
    assert not study.binned
    assert round(study.top, 2) == 0.44
    assert math.isclose(study.polarity, (386 + 1588) / 3608)
    assert math.isclose(study.positive, (664 + 1588) / (386 + 404 + 664 + 1588))
    assert study.skewness < -0.5
    assert math.isclose(study.ties, sum(c * (c - 1) for c in study.counts) / (3608 * 3607))


def test_fine_scales_are_counted_in_bins() -> None:
    study = study_ratings(np.linspace(0, 100, 501), (0, 100))
    assert study.binned
    assert len(study.edges) == 11
    assert study.counts == (50,) * 9 + (51,)
    assert not study.j_shaped
    assert abs(study.skewness) < 1e-9
    assert study.ties == 0


def test_missing_ratings_are_counted_and_equal_ones_have_no_skew() -> None:
    study = study_ratings([3, math.nan, 3])
    assert (study.n, study.dropped, study.counts, study.polarity) == (2, 1, (2,), 1.0)
    assert math.isnan(study.skewness)
    assert not study.j_shaped
    assert study.ties == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="no ratings"):
        study_ratings([math.nan])
    with pytest.raises(DataError, match="1 of 2 ratings lie outside the scale 1 to 5, the first is 7"):
        study_ratings([1, 7], (1, 5))
    with pytest.raises(ValueError, match="the lower first"):
        study_ratings([1], (5, 1))
    with pytest.raises(ValueError, match="bins"):
        study_ratings([1], bins=1)


def rated(values: list[float], raters: list[str | None]) -> RatedDialogues:
    turns = (Turn(speaker="user", text="hi"), Turn(speaker="system", text="hello"))
    rows = [
        RatedDialogue(Dialogue(id=f"d{i}", turns=turns), value, rater)
        for i, (value, rater) in enumerate(zip(values, raters, strict=True))
    ]
    return RatedDialogues(tuple(rows), (1.0, 5.0))


def test_disagreement_by_gap() -> None:
    dialogues = rated([1, 2, 4, 5, 5], ["a", "a", "b", "b", None])
    #            gap:  1, wrong  4, right  3, right  0
    pairs = Pairs(np.array([0, 0, 2, 3]), np.array([1, 3, 0, 4]), np.array([1, -1, 1, 1], np.int8))
    study = study_file(dialogues, pairs)
    assert [(row.n, row.n_disagree) for row in study.disagreement] == [(1, 1), (0, 0), (1, 0), (1, 0)]
    assert study.n_raters == 2
    assert 0 <= study.level_share <= 1
    assert study.notes == (
        "1 ratings name no rater",
        "1 compared pairs have equal ratings, which say nothing",
    )
    assert study.to_polars("disagreement").height == 4


def test_without_raters_it_says_what_is_not_possible() -> None:
    study = study_file(rated([1, 5, 5], [None] * 3))
    assert "no rating names its rater" in study.notes[0]
    assert math.isnan(study.level_share)
    assert study.disagreement == ()


@pytest.mark.parametrize(
    ("raters", "said"), [(["a", "a", "a"], "by one rater"), (["a", "b", "c"], "no rater rated two dialogues")]
)
def test_one_rater_or_one_rating_each_says_nothing_about_levels(raters: list[str | None], said: str) -> None:
    study = study_file(rated([1, 5, 4], raters))
    assert said in study.notes[0]
    assert math.isnan(study.level_share)


def test_pairs_made_of_the_ratings_are_noticed() -> None:
    pairs = Pairs(np.array([1]), np.array([0]), np.array([1], np.int8))
    assert "made of them" in study_file(rated([1, 5, 5], ["a"] * 3), pairs).notes[-1]
