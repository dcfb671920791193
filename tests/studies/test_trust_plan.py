"""From a pilot to a plan and a study file, and a judge calibrated to people."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from palaver import UserError, ratings_from_frame
from palaver.statistics.budget import Prices
from palaver.studies.design import preset_study
from palaver.studies.simulate import example_study
from palaver.studies.trust_calibrate import trust_calibrate
from palaver.studies.trust_plan import (
    best_difference,
    dialogue_of,
    dialogues_of,
    planned_study,
    trust_plan,
)


def tables(shift: float = 0.0, n: int = 40) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(0)
    people, judge = [], []
    for i in range(n):
        raters = rng.permutation(8)[:3]
        for system in "ab":
            quality = rng.standard_normal()
            about = {"item": f"i{i}", "system": system, "criterion": "quality"}
            score = 50 + 10 * (quality + 0.4 * rng.standard_normal())
            judge.append({**about, "rater": "j", "value": score, "kind": "model"})
            for r in raters:
                value = round(4 + shift + quality + 0.5 * rng.standard_normal(), 1)
                people.append({**about, "rater": f"r{r}", "value": value})
    return pl.DataFrame(people), pl.DataFrame(judge)


def test_a_judge_makes_the_same_reach_cheaper_and_the_plan_a_study() -> None:
    people, judge = map(ratings_from_frame, tables())
    report = trust_plan(people, judge, prices=Prices(rating=0.5), available=500, reach=0.3)
    alone, helped = report.rows
    assert helped.cost <= alone.cost
    assert helped.judge_calls == 500
    assert helped.ceiling > 1
    assert "no number of verdicts" in report.words[-1]
    study = example_study(preset_study("likert"), 2, 500)
    planned = planned_study(study, helped)
    assert (len(planned.items), planned.raters_per_item) == (helped.dialogues, helped.raters_each)
    assert planned.stop == "when-sure"
    assert planned_study(study, helped) == planned


def unsure_judge(n: int = 120) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A judge that says where it is unsure, and is wrong there."""
    rng = np.random.default_rng(0)
    people, judge = [], []
    for i in range(n):
        doubt = 0.8 if i % 4 == 0 else 0.05
        for system in "ab":
            score = rng.standard_normal()
            about = {"item": f"i{i}", "system": system, "criterion": "quality"}
            judge.append({**about, "rater": "j", "value": score, "kind": "llm", "probability": 1 - doubt})
            quality = score + 2.5 * doubt * rng.standard_normal()
            for r in rng.permutation(8)[:3]:
                value = round(4 + quality + 0.3 * rng.standard_normal(), 1)
                people.append({**about, "rater": f"r{r}", "value": value})
    return pl.DataFrame(people), pl.DataFrame(judge)


def test_dialogues_of_which_the_judge_is_unsure_are_drawn_more_often() -> None:
    people, judge = unsure_judge()
    pilot = people.filter(pl.col("item").is_in([f"i{i}" for i in range(80)]))
    study = example_study(preset_study("likert"), 2, 120)
    items = [item.model_copy(update={"id": f"i{n}"}) for n, item in enumerate(study.items)]
    study = study.model_copy(update={"items": tuple(items)})
    report = trust_plan(
        ratings_from_frame(pilot), ratings_from_frame(judge), prices=Prices(rating=0.5), available=120,
        dialogues=dialogues_of(study), reach=0.65,
    )  # fmt: skip
    _, equal, chosen = report.rows
    assert chosen.plan == "people and judge, unequal draws"
    assert chosen.dialogues < equal.dialogues
    assert sum(report.sampling.values()) == pytest.approx(chosen.dialogues, abs=1e-3)
    assert report.sampling["i0"] > 1.5 * report.sampling["i1"]
    planned = planned_study(study, chosen, "quality", 0, report.sampling)
    assert len(planned.items) == chosen.dialogues
    assert {item.id: item.sampling_probability for item in planned.items}.items() <= report.sampling.items()
    assert "sampling" in report.to_json()


def pairs(n: int = 60) -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(1)
    people, judge = [], []
    for i in range(n):
        gap = 0.6 + 1.5 * rng.standard_normal()
        about = {
            "item": f"c{i}|a|b",
            "context": f"c{i}",
            "system": "a",
            "against": "b",
            "criterion": "better",
        }
        says = "win" if gap + 0.5 * rng.standard_normal() > 0 else "loss"
        judge.append({**about, "rater": "j", "value": says, "kind": "llm"})
        for r in rng.permutation(6)[:3]:
            won = "win" if gap + rng.logistic() > 0 else "loss"
            people.append({**about, "rater": f"r{r}", "value": won})
    return pl.DataFrame(people), pl.DataFrame(judge)


