"""Isotonic maps against scikit-learn, Rogan–Gladen by hand, and audits of a judge elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from palaver.statistics.calibration import audit_transfer, cross_calibrate, fit_isotonic, rogan_gladen


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=2, max_size=40))
def test_the_isotonic_map_is_scikit_learns(points: list[tuple[int, int]]) -> None:
    score, value = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    expected = IsotonicRegression(out_of_bounds="clip").fit(score, value).predict(score)
    assert fit_isotonic(score, value)(score) == pytest.approx(expected)


def test_a_dialogue_is_calibrated_by_others() -> None:
    rng = np.random.default_rng(0)
    score = rng.standard_normal(60)
    dialogue = np.repeat(np.arange(20), 3)
    value = score.copy()
    value[:3] = 100.0  # only the other dialogues decide what the first one's scores mean
    calibrated = cross_calibrate(score, value, dialogue, rng=0)
    assert calibrated[:3].max() < 100
    with pytest.raises(ValueError, match="at least 10 dialogues"):
        cross_calibrate(score[:9], value[:9], dialogue[:9], rng=0)


def test_rogan_gladen_by_hand() -> None:
    found = rogan_gladen(positive=40, n=100, true_positive=45, n_good=50, true_negative=40, n_bad=50)
    assert found.value == pytest.approx((0.4 + 0.8 - 1) / (0.9 + 0.8 - 1))
    z = 1.959964
    n, good, bad = 100 + z**2, 46 / 52, 41 / 52
    share, youden = (40 + z**2 / 2) / n, good + bad - 1
    value = (share + bad - 1) / youden
    of_good, of_bad = good * (1 - good) / 52, bad * (1 - bad) / 52
    centre = value + 2 * z**2 * (value * of_good - (1 - value) * of_bad)
    variance = share * (1 - share) / n + value**2 * of_good + (1 - value) ** 2 * of_bad
    assert found.interval.low == pytest.approx(centre - z * math.sqrt(variance) / youden, rel=1e-5)
    assert found.interval.high == pytest.approx(centre + z * math.sqrt(variance) / youden, rel=1e-5)
    useless = rogan_gladen(positive=40, n=100, true_positive=25, n_good=50, true_negative=25, n_bad=50)
    assert math.isnan(useless.value)
    assert "nothing can be corrected" in useless.reason


@pytest.mark.parametrize(
    ("n_good", "n_bad", "truth", "right"), [(8, 40, 0.8, 0.9), (10, 10, 0.1, 0.95), (30, 30, 0.1, 0.92)]
)
def test_the_corrected_share_is_covered_with_few_known_outputs(
    n_good: int, n_bad: int, truth: float, right: float
) -> None:
    """The delta method covers 63% to 90% of these: a judge right about all of eight looks perfect."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        found = rogan_gladen(
            positive=rng.binomial(300, truth * right + (1 - truth) * (1 - right)), n=300,
            true_positive=rng.binomial(n_good, right), n_good=n_good,
            true_negative=rng.binomial(n_bad, right), n_bad=n_bad,
        )  # fmt: skip
        covered += found.interval.low <= truth <= found.interval.high
    assert covered / 300 > 0.93


def test_a_perfect_judge_needs_no_correction() -> None:
    found = rogan_gladen(positive=30, n=90, true_positive=20, n_good=20, true_negative=20, n_bad=20)
    assert found.value == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("shift", "n", "verdict"), [(0.0, 200, "PASS"), (1.0, 200, "FAIL"), (0.0, 8, "INCONCLUSIVE")]
)
def test_audits(shift: float, n: int, verdict: str) -> None:
    rng = np.random.default_rng(1)
    dialogue, rater = np.repeat(np.arange(n), 4), np.tile(np.arange(4), n)
    calibrated = rng.standard_normal(4 * n)
    value = calibrated + shift + 0.8 * rng.standard_normal(4 * n)
    assert audit_transfer(value, calibrated, dialogue, rater, margin=0.3).verdict == verdict


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="margin"):
        audit_transfer([1.0], [1.0], [0], None, margin=0.0)
