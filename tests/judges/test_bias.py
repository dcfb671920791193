"""What moves a judge of pairs: habits that were put in are found again, and told in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from palaver import ratings_from_frame
from palaver.errors import DataError
from palaver.judges.bias import bias_report
from palaver.judges.families import families_of, own_family
from palaver.reports.bias import bias_page, sentences
from palaver.schema import Response

STRENGTH = {"gemma-2": 0.0, "llama-3": 0.5, "qwen-7": 1.0}


def words(item: int, system: str) -> int:
    return 20 + (item * 7 + len(system) * 13) % 60


def texts() -> list[Response]:
    return [
        Response(id=f"q{i}", system=s, response="word " * words(i, s)) for i in range(120) for s in STRENGTH
    ]


def play(
    judge: str, *, position: float = 0.0, length: float = 0.0, own: float = 0.0, seed: int = 0
) -> list[Any]:
    rng = np.random.default_rng(seed)
    rows = []
    names = sorted(STRENGTH)
    for i in range(120):
        for place, a in enumerate(names):
            for b in names[place + 1 :]:
                for shown in (0, 1):
                    sign = 1 if shown == 0 else -1
                    logit = STRENGTH[a] - STRENGTH[b] + sign * position
                    logit += length * math.log2((words(i, a) + 1) / (words(i, b) + 1))
                    logit += own * ((a[:4] == judge[:4].lower()) - (b[:4] == judge[:4].lower()))
                    wins = rng.random() < 1 / (1 + math.exp(-logit))
                    rows.append({
                        "item": f"q{i}|{a}|{b}", "context": f"q{i}", "system": a, "against": b,
                        "rater": judge,
                        "criterion": "better", "value": "win" if wins else "loss", "shown_position": shown,
                        "repeat": shown, "kind": "llm",
                    })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def report() -> Any:
    rows = [
        *play("fair", seed=1), *play("first", position=1.5, seed=2), *play("long", length=1.0, seed=3),
        *play("Gemma-4", own=1.2, seed=4), *play("other", seed=5),
    ]  # fmt: skip
    return bias_report(ratings_from_frame(pl.DataFrame(rows)), responses=texts())


def row_of(report: Any, judge: str) -> Any:
    return next(row for row in report.rows if row.judge == judge)


def test_a_fair_judge_has_no_habits(report: Any) -> None:
    fair = row_of(report, "fair")
    assert fair.position_low < 0 < fair.position_high
    assert fair.length_low < 0 < fair.length_high
    assert abs(fair.decided_by_place) < 0.1
    assert fair.n == fair.n_both_orders * 2 == 720


def test_the_pull_of_the_first_place_is_found(report: Any) -> None:
    first = row_of(report, "first")
    assert first.position_low < 1.5 < first.position_high
    assert first.decided_by_place > 0.4
    assert "prefers what stands first" in " ".join(sentences(first))
    naive = [abs(rate.one_order - rate.both_orders) for rate in report.win_rates if rate.judge == "first"]
    assert max(naive) > 0.1


def test_length_is_found_and_not_taken_for_place(report: Any) -> None:
    long = row_of(report, "long")
    assert long.length_low < 1.0 < long.length_high
    assert long.position_low < 0 < long.position_high
    assert "prefers longer outputs" in sentences(long)


def test_own_family_is_what_the_other_judges_do_not_say(report: Any) -> None:
    gemma = row_of(report, "Gemma-4")
    assert gemma.own_low > 0
    assert math.isnan(row_of(report, "fair").own)
    assert "own family" in " ".join(row_of(report, "fair").reasons)


def test_an_own_family_that_wins_alike_on_every_item_has_no_interval() -> None:
    """One of three other judges says what the judge says: thirds are rounded, and yet the same."""
    comparisons = [
        {"item": f"q{i}", "first": first, "second": second, "own": float(first == "gemma-a")}
        for i in range(12)
        for first, second in (("gemma-a", "b"), ("b", "gemma-a"))
    ]
    own = pl.DataFrame([{**row, "judge": "gemma", "outcome": row["own"]} for row in comparisons])
    others = pl.DataFrame([
        {**row, "judge": judge, "outcome": row["own"] if agrees else 1 - row["own"]}
        for judge, agrees in (("x", True), ("y", False), ("z", False))
        for row in comparisons
    ])  # fmt: skip
    family = families_of(["gemma", "gemma-a", "b", "x", "y", "z"], {})
    effect, reason = own_family("gemma", own, others, others.clear(), family, 0.95)
    assert effect.value == pytest.approx(2 / 3)
    assert math.isnan(effect.low)
    assert math.isnan(effect.p)
    assert "the same on every item" in reason


def test_judges_are_compared_with_each_other(report: Any) -> None:
    assert len(report.pairs) == 10
    assert all(-1 <= pair.kappa <= 1 and pair.n == 360 for pair in report.pairs)


def test_a_judge_that_always_says_first() -> None:
    rows = play("deaf")
    for row in rows:
        row["value"] = "win" if row["shown_position"] == 0 else "loss"
    report = bias_report(ratings_from_frame(pl.DataFrame(rows)))
    deaf = report.rows[0]
    assert deaf.first_share == 1.0
    assert deaf.consistency == 0.0
    assert "always chooses what stands first" in sentences(deaf)[0]
    assert all(rate.both_orders == 0.5 for rate in report.win_rates)


def test_without_places_or_pairs_there_is_nothing_to_tell() -> None:
    rows = play("blind")
    for row in rows:
        del row["shown_position"]
    with pytest.raises(DataError, match="what stood first"):
        bias_report(ratings_from_frame(pl.DataFrame(rows)))
    single = pl.DataFrame({"item": ["a"], "system": ["s"], "rater": ["r"], "criterion": ["q"], "value": [3]})
    with pytest.raises(DataError, match="no pairwise criterion"):
        bias_report(ratings_from_frame(single))


def test_a_judge_without_exceptions_has_no_estimate() -> None:
    rows = play("sure")
    for row in rows:
        row["value"] = "win" if STRENGTH[row["system"]] > STRENGTH[row["against"]] else "loss"
    [sure] = bias_report(ratings_from_frame(pl.DataFrame(rows)), responses=texts()).rows
    assert sure.consistency == 1.0
    assert math.isnan(sure.position)
    assert math.isnan(sure.length)
    told = " ".join(sentences(sure))
    assert "without exception" in told
    assert "prefers" not in told


def test_people_beside_judges(report: Any) -> None:
    """Agreement with people, and the own family beside people instead of other judges."""
    rows = [*play("Gemma-4", own=1.2, seed=4), *play("Gemma-3", own=1.2, seed=6)]
    people = [
        {**row, "rater": f"p{k % 3}", "kind": "human", "repeat": None}
        for k, row in enumerate(play("p", seed=7))
    ]
    for row in people[::2]:
        row["shown_position"] = None
    both = bias_report(ratings_from_frame(pl.DataFrame([*rows, *people])), responses=texts())
    assert {row.judge for row in both.rows} == {"Gemma-4", "Gemma-3"}
    assert next((pair.a, pair.b) for pair in both.pairs) == ("people", "Gemma-4")
    assert row_of(both, "Gemma-4").own_low > 0
    alone = bias_report(ratings_from_frame(pl.DataFrame(rows)))
    assert math.isnan(row_of(alone, "Gemma-4").own)  # the other judge is of its family


def test_the_page_says_what_the_report_says(report: Any) -> None:
    page = bias_page(report)
    assert "prefers what stands first" in page
    assert "Do judges agree with people and with each other?" in page
    assert '"signature"' in report.to_json()
