"""Planning with a pilot, against the study that the pilot was drawn from."""

from __future__ import annotations

import polars as pl
import pytest

from palaver.errors import DataError, UserError
from palaver.schema import Likert, RankMagnitude
from palaver.statistics.power import estimate_power
from palaver.studies import example_study, power_draw, ratings_from_frame, simulate
from palaver.studies.design import preset_study
from palaver.studies.pilot import read_pilot
from palaver.studies.ratings import RatingTable
from palaver.studies.simulate import difference_of_points


def pilot_of(preset: str, n_items: int = 150, seed: int = 1) -> RatingTable:
    study = example_study(preset_study(preset), 2, n_items)
    simulation = simulate(study, n_raters=60, seed=seed)
    return ratings_from_frame(simulation.frame, study=study)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_pilot_gives_the_power_of_the_study_it_was_drawn_from(seed: int) -> None:
    scale = Likert(low=1, high=6)
    draws = [
        power_draw(scale, difference=difference_of_points(scale, 0.4)),
        read_pilot(pilot_of("likert", seed=seed), "quality").draw(0.4),
    ]
    known, planned = (
        estimate_power(draw, 40, 3, n_studies=200, n_replicates=100, rng=0).power for draw in draws
    )
    assert 0.3 < known < 0.95
    assert planned == pytest.approx(known, abs=0.15)


def test_points_are_differences_of_means() -> None:
    units = difference_of_points(Likert(low=1, high=6), 0.5)
    assert 0.3 < units < 0.6  # about 1.2 points a unit: ends and top-heavy raters draw means together
    assert difference_of_points(Likert(low=1, high=6), 1.0) > 1.8 * units
    with pytest.raises(ValueError, match="measures ratios"):
        difference_of_points(RankMagnitude(), 0.5)
    with pytest.raises(ValueError, match="no system lies 7 points above"):
        difference_of_points(Likert(low=1, high=6), 7)


def test_what_a_pilot_says() -> None:
    pilot = read_pilot(pilot_of("likert", n_items=40))
    assert pilot.criterion == "informativeness"
    assert pilot.systems == ("system-A", "system-B")
    assert pilot.best_difference == pytest.approx(abs(pilot.components.means[0] - pilot.components.means[1]))
    assert pilot.rater_unit == pytest.approx(pilot.components.noise / 0.7)
    assert read_pilot(pilot_of("rankme", n_items=20)).is_ratio


def test_what_is_no_pilot() -> None:
    table = pilot_of("likert", n_items=5)
    with pytest.raises(UserError, match="did you mean 'quality'"):
        read_pilot(table, "qualty")
    with pytest.raises(UserError, match="'content' has none"):
        read_pilot(table, "content")
    with pytest.raises(DataError, match="there are none by people"):
        read_pilot(pilot_of("pairwise", n_items=5))
    one = table.frame.filter(pl.col("system").cast(pl.String) == "system-A")
    rows = one.select("item", "system", "rater", "criterion", "value").drop_nulls()
    with pytest.raises(DataError, match="two items and two systems"):
        read_pilot(ratings_from_frame(rows))
