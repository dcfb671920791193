"""Power: the analytic power of the normal model, level under no difference, monotone growth, the grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from palaver.statistics.power import (
    PowerGrid,
    PowerResult,
    estimate_power,
    normal_draw,
    power_grid,
    smallest_design,
)

N_STUDIES = 1500
MARGIN = 4 * math.sqrt(0.25 / N_STUDIES)  # four Monte Carlo standard errors at most


def analytic(difference, n_items, n_raters, sd_item_system, sd_noise, confidence=0.95):
    sd = math.sqrt(2 * sd_item_system**2 + 2 * sd_noise**2 / n_raters)
    effect = difference / sd * math.sqrt(n_items)
    return stats.norm.cdf(effect - stats.norm.ppf(confidence))


@pytest.mark.parametrize(
    ("difference", "n_items", "n_raters", "confidence"),
    [(0.2, 60, 3, 0.95), (0.1, 200, 3, 0.95), (0.2, 100, 5, 0.99)],
)
def test_agrees_with_the_analytic_power(difference, n_items, n_raters, confidence):
    draw = normal_draw(difference, sd_item=2, sd_rater=1, sd_item_system=0.4, sd_noise=0.8)
    result = estimate_power(
        draw, n_items, n_raters, n_studies=N_STUDIES, n_replicates=1000, confidence=confidence, rng=1
    )
    expected = analytic(difference, n_items, n_raters, 0.4, 0.8, confidence)
    assert 0.2 < expected < 0.95  # a case in which the test could fail
    # half a replicate's threshold and the bootstrap's missing n - 1 add a little to the sampling error
    assert result.power == pytest.approx(expected, abs=MARGIN + 0.01)
    assert result.mean_difference == pytest.approx(difference, abs=0.01)


def test_agrees_with_a_one_sided_paired_t_test():
    # Cohen's (1988) medium effect, d = 0.5: 27 pairs give the customary power of .80
    analytic_t = TTestPower().power(0.5, 27, 0.05, alternative="larger")
    assert analytic_t == pytest.approx(0.81, abs=0.01)
    draw = normal_draw(0.5, sd_item=0, sd_rater=0, sd_item_system=0, sd_noise=math.sqrt(0.5))
    result = estimate_power(draw, 27, 1, n_studies=N_STUDIES, rng=2)
    assert result.power == pytest.approx(analytic_t, abs=MARGIN + 0.02)


def test_only_the_right_direction_counts():
    none = estimate_power(normal_draw(0.0), 60, 3, n_studies=N_STUDIES, n_replicates=1000, rng=3)
    assert none.power == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / N_STUDIES) + 0.005)
    assert estimate_power(normal_draw(-2.0), 60, 3, n_studies=50, rng=3).power == 0
    assert estimate_power(normal_draw(2.0), 60, 3, n_studies=50, rng=3).power == 1


def test_power_rises_with_items_raters_and_difference():
    grid = power_grid(
        normal_draw(0.3, sd_noise=2.0),
        items=(20, 60, 180),
        raters=(1, 4),
        n_studies=400,
        n_replicates=300,
        rng=4,
    )
    assert grid.power.shape == (3, 2)
    assert (np.diff(grid.power, axis=0) > 0).all()
    assert (np.diff(grid.power, axis=1) > 0).all()
    more = estimate_power(normal_draw(0.6, sd_noise=2.0), 60, 1, n_studies=400, n_replicates=300, rng=4)
    assert more.power > grid.power[1, 0]


def test_items_and_raters_own_levels_cancel():
    quiet = normal_draw(0.2, sd_item=0, sd_rater=0)
    loud = normal_draw(0.2, sd_item=50, sd_rater=50)
    settings = {"n_studies": 300, "rng": 5}
    assert estimate_power(quiet, 80, 3, **settings).power == estimate_power(loud, 80, 3, **settings).power


def test_normal_draw_has_the_stated_variances():
    draw = normal_draw(1.0, sd_item=2, sd_rater=0, sd_item_system=0.5, sd_noise=1.5)
    scores = draw(200_000, 3, np.random.default_rng(0))
    within = 0.25 + 2.25 / 3
    assert scores.mean(axis=0) == pytest.approx([0, 1], abs=0.03)
    assert np.cov(scores.T) == pytest.approx(np.array([[4 + within, 4], [4, 4 + within]]), abs=0.06)


def test_wilson_interval_equals_statsmodels():
    for difference in (0.0, 0.15, 5.0):
        result = estimate_power(normal_draw(difference), 50, 2, n_studies=80, confidence=0.9, rng=6)
        low, high = proportion_confint(round(result.power * 80), 80, alpha=0.1, method="wilson")
        assert (result.low, result.high) == pytest.approx((low, high), abs=1e-9)


def test_same_seed_same_result_and_progress():
    seen = []
    one = estimate_power(
        normal_draw(0.2),
        30,
        2,
        n_studies=5,
        rng=7,
        progress=lambda what, done, total: seen.append((done, total)),
    )
    assert seen == [(i, 5) for i in range(1, 6)]
    assert one == estimate_power(normal_draw(0.2), 30, 2, n_studies=5, rng=np.random.default_rng(7))
    seen.clear()
    grid = power_grid(
        normal_draw(0.2),
        items=(5, 10),
        raters=(1,),
        n_studies=3,
        rng=7,
        progress=lambda what, done, total: seen.append((done, total)),
    )
    assert seen == [(i, 6) for i in range(1, 7)]
    assert [(r.n_items, r.n_raters) for r in grid.results] == [(5, 1), (10, 1)]


def result_of(n_items, n_raters, power):
    return PowerResult(
        power=power,
        low=0.0,
        high=1.0,
        n_items=n_items,
        n_raters=n_raters,
        confidence=0.95,
        n_studies=100,
        n_replicates=100,
        mean_difference=0.0,
        dropped=0,
        notes=(),
        reason="",
    )


def grid_of(*designs):
    return PowerGrid(
        items=(1,), raters=tuple(range(len(designs))), results=tuple(result_of(*d) for d in designs)
    )


def test_smallest_design_counts_judgements():
    grid = grid_of((100, 1, 0.7), (50, 3, 0.85), (100, 2, 0.95), (200, 1, 0.9), (75, 2, 0.81))
    smallest = smallest_design(grid)
    assert (smallest.design.n_items, smallest.design.n_raters) == (
        50,
        3,
    )  # 150 judgements, stronger than 75 x 2
    assert smallest.design.judgements == 150
    assert smallest_design(grid, target=0.9).design.power == 0.95
    assert smallest.reason == ""


def test_no_design_reaches_the_target():
    smallest = smallest_design(grid_of((10, 1, 0.2), (20, 3, 0.4), (30, 3, math.nan)))
    assert smallest.design is None
    assert smallest.reason == "no design reaches a power of 0.8; the best is 0.40 with 20 items and 3 raters"
    assert smallest_design(grid_of((10, 1, math.nan))).reason == "no design has a defined power"


def test_missing_scores_are_dropped_and_counted():
    def holes(n_items, n_raters, rng):
        scores = normal_draw(1.0)(n_items, n_raters, rng)
        scores[0, 1] = np.nan
        return scores

    result = estimate_power(holes, 40, 3, n_studies=20, rng=8)
    assert result.dropped == 20
    assert "20 items" in result.notes[0]
    assert result.power > 0.5


def test_undefined_power():
    nothing = estimate_power(lambda n, _r, _rng: np.full((n, 2), np.nan), 10, 2, n_studies=4, rng=0)
    assert all(math.isnan(v) for v in (nothing.power, nothing.low, nothing.high, nothing.mean_difference))
    assert "two items" in nothing.reason
    one_item = estimate_power(normal_draw(3.0), 1, 5, n_studies=4, rng=0)
    assert math.isnan(one_item.power)


def test_equal_systems_are_never_separated():
    result = estimate_power(lambda n, _r, _rng: np.ones((n, 2)), 10, 2, n_studies=10, confidence=0.6, rng=0)
    assert result.power == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimate_power(normal_draw(1), 0, 1, rng=0), "at least 1"),
        (lambda: estimate_power(normal_draw(1), 5, 1, n_studies=0, rng=0), "at least 1"),
        (lambda: estimate_power(normal_draw(1), 5, 1, confidence=0, rng=0), "confidence"),
        (lambda: estimate_power(lambda n, r, g: np.ones((n, 3)), 5, 1, rng=0), "shape"),
        (lambda: power_grid(normal_draw(1), items=(), raters=(1,), rng=0), "at least one"),
        (lambda: normal_draw(1, sd_noise=-1), "0 or more"),
        (lambda: smallest_design(grid_of((1, 1, 0.5)), target=1.5), "target"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
