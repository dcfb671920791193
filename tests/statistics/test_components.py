"""Variance components, against ratings drawn with known ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from palaver.statistics.components import Components, estimate_components
from palaver.statistics.power import estimate_power, normal_draw

TRUE = {"sd_item": 0.6, "sd_rater": 0.5, "sd_item_system": 0.4, "sd_noise": 0.8}


def pilot(n_items: int, n_raters: int, seed: int, *, crossed: bool = True, n_pool: int = 40) -> Components:
    """Two systems 0.3 apart. Crossed: whoever judges an item judges both outputs of it."""
    rng = np.random.default_rng(seed)
    item_effect = rng.normal(0, TRUE["sd_item"], n_items)
    rater_effect = rng.normal(0, TRUE["sd_rater"], n_pool)
    rows = []
    for i in range(n_items):
        crew = rng.permutation(n_pool)
        for s in range(2):
            level = 0.3 * s + item_effect[i] + rng.normal(0, TRUE["sd_item_system"])
            raters = crew[:n_raters] if crossed else crew[s * n_raters : (s + 1) * n_raters]
            rows += [(i, s, r, level + rater_effect[r] + rng.normal(0, TRUE["sd_noise"])) for r in raters]
    item, system, rater, score = (np.array(column) for column in zip(*rows, strict=True))
    return estimate_components(score, item, system, rater)


@pytest.mark.parametrize("crossed", [True, False])
def test_known_deviations_come_back(crossed: bool) -> None:
    estimates = [pilot(150, 3, seed, crossed=crossed) for seed in range(4)]
    for name, true in TRUE.items():
        mean = np.mean([getattr(one, name.removeprefix("sd_")) ** 2 for one in estimates])
        assert math.sqrt(mean) == pytest.approx(true, rel=0.2), name
    assert np.mean([one.means[1] - one.means[0] for one in estimates]) == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize(("n_items", "n_raters"), [(60, 1), (40, 4)])
def test_a_pilot_gives_the_power_of_the_design_it_was_drawn_from(n_items: int, n_raters: int) -> None:
    draws = [normal_draw(0.3, **TRUE), *(pilot(100, 3, seed).draw(0.3) for seed in (1, 2))]
    true, *planned = (
        estimate_power(draw, n_items, n_raters, n_studies=300, n_replicates=200, rng=0).power
        for draw in draws
    )
    assert planned == pytest.approx([true, true], abs=0.12)


def test_one_rating_an_output_is_said_aloud() -> None:
    once = pilot(80, 1, 0, n_pool=1000)
    assert math.isnan(once.noise)
    assert "rated once" in once.notes[0]
    together = math.hypot(TRUE["sd_item_system"], TRUE["sd_noise"])
    assert once.item_system == pytest.approx(together, rel=0.25)
    assert np.isfinite(once.draw(0.3)(5, 2, np.random.default_rng(0))).all()


def test_what_cannot_be_compared() -> None:
    one = np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match="two items and two systems"):
        estimate_components(np.arange(4.0), one, np.arange(4), one)
    with pytest.raises(ValueError, match="no item has outputs of two systems"):
        estimate_components(np.arange(4.0), np.arange(4), np.array([0, 0, 1, 1]), one)
