"""People beside a judge: how they are matched, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from palaver import UserError, ratings_from_frame
from palaver.studies.trust_ppi import describe_worth, trust_ppi

RNG = np.random.default_rng(7)
QUALITY = RNG.standard_normal((120, 2))


def people(n: int = 30, **more: object) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        {
            "item": f"i{i}",
            "system": system,
            "rater": f"r{r}",
            "criterion": "quality",
            "value": round(4 + QUALITY[i, s] + 0.5 * rng.standard_normal(), 1),
            **more,
        }
        for i in range(n)
        for s, system in enumerate("ab")
        for r in rng.permutation(6)[:3]
    ]
    return pl.DataFrame(rows)


def judge(noise: float = 0.5, name: str = "j", **more: object) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    rows = [
        {
            "item": f"i{i}",
            "system": system,
            "rater": name,
            "criterion": "goodness",
            "value": 50 + 10 * (QUALITY[i, s] + noise * rng.standard_normal()),
            "kind": "model",
            **more,
        }
        for i in range(120)
        for s, system in enumerate("ab")
    ]
    return pl.DataFrame(rows)


def test_a_judge_on_another_scale_makes_people_more_certain() -> None:
    report = trust_ppi(ratings_from_frame(people()), ratings_from_frame(judge()))
    assert [(row.what, row.system, row.against) for row in report.rows] == [
        ("mean", "a", ""),
        ("mean", "b", ""),
        ("difference", "a", "b"),
    ]
    for row in report.rows:
        assert row.high - row.low < row.people_high - row.people_low
        assert (row.n_rated, row.n_unrated) == (30, 90)
        assert row.worth_dialogues > 0
    assert "worth" in report.words[0]


def test_a_judge_against_people_is_left_out_with_the_reason() -> None:
    turned = judge().with_columns(value=-pl.col("value"))
    report = trust_ppi(ratings_from_frame(people()), ratings_from_frame(turned))
    assert all(row.weight == 0 and "correlation" in row.reason for row in report.rows)
    assert report.rows[0].low == report.rows[0].people_low


def test_pairs_get_win_rates_and_strengths() -> None:
    rng = np.random.default_rng(3)

    def word(gap: float) -> str:
        return "tie" if abs(gap) < 0.2 else "win" if gap > 0 else "loss"

    def row(i: int, rater: str, noise: float) -> dict[str, object]:
        gap = 0.4 + QUALITY[i, 0] - QUALITY[i, 1] + noise * rng.standard_normal()
        return {
            "item": f"c{i}|a|b",
            "context": f"c{i}",
            "system": "a",
            "against": "b",
            "rater": rater,
            "criterion": "better",
            "value": word(gap),
            "shown_position": int(rng.integers(2)),
        }

    asked = pl.DataFrame([row(i, f"r{r}", 0.7) for i in range(40) for r in range(3)])
    verdicts = pl.DataFrame([{**row(i, "j", 0.4), "kind": "llm"} for i in range(120)])
    report = trust_ppi(ratings_from_frame(asked), ratings_from_frame(verdicts))
    assert [found.what for found in report.rows] == ["win rate", "strength"]
    assert report.rows[0].value > 0.5
    assert report.rows[1].value > 0
    assert any("shown first adds" in note for note in report.notes)


def test_several_judges_and_criteria_must_be_named() -> None:
    table = ratings_from_frame(pl.concat([judge(), judge(name="k")]))
    with pytest.raises(UserError, match="2 judges"):
        trust_ppi(ratings_from_frame(people()), table)
    assert trust_ppi(ratings_from_frame(people()), table, judge="k").rows
    with pytest.raises(UserError, match="no judge 'kk'"):
        trust_ppi(ratings_from_frame(people()), table, judge="kk")
    two = pl.concat([judge(), judge().with_columns(criterion=pl.lit("fluency"))])
    with pytest.raises(UserError, match="several criteria"):
        trust_ppi(ratings_from_frame(people()), ratings_from_frame(two))


def test_without_a_name_the_criterion_is_one_that_both_rated() -> None:
    relevance = people().with_columns(criterion=pl.lit("relevance"))
    asked = ratings_from_frame(pl.concat([relevance, people()]))
    judged = [judge().with_columns(criterion=pl.lit(name)) for name in ("words", "quality")]
    table = ratings_from_frame(pl.concat(judged))
    assert {row.criterion for row in trust_ppi(asked, table).rows} == {"quality"}
    named = trust_ppi(asked, table, criterion="relevance", judge_criterion="words")
    assert {row.criterion for row in named.rows} == {"relevance"}


def test_a_judge_without_overlap_is_refused_with_both_sides_shown() -> None:
    elsewhere = judge().with_columns(item="x" + pl.col("item"))
    with pytest.raises(UserError, match="rated nothing that people rated") as error:
        trust_ppi(ratings_from_frame(people()), ratings_from_frame(elsewhere))
    assert "people: i0" in error.value.problems[0]
    assert "j: xi0" in error.value.problems[1]


def test_verdicts_that_do_not_shorten_the_interval_are_not_praised() -> None:
    row = trust_ppi(ratings_from_frame(people()), ratings_from_frame(judge())).rows[0]
    [plain] = describe_worth(row, "j")
    assert "not shorter" not in plain
    [told] = describe_worth(replace(row, low=row.people_low - 0.1, high=row.people_high), "j")
    assert told.endswith("; yet the interval is not shorter, as people or dialogues are few")


def test_a_judge_that_says_one_thing_has_no_ceiling() -> None:
    same = judge().with_columns(pl.lit(50.0).alias("value"))
    report = trust_ppi(ratings_from_frame(people()), ratings_from_frame(same))
    assert all(math.isnan(row.ceiling) and row.weight == 0 for row in report.rows)
