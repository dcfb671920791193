"""Simulated raters: seeded, with a truth that the analysis finds again."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.readers.rating_files import iter_ratings, write_frames
from palaver.schema import Checkboxes, Likert, Magnitude, Pairwise, Slider, Study
from palaver.statistics.power import estimate_power
from palaver.studies import (
    PRESETS,
    Analysis,
    Habits,
    analyse,
    example_study,
    power_draw,
    read_ratings,
    simulate,
)
from palaver.studies.design import preset_study
from palaver.studies.screens import plan_screens, shown_order
from palaver.studies.simulate import Simulation

pytestmark = pytest.mark.filterwarnings("error")

STEADY = Habits(bias=0.2, spread=0.1, noise=0.4, careless=0, j_shaped=0, item=0.3, item_system=0.2)


def analysed(simulated: Simulation, folder: Path, n_replicates: int = 200) -> Analysis:
    write_frames([simulated.frame], folder / "r.parquet")
    table = read_ratings(folder / "r.parquet", study=simulated.study)
    return analyse(table, study=simulated.study, n_replicates=n_replicates)


def big_study(preset: str, n_systems: int = 3, n_items: int = 90, layout: str | None = None) -> Study:
    return example_study(preset_study(preset, layout=layout), n_systems, n_items, raters_per_item=3)


# --- truth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_the_analysis_finds_the_truth_again(preset: str, tmp_path: Path) -> None:
    simulated = simulate(big_study(preset), n_raters=12, gap=1.0, habits=STEADY, seed=1)
    found = analysed(simulated, tmp_path)
    assert found.notes == ()
    for row in found.ranking:
        truth = simulated.truth[row.criterion.split(":")[0]]
        order = sorted(truth, key=lambda s: -truth[s])
        if ":" not in row.criterion:
            assert row.groups == tuple((system,) for system in order) or row.reason, (
                row.criterion,
                row.method,
            )
        else:  # the boxes are ticked by chance; the worst is never separated as best
            assert row.groups[0][0] != order[-1] or len(row.groups[0]) > 1
    assert any(row.method == "bootstrap" and row.groups for row in found.ranking)


def test_truth_as_the_user_gives_it(tmp_path: Path) -> None:
    truth = {"system-A": 0.0, "system-B": 2.0, "system-C": -2.0}
    simulated = simulate(big_study("likert"), truth=truth, habits=STEADY)
    for by_system in simulated.truth.values():
        assert sorted(by_system, key=lambda s: -by_system[s]) == ["system-B", "system-A", "system-C"]
        assert math.fsum(by_system.values()) == pytest.approx(0)
    found = analysed(simulated, tmp_path)
    assert {
        row.groups for row in found.ranking if row.method == "bootstrap" and ":" not in row.criterion
    } == {(("system-B",), ("system-A",), ("system-C",))}


def test_equal_systems_are_not_told_apart(tmp_path: Path) -> None:
    """At 95% (one-sided) chance separates about one pair in ten; every one would be a bug."""
    separated = 0
    for seed in range(8):
        found = analysed(
            simulate(big_study("plain-me", 2, 40), gap=0.0, habits=STEADY, seed=seed), tmp_path, 100
        )
        separated += sum(len(row.groups) > 1 for row in found.ranking if row.method == "bootstrap")
    assert separated <= 13  # of 8 studies x 5 rankings


# --- the design is kept ---------------------------------------------------------------------------------


@given(
    preset=st.sampled_from(list(PRESETS)),
    layout=st.sampled_from(["joint", "separate"]),
    order=st.sampled_from(["counterbalanced", "random", "fixed"]),
    n_systems=st.integers(2, 4),
    n_items=st.integers(1, 6),
    per_item=st.integers(1, 3),
    extra=st.integers(0, 4),
    seed=st.integers(0, 10),
)
@settings(max_examples=40, deadline=None)
def test_every_item_is_judged_as_the_study_says(
    preset: str, layout: str, order: str, n_systems: int, n_items: int, per_item: int, extra: int, seed: int
) -> None:
    base = preset_study(preset, layout=layout).model_copy(update={"order": order})
    study = example_study(base, n_systems, n_items, raters_per_item=per_item)
    frame = simulate(study, n_raters=per_item + extra, seed=seed).frame
    rows = frame.to_dicts()
    keys = Counter((r["criterion"], r["item"], r["system"], r["rater"]) for r in rows)
    assert max(keys.values()) == 1
    for question, item in itertools.product(study.questions, study.items):
        mine = [r for r in rows if (r["criterion"], r["item"]) == (question.criterion, item.id)]
        raters = {r["rater"] for r in mine}
        assert len(raters) == per_item
        paired = isinstance(question.scale, Pairwise)
        assert len(mine) == per_item * (1 if paired else len(item.outputs))
        for rater in raters:
            positions = sorted(r["shown_position"] for r in mine if r["rater"] == rater)
            assert paired or positions == list(range(len(item.outputs)))
        for row in mine:
            question.scale.parse(row["value"])  # within the scale
            assert (row["against"] is not None) == paired
            if order == "fixed" and not paired:
                assert item.outputs[row["shown_position"]].system == row["system"]


@pytest.mark.parametrize("preset", ["rankme", "likert", "snippet"])
def test_criteria_of_one_screen_share_its_raters_and_its_order(preset: str) -> None:
    frame = simulate(big_study(preset, layout="joint"), n_raters=10).frame
    screens: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
    for row in frame.to_dicts():
        screen = screens.setdefault((row["item"], row["rater"]), {})
        screen.setdefault(row["criterion"], {})[row["system"]] = row["shown_position"]
    n_criteria = frame["criterion"].n_unique()
    for by_criterion in screens.values():
        assert len(by_criterion) == n_criteria
        assert len({tuple(sorted(p.items())) for p in by_criterion.values()}) == 1


def test_separate_criteria_have_crews_of_their_own() -> None:
    frame = simulate(big_study("rankme", layout="separate"), n_raters=12).frame
    crews: dict[str, set[tuple[str, str]]] = {
        str(c): set(frame.filter(pl.col("criterion") == c).select("item", "rater").rows())
        for c in frame["criterion"].unique()
    }
    assert crews["content"] == crews["quality"]  # beside it
    assert crews["naturalness"] != crews["quality"]


@pytest.mark.parametrize("order", ["counterbalanced", "random"])
def test_positions_are_fair(order: str) -> None:
    base = preset_study("rankme").model_copy(update={"order": order})
    study = example_study(base, 4, 200, raters_per_item=4)
    frame = simulate(study).frame.filter(pl.col("criterion") == "quality")
    counts = np.array(
        frame.group_by("system", "shown_position").len().sort("system", "shown_position")["len"], dtype=int
    ).reshape(4, 4)
    if order == "counterbalanced":
        assert (counts == 200).all()  # every system as often in every place
    else:
        assert np.abs(counts - 200).max() < 5 * math.sqrt(200)
        assert (counts != 200).any()


@pytest.mark.parametrize("order", ["counterbalanced", "random", "fixed"])
@pytest.mark.parametrize("preset", ["rankme", "pairwise"])
def test_outputs_stand_where_the_server_would_show_them(preset: str, order: str) -> None:
    base = preset_study(preset).model_copy(update={"order": order, "seed": 5})
    study = example_study(base, 3, 7, raters_per_item=4)
    systems = {item.id: [o.system for o in item.outputs] for item in study.items}
    stood: dict[tuple[str, str], dict[str, dict[int, str]]] = {}
    for row in simulate(study, n_raters=9).frame.to_dicts():  # raters of a screen in the order they came
        raters = stood.setdefault((row["criterion"], row["item"]), {})
        raters.setdefault(row["rater"], {})[row["shown_position"]] = row["system"]
    for screen in plan_screens(study):
        names = systems[screen.item]
        for criterion in screen.criteria:
            for turn, (rater, places) in enumerate(stood[criterion, screen.item].items()):
                served = shown_order(study, screen, len(names), turn, rater)
                assert places.items() <= {p: names[o] for p, o in enumerate(served)}.items()


def test_time_passes_for_every_rater() -> None:
    frame = simulate(big_study("rankme")).frame
    assert frame["seconds"].min() > 0  # type: ignore[operator]
    for _, mine in frame.group_by("rater", "criterion"):
        assert mine["given_at"].is_sorted()
        assert mine["given_at"].n_unique() == mine.height


# --- seeds and files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_the_same_seed_gives_the_same_ratings(preset: str) -> None:
    study = big_study(preset, n_items=10)
    one, two, other = (simulate(study, seed=seed) for seed in (3, 3, 4))
    assert one.frame.equals(two.frame)
    assert (one.truth, one.careless) == (two.truth, two.careless)
    assert not one.frame.equals(other.frame)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_format_holds_the_same_ratings(ending: str, tmp_path: Path) -> None:
    simulated = simulate(big_study("rankme", n_items=5))
    path = tmp_path / f"r.{ending}"
    assert write_frames([simulated.frame], path) == simulated.frame.height
    read = list(iter_ratings(path))
    assert [(r.item, r.system, r.rater, r.criterion) for r in read] == simulated.frame.select(
        "item", "system", "rater", "criterion"
    ).rows()
    assert [r.given_at for r in read] == simulated.frame["given_at"].to_list()


def test_whole_numbers_are_written_whole() -> None:
    frame = simulate(big_study("rankme", n_items=5)).frame.filter(pl.col("criterion") == "quality")
    assert not any("." in value for value in frame["value"])


# --- habits ---------------------------------------------------------------------------------------------


def test_careless_raters_are_found(tmp_path: Path) -> None:
    habits = Habits(careless=0.2, j_shaped=0)
    simulated = simulate(big_study("rankme", 4, 80), n_raters=15, habits=habits, seed=3, gap=0.8)
    assert len(simulated.careless) == 3
    found = analysed(simulated, tmp_path, 20)
    flagged = {row.rater for row in found.raters if row.flags}
    assert set(simulated.careless) <= flagged
    assert len(flagged - set(simulated.careless)) <= 1
    for row in found.raters:
        if row.rater in simulated.careless:
            assert {"too fast", "disagrees"} <= set(row.flags)


def values_of(habits: Habits, seed: int = 0) -> Counter[str]:
    frame = simulate(big_study("likert", 3, 120), n_raters=10, habits=habits, gap=0.2, seed=seed).frame
    return Counter(frame.filter(pl.col("criterion") == "quality")["value"].to_list())


def test_j_shaped_raters_make_j_shaped_distributions() -> None:
    """Most at the top, few in the middle, more again at the bottom (Liang et al. 2020, section 3)."""
    shaped = values_of(Habits(j_shaped=1, careless=0))
    total = shaped.total()
    assert shaped["6"] / total > 0.5
    assert shaped["1"] > shaped["2"] + shaped["3"]
    honest = values_of(Habits(j_shaped=0, careless=0))
    assert honest["6"] / total < 0.3
    assert honest["1"] < honest["2"] + honest["3"]


def test_exact_shares_of_careless_raters() -> None:
    study = big_study("likert", n_items=2)
    for n, share in itertools.product([5, 10, 20], [0.0, 0.2, 0.4, 1.0]):
        simulated = simulate(study, n_raters=n, habits=Habits(careless=share, j_shaped=0))
        assert len(simulated.careless) == round(share * n)


def test_no_ties_where_none_are_permitted() -> None:
    base = preset_study("pairwise")
    question = base.questions[0].model_copy(update={"scale": Pairwise(ties=False)})
    study = example_study(base.model_copy(update={"questions": (question,)}), 3, 30)
    assert set(simulate(study).frame["value"]) == {"win", "loss"}
    alike = Habits(bias=0, spread=0, noise=0, item=0, item_system=0, careless=0)
    assert set(simulate(study, gap=0.0, habits=alike).frame["value"]) == {"win", "loss"}


# --- bad settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "habits",
    [
        {"bias": -0.1},
        {"spread": -1},
        {"noise": math.nan},
        {"item": math.inf},
        {"item_system": -1},
        {"careless": -0.1},
        {"careless": 0.7, "j_shaped": 0.4},
        {"careless": math.nan},
        {"j_shaped": 1.1},
    ],
)
def test_impossible_habits(habits: Mapping[str, float]) -> None:
    with pytest.raises(ValueError, match=r"expected|share"):
        Habits(**habits)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_raters": 2}, "3 raters per item cannot be drawn from 2"),
        ({"truth": {"system-A": 1.0}}, "expected a number for each of system-A, system-B"),
        ({"truth": {}}, "found none"),
        ({"truth": {"system-A": 1.0, "system-B": 0.0, "zzz": 2.0}}, "zzz"),
        ({"truth": {"system-A": math.nan, "system-B": 0.0}}, "finite"),
        ({"gap": math.inf}, "finite"),
        ({"seed": -1}, "seed"),
    ],
)
def test_impossible_simulations(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        simulate(big_study("rankme", 2, 3), **options)


@pytest.mark.parametrize(
    ("preset", "n_systems", "n_items", "per_item", "possible"),
    [
        ("likert", 1, 1, 1, True),
        ("likert", 0, 1, 1, False),
        ("likert", 1, 0, 1, False),
        ("likert", 1, 1, 0, False),
        ("rankme", 1, 3, 1, False),
        ("pairwise", 1, 3, 1, False),
        ("pairwise", 30, 3, 1, True),
    ],
)
def test_example_studies(preset: str, n_systems: int, n_items: int, per_item: int, possible: bool) -> None:
    base = preset_study(preset)
    if not possible:
        with pytest.raises(ValueError, match="expected at least"):
            example_study(base, n_systems, n_items, raters_per_item=per_item)
        return
    study = example_study(base, n_systems, n_items, raters_per_item=per_item)
    assert Study.model_validate(study.model_dump()) == study  # a sound design
    assert len(study.items) == n_items


def test_every_pair_of_systems_takes_its_turn() -> None:
    study = example_study(preset_study("pairwise"), 4, 12)
    pairs = Counter(tuple(o.system for o in item.outputs) for item in study.items)
    assert len(pairs) == 6
    assert set(pairs.values()) == {2}


# --- power ----------------------------------------------------------------------------------------------


def power(scale: Any, n_items: int, n_raters: int, difference: float = 0.3) -> float:
    draw = power_draw(scale, difference=difference)
    return estimate_power(draw, n_items, n_raters, n_studies=120, n_replicates=100, rng=0).power


@pytest.mark.parametrize("scale", [Likert(), Magnitude(), Slider()])
def test_power_rises_with_items_raters_and_the_difference(scale: Any) -> None:
    base = power(scale, 20, 1)
    assert power(scale, 120, 1) > base + 0.15
    assert power(scale, 20, 8) > base + 0.1
    assert power(scale, 20, 1, difference=1.5) > base + 0.3


def test_without_a_difference_power_is_the_error_rate() -> None:
    assert power(Likert(), 60, 3, difference=0.0) < 0.15


def test_power_draws_are_what_the_statistics_expect() -> None:
    scores = power_draw(Likert(), difference=5.0)(7, 2, np.random.default_rng(0))
    assert scores.shape == (7, 2)
    assert (scores[:, 1] >= scores[:, 0]).all()
    assert ((scores >= 1) & (scores <= 6)).all()


@pytest.mark.parametrize("scale", [Pairwise(), Checkboxes()])
def test_power_needs_numbers(scale: Any) -> None:
    with pytest.raises(ValueError, match="scales of numbers"):
        power_draw(scale, difference=0.3)


def test_power_needs_a_finite_difference() -> None:
    with pytest.raises(ValueError, match="difference"):
        power_draw(Likert(), difference=math.nan)
