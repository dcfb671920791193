"""The rating study on the paper's own table and on small hand-made cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from palaver.comparator.rating_study import study_disagreement, study_ratings

from palaver.comparator.training_data import Pairs
from palaver.errors import DataError


def as_pairs(first: list[int], second: list[int], label: list[int]) -> Pairs:
    return Pairs(np.array(first), np.array(second), np.array(label, dtype=np.int8))


def test_table_1_of_the_paper() -> None:
    ratings = np.repeat([1, 2, 3, 4, 5], [386, 404, 566, 664, 1588])
    found = study_ratings(ratings, (1, 5))
    assert found.counts == (386, 404, 566, 664, 1588)
    assert [round(100 * f, 1) for f in found.fractions] == [10.7, 11.2, 15.7, 18.4, 44.0]
    assert found.j_shaped
    assert not found.binned
    assert round(found.top, 2) == 0.44
    assert math.isclose(found.polarity, (386 + 1588) / 3608)
    assert math.isclose(found.positive, (664 + 1588) / (386 + 404 + 664 + 1588))
    assert found.skewness < -0.5
    assert math.isclose(found.ties, sum(c * (c - 1) for c in found.counts) / (3608 * 3607))


def test_fine_scales_are_counted_in_bins() -> None:
    found = study_ratings(np.linspace(0, 100, 501), (0, 100))
    assert found.binned
    assert len(found.edges) == 11
    assert found.counts == (50,) * 9 + (51,)
    assert not found.j_shaped
    assert abs(found.skewness) < 1e-9
    assert found.ties == 0


def test_missing_ratings_are_counted_and_equal_ones_have_no_skew() -> None:
    found = study_ratings([3, math.nan, 3])
    assert (found.n, found.dropped, found.counts, found.polarity) == (2, 1, (2,), 1.0)
    assert math.isnan(found.skewness)
    assert not found.j_shaped
    assert found.ties == 1


def test_disagreement_by_delta() -> None:
    ratings = np.array([1, 2, 3, 5, math.nan, 1])
    # gaps: 1 against, 1 with, 2 with, 4 against, equal, unrated
    pairs = as_pairs([0, 1, 0, 3, 0, 0], [1, 2, 2, 0, 5, 4], [1, -1, -1, -1, 1, 1])
    found = study_disagreement(ratings, pairs)
    assert [(r.low, r.n, r.against) for r in found.rows] == [(1, 2, 1), (2, 1, 0), (4, 1, 1)]
    assert (found.overall.n, found.overall.against) == (4, 2)
    assert (found.n_equal, found.n_unrated, found.n_beyond) == (1, 1, 0)
    assert found.rows[0].rate == 0.5
    assert found.rows[0].rate_low < 0.5 < found.rows[0].rate_high
    wide = study_disagreement(ratings, pairs, deltas=[2, 3])
    assert [(r.low, r.high, r.n) for r in wide.rows] == [(2, 3, 1), (3, math.inf, 1)]
    assert wide.n_beyond == 2


def test_fine_ratings_get_rows_of_equal_size_and_noise_shrinks_with_delta() -> None:
    rng = np.random.default_rng(0)
    quality = rng.normal(size=400)
    first = rng.integers(0, 400, 4000)
    second = (first + rng.integers(1, 400, 4000)) % 400
    label = np.where(quality[first] > quality[second], 1, -1).astype(np.int8)
    found = study_disagreement(quality + rng.normal(size=400), Pairs(first, second, label))
    assert [r.n for r in found.rows] == [1000] * 4
    rates = [r.rate for r in found.rows]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.35
    assert rates[-1] < 0.15


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="no ratings"):
        study_ratings([math.nan])
    with pytest.raises(DataError, match="1 of 2 ratings lie outside the scale 1 to 5, the first is 7"):
        study_ratings([1, 7], (1, 5))
    with pytest.raises(ValueError, match="the lower first"):
        study_ratings([1], (5, 1))
    with pytest.raises(ValueError, match="bins"):
        study_ratings([1], bins=1)
    with pytest.raises(DataError, match="no compared pairs"):
        study_disagreement([1.0], as_pairs([], [], []))
    with pytest.raises(ValueError, match="outside 0 .. 0"):
        study_disagreement([1.0], as_pairs([0], [1], [1]))
    with pytest.raises(ValueError, match="rising"):
        study_disagreement([1.0, 2.0], as_pairs([0], [1], [1]), deltas=[3, 1])
