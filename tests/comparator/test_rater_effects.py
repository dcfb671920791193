from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.comparator.rater_effects import effects, reliability, sittings
from palaver.errors import DataError


def test_sittings_are_groups_else_raters_else_all_the_rest() -> None:
    codes = sittings([0, 0, 1, 1, -1, -1], [5, 6, -1, -1, -1, -1])
    assert len(set(codes.tolist())) == 4
    assert codes[2] == codes[3]
    assert codes[4] == codes[5]
    assert codes[0] != codes[1]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-20, 20), min_size=4, max_size=4))
def test_a_raters_level_leaves_the_ratings(levels: list[float]) -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 5)
    y = rng.normal(size=20)
    moved = effects(y + np.array(levels)[codes], codes)
    assert np.allclose(moved.target, effects(y, codes).target, atol=1e-8)


def test_a_wide_rater_counts_for_less_than_their_spread() -> None:
    y = np.r_[np.tile([0.0, 1.0], 10), np.tile([0.0, 10.0], 10)]
    codes = np.repeat([0, 1], 20)
    target = np.abs(effects(y, codes).target)
    assert target[20:].mean() < 10 * target[:20].mean() / 3


def test_a_single_rating_keeps_what_shrinking_leaves() -> None:
    y = np.r_[np.random.default_rng(0).normal(50, 5, 20), 90.0]
    taken = effects(y, np.r_[np.repeat(np.arange(4), 5), 4])
    assert taken.target[-1] > 0
    assert y.mean() <= taken.level[-1] < 90


def test_ratings_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="1 ratings are not numbers"):
        effects([1.0, np.nan], [0, 0])


def test_who_rates_everything_nearly_alike_is_less_careful() -> None:
    """However well the little that varies goes with the dialogues; who spreads more gains nothing by it."""
    rng = np.random.default_rng(2)
    quality = rng.normal(size=80)
    rater = np.repeat(np.arange(4), 20)
    width = np.array([1.0, 1.0, 0.05, 5.0])[rater]
    agreement = reliability(width * (quality + 0.1 * rng.normal(size=80)), quality, rater, rater)
    assert agreement.span[2] < 0.4
    assert agreement.span[3] == 1
    assert agreement.care[2] == agreement.trust[2] * agreement.span[2] < agreement.care[0]
    assert agreement.care[3] == agreement.trust[3]
    rows = agreement.of_rows([2, -1], agreement.care)
    assert rows.tolist() == [agreement.care[2], 1.0]


def test_a_single_rating_says_nothing_of_care() -> None:
    agreement = reliability([1.0, 5.0, 2.0, 3.0], [1.0, 2.0, 1.0, 2.0], [0, 0, 1, 2], [0, 0, 0, 0])
    assert agreement.span.tolist() == [1.0, 1.0, 1.0]


def test_reliable_raters_get_more_weight() -> None:
    rng = np.random.default_rng(1)
    quality = rng.normal(size=60)
    rater = np.repeat(np.arange(3), 20)
    y = np.where(rater == 2, rng.normal(size=60), quality + 0.2 * rng.normal(size=60))
    agreement = reliability(y, quality, rater, rater)
    assert agreement.correlation[0] > 0.9 > agreement.correlation[2]
    assert agreement.trust[2] < 0.5 < agreement.trust[0]
    weights = agreement.weights(rater)
    assert weights[0] > weights[-1]
    assert np.isclose(weights.mean(), 1)


def test_who_rates_everything_the_same_is_trusted_less_than_most() -> None:
    quality = np.random.default_rng(2).normal(size=40)
    rater = np.repeat(np.arange(4), 10)
    agreement = reliability(np.where(rater == 3, 5.0, quality), quality, rater, rater)
    assert np.isnan(agreement.correlation[3])
    assert agreement.trust.argmin() == 3


def test_unknown_raters_share_the_common_correlation() -> None:
    agreement = reliability([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [-1, -1, -1], [0, 0, 0])
    assert np.array_equal(agreement.of_rows([-1, -1, -1]), np.ones(3))