def test_plans_for_pairs_are_in_shares_of_wins() -> None:
    people, judge = (ratings_from_frame(frame) for frame in pairs())
    report = trust_plan(people, judge, prices=Prices(rating=1.0), available=400, reach=0.1)
    alone, helped = report.rows[:2]
    assert alone.reach <= 0.1
    assert helped.cost <= alone.cost
    assert 0 < best_difference(people) < 0.5
    powered = trust_plan(people, prices=Prices(rating=1.0), available=400, difference=0.15)
    assert powered.rows[0].power >= 0.8
    study = preset_study("pairwise")
    names = dialogues_of(study)
    assert len(names) == len({dialogue_of(item) for item in study.items})


def test_a_judge_of_pairs_is_calibrated() -> None:
    people, judge = (ratings_from_frame(frame) for frame in pairs())
    [row] = trust_calibrate(people, judge, margin=0.2).rows
    assert row.verdict in ("PASS", "INCONCLUSIVE")
    assert abs(row.error) < 0.1


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"prices": Prices(rating=0.0), "reach": 0.3}, "price of a rating"),
        ({"prices": Prices(rating=1.0, judge=-1.0), "reach": 0.3}, "price of a judge"),
        ({"prices": Prices(rating=1.0)}, "what the plan is for"),
        ({"prices": Prices(rating=1.0), "reach": 0.3, "available": 3}, "at least 10 dialogues"),
        ({"prices": Prices(rating=1.0), "reach": -1.0}, "reach: expected more than 0"),
        ({"prices": Prices(rating=1.0), "reach": 0.3, "difference": 0.3}, "what the plan is for"),
    ],
)
def test_what_cannot_be_planned_is_refused(options: dict[str, object], why: str) -> None:
    people, _ = tables()
    with pytest.raises(UserError, match=why):
        trust_plan(ratings_from_frame(people), **{"available": 100, **options})  # type: ignore[arg-type]


def test_no_study_reaches_so_far() -> None:
    people, _ = tables()
    report = trust_plan(ratings_from_frame(people), prices=Prices(rating=1.0), available=20, reach=0.001)
    assert report.rows[0].reason
    with pytest.raises(UserError, match="no plan"):
        planned_study(example_study(preset_study("likert"), 2, 30), report.rows[0])


def test_a_judge_is_calibrated_here_and_refused_elsewhere() -> None:
    people, judge = tables(n=80)
    there = tables(shift=1.5, n=80)[0]
    report = trust_calibrate(
        ratings_from_frame(people),
        ratings_from_frame(judge),
        ratings_from_frame(there),
        margin=0.5,
        threshold=4.5,
    )
    here, elsewhere = report.rows
    assert abs(here.error) < 0.2 < abs(here.raw_error)
    assert here.correlation > 0.6
    assert elsewhere.verdict == "FAIL"
    assert "must not be used" in report.words[1]
    assert "corrected for its errors" in report.words[2]


def test_a_judge_of_noise_passes_on_average_and_the_words_do_not_praise_it() -> None:
    people, judge = tables(n=300)
    rng = np.random.default_rng(0)
    noise = judge.with_columns(value=pl.Series(rng.normal(size=judge.height)))
    report = trust_calibrate(ratings_from_frame(people), ratings_from_frame(noise), margin=0.5)
    [row] = report.rows
    assert row.verdict == "PASS"
    assert abs(row.correlation) < 0.2
    assert f"correlation with single ratings is {row.correlation:.2f}" in report.words[0]
    assert "small for any judge" in report.words[0]


def test_what_cannot_be_calibrated_is_refused() -> None:
    people, judge = tables()
    flat = judge.with_columns(value=pl.lit(50.5))
    with pytest.raises(UserError, match="same score"):
        trust_calibrate(ratings_from_frame(people), ratings_from_frame(flat))
    with pytest.raises(UserError, match="margin"):
        trust_calibrate(ratings_from_frame(people), ratings_from_frame(judge), margin=0.0)
    with pytest.raises(UserError, match="one side"):
        trust_calibrate(ratings_from_frame(people), ratings_from_frame(judge), threshold=99)
