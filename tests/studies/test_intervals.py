"""Clustered intervals of a criterion: which rows there are, and when an analysis quotes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from palaver import analyse, ratings_from_frame
from palaver.errors import DataError
from palaver.statistics.clusters import clustered_mean
from palaver.studies.results import IntervalRow
from palaver.studies.trust import describe_difference, trust_interval


def a_study(n_items: int = 12, n_raters: int = 4, systems: str = "abc", **more: Any) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    rows = []
    for item in range(n_items):
        for rater in range(n_raters):
            for place, system in enumerate(systems):
                value = 3 + place + 0.5 * rater + rng.standard_normal()
                row = {"item": f"i{item}", "system": system, "rater": f"r{rater}", "criterion": "quality"}
                rows.append({**row, "value": round(value, 2), **more})
    return pl.DataFrame(rows)


def test_every_system_and_every_pair_has_a_row() -> None:
    report = trust_interval(ratings_from_frame(a_study()))
    assert [(row.system, row.against) for row in report.rows] == [
        *(("a", ""), ("b", ""), ("c", "")),
        *(("a", "b"), ("a", "c"), ("b", "c")),
    ]
    difference = report.rows[3]
    assert difference.value == pytest.approx(report.rows[0].value - report.rows[1].value)
    assert difference.adjusted_p >= difference.p
    assert difference.n_dialogues == 12
    assert len(report.words) == 3
    assert report.to_polars().height == 6


def test_an_analysis_quotes_them_where_raters_cross_dialogues() -> None:
    crossed = analyse(a_study(), n_replicates=10)
    assert len(crossed.intervals) == 6
    own = a_study(n_raters=1).with_columns(rater=pl.col("item"))  # everybody judges one item
    assert analyse(own, n_replicates=10).intervals == ()
    judged = a_study(kind="model")
    assert analyse(judged, n_replicates=10).intervals == ()


def test_the_rest_of_the_analysis_stays_as_it_is() -> None:
    """Clustered intervals draw nothing, so no bootstrap changes."""
    analysis = analyse(a_study(), n_replicates=50)
    assert analysis.ranking[0].scores[0].system == "c"
    assert "intervals" in analysis.to_json()


def test_lower_is_better_turns_differences() -> None:
    table = ratings_from_frame(a_study(systems="ab"))
    up = trust_interval(table).rows[-1]
    down = trust_interval(table, directions={"quality": "lower"}).rows[-1]
    assert down.value == pytest.approx(-up.value)
    assert down.p == pytest.approx(up.p)


def test_pairs_have_win_rates_clustered_by_context() -> None:
    rng = np.random.default_rng(2)
    rows = [
        {
            "item": f"c{i}|a|b",
            "context": f"c{i}",
            "system": "a",
            "against": "b",
            "rater": f"r{r}",
            "criterion": "better",
            "value": str(rng.choice(["win", "tie", "loss"], p=[0.6, 0.1, 0.3])),
        }
        for i in range(10)
        for r in range(4)
    ]
    [row] = trust_interval(ratings_from_frame(pl.DataFrame(rows))).rows
    values = [{"win": 1, "tie": 0.5, "loss": 0}[r["value"]] for r in rows]
    expected = clustered_mean(values, np.repeat(np.arange(10), 4), np.tile(np.arange(4), 10))
    assert (row.value, row.se, row.df) == pytest.approx((expected.value, expected.se, expected.df))
    assert row.is_share
    assert row.p > 0.001  # against a share of one half


def test_a_share_of_wins_lies_between_0_and_1() -> None:
    rows = [
        {"item": f"i{i}", "system": "a", "against": "b", "rater": f"r{r}", "criterion": "better",
         "value": "loss" if (i, r) == (0, 0) else "win"}
        for i in range(4)
        for r in range(3)
    ]  # fmt: skip
    [row] = trust_interval(ratings_from_frame(pl.DataFrame(rows))).rows
    assert (row.low, row.high) == (0.0, 1.0)  # of so few, nothing is known


def test_what_people_did_not_rate_is_refused() -> None:
    with pytest.raises(DataError, match="no criterion was rated by people"):
        trust_interval(ratings_from_frame(a_study(kind="metric")))


def test_two_raters_and_one_dialogue_are_said() -> None:
    two = trust_interval(ratings_from_frame(a_study(n_raters=2)))
    assert any("2 raters" in note for note in two.notes)
    one = trust_interval(ratings_from_frame(a_study(n_items=1)))
    assert all("one dialogue" in row.reason for row in one.rows)


def test_items_drawn_unequally_are_corrected_and_that_is_said() -> None:
    rows = [
        {"item": f"i{i}", "system": s, "rater": f"r{i % 4}", "criterion": "quality",
         "value": 1 + (3 * i + (s == "a")) % 5, "sampling_probability": 0.2 if i % 2 else 0.8}
        for i in range(24) for s in "ab"
    ]  # fmt: skip
    analysis = analyse(pl.DataFrame(rows), n_replicates=20)
    assert any("drawn with unequal probabilities" in note for note in analysis.notes)
    [mean] = [row for row in analysis.intervals if row.system == "a" and not row.against]
    own = [(row["value"], 1 / row["sampling_probability"]) for row in rows if row["system"] == "a"]
    assert mean.value == pytest.approx(sum(v * w for v, w in own) / sum(w for _, w in own))


@pytest.mark.parametrize(
    ("low", "adjusted_p", "said"),
    [
        (0.1, 0.01, "they differ"),
        (0.1, 0.068, "not told apart once all pairs are counted (p 0.068)"),
        (-0.1, 0.3, "not told apart"),
    ],
)
def test_an_interval_beside_0_that_holds_for_one_pair_only_is_explained(
    low: float, adjusted_p: float, said: str
) -> None:
    row = IntervalRow(
        criterion="q", system="a", against="b", value=0.5, low=low, high=0.9, p=0.01, adjusted_p=adjusted_p,
        se=0.2, df=9.0, n=40, n_dialogues=10, n_raters=3, se_rows=0.2, dialogue_share=0.2, rater_share=0.1,
        confidence=0.95,
    )  # fmt: skip
    assert describe_difference(row).split("], ")[1] == said
