"""Which dialogues people should rate: probabilities, draws, and what they save."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.statistics.sampling import (
    EVEN_PART,
    draw_sample,
    fit_residuals,
    sampling_gain,
    sampling_probabilities,
)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.data())
def test_probabilities_add_up_and_each_is_one_at_most(variance: list[float], data: st.DataObject) -> None:
    n = data.draw(st.integers(1, len(variance)))
    chances = sampling_probabilities(variance, n)
    assert chances.sum() == pytest.approx(n)
    assert (chances > 0).all()
    assert (chances <= 1 + 1e-9).all()
    order = np.argsort(variance, kind="stable")
    assert (np.diff(chances[order]) >= -1e-9).all()  # who varies more is drawn more often
    drawn = draw_sample(chances, data.draw(st.integers(0, 99)))
    assert drawn.size == np.unique(drawn).size == n


def test_each_dialogue_is_drawn_as_often_as_its_probability_says() -> None:
    chances = sampling_probabilities([1.0, 1.0, 4.0, 9.0, 25.0], 3)
    assert chances[0] >= EVEN_PART * 3 / 5
    rng = np.random.default_rng(0)
    counts = np.zeros(5)
    for _ in range(4000):
        counts[draw_sample(chances, rng)] += 1
    assert counts / 4000 == pytest.approx(chances, abs=0.03)


def test_equal_probabilities_gain_nothing_and_good_ones_something() -> None:
    variance = np.r_[np.full(50, 0.25), np.full(50, 4.0)]
    assert sampling_gain(variance, np.full(100, 0.2)) == pytest.approx(1.0)
    assert sampling_gain(variance, sampling_probabilities(variance, 20)) < 0.85
    assert sampling_gain(variance, sampling_probabilities(variance[::-1], 20)) > 1.2


def test_the_residual_model_finds_what_uncertainty_foretells() -> None:
    rng = np.random.default_rng(1)
    unsure = rng.random(200)
    model = fit_residuals((0.3 + unsure) * rng.standard_normal(200), unsure)
    assert not model.reason
    low, high = model.variance([0.0, 1.0])
    assert low < model.mean < high
    assert model.variance([np.nan])[0] == pytest.approx(model.mean)  # unknown: as the average
    noise = fit_residuals(np.random.default_rng(2).standard_normal(200), unsure)
    assert "foretells where it is wrong" in noise.reason
    assert np.ptp(noise.variance([0.0, 1.0])) == 0
    assert "nothing tells dialogues apart" in fit_residuals(rng.standard_normal(9), np.ones(9)).reason


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 2 dialogues"):
        sampling_probabilities([1.0, 2.0], 3)
    with pytest.raises(ValueError, match="0 or more"):
        sampling_probabilities([1.0, -2.0], 1)
