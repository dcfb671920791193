"""The rating study on the paper's own table and on small hand-made cases."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from palaver.errors import DataError

_PATH = Path(__file__).parents[2] / "experiments" / "comparator" / "rating_study.py"
_spec = importlib.util.spec_from_file_location("rating_study", _PATH)
assert _spec is not None
assert _spec.loader is not None
rating_study = importlib.util.module_from_spec(_spec)
sys.modules["rating_study"] = rating_study  # where a dataclass looks for its module
_spec.loader.exec_module(rating_study)
study_ratings = rating_study.study_ratings


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
