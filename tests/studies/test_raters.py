"""Each rater's habits, and agreement in pairs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_analysis as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from study_strategies import FIELDS, Row, tables, write_csv

from palaver.studies import read_ratings
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.raters import MIN_SHARED, SHOWN, describe_raters, rater_matrix

pytestmark = pytest.mark.filterwarnings("error")


def judge(rows: list[Row], folder: Path) -> list[Judgements]:
    table = read_ratings(write_csv(rows, folder / "r.csv", [*FIELDS, "seconds"]))
    return [judgements_of(table, criterion, "raw") for criterion in table.criteria]


@given(rows=tables(), order=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_habits_by_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], order: Any) -> None:
    for row in rows:
        row["seconds"] = order.choice([None, 1.5, 4, 9])
    found = describe_raters(judge(rows, tmp_path_factory.mktemp("r")))
    expected = slow.raters(rows)
    assert {row.rater for row in found} == set(expected)
    for row in found:
        for name, value in expected[row.rater].items():
            assert getattr(row, name) == pytest.approx(value, nan_ok=True, abs=1e-6), (row.rater, name)


def study_rows(n_items: int = 20, n_raters: int = 5, seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    quality = rng.normal(3.5, 1.5, (n_items, 2))
    return [
        {
            "item": f"i{i}",
            "system": f"s{s}",
            "rater": f"r{r}",
            "criterion": "q",
            "value": int(np.clip(round(quality[i, s] + rng.normal(0, 0.4)), 1, 6)),
            "seconds": 10 + r,
        }
        for i in range(n_items)
        for s in range(2)
        for r in range(n_raters)
    ]


def flags(rows: list[Row], folder: Path) -> dict[str, tuple[str, ...]]:
    return {row.rater: row.flags for row in describe_raters(judge(rows, folder))}


def test_careful_raters_have_no_flag(tmp_path: Path) -> None:
    assert set(flags(study_rows(), tmp_path).values()) == {()}


def test_a_straight_liner_is_seen(tmp_path: Path) -> None:
    rows = [{**row, "value": 4} if row["rater"] == "r2" else row for row in study_rows()]
    found = describe_raters(judge(rows, tmp_path))
    assert found[0].rater == "r2"  # those with flags come first
    assert found[0].flags == ("straight-lining",)
    assert found[0].straight_lining == 1.0
    assert found[0].spread == pytest.approx(0, abs=1e-12)
    assert math.isnan(found[0].agreement)


def test_everybody_giving_one_value_is_not_straight_lining(tmp_path: Path) -> None:
    """A criterion everyone answers alike says nothing about a rater."""
    assert set(flags([{**row, "value": 4} for row in study_rows()], tmp_path).values()) == {()}


def test_too_fast(tmp_path: Path) -> None:
    rows = [{**row, "seconds": 1.0} if row["rater"] == "r2" else row for row in study_rows()]
    assert {rater for rater, f in flags(rows, tmp_path).items() if "too fast" in f} == {"r2"}
    assert not any(flags([{**row, "seconds": None} for row in rows], tmp_path).values())


def test_somebody_who_disagrees(tmp_path: Path) -> None:
    rows = [{**row, "value": 7 - row["value"]} if row["rater"] == "r2" else row for row in study_rows()]
    assert {rater for rater, f in flags(rows, tmp_path).items() if f == ("disagrees",)} == {"r2"}


def test_a_rater_with_one_rating(tmp_path: Path) -> None:
    rows = [*study_rows(), {"item": "i0", "system": "s0", "rater": "once", "criterion": "q", "value": 1}]
    row = next(row for row in describe_raters(judge(rows, tmp_path)) if row.rater == "once")
    assert (row.n_ratings, row.n_items, row.n_shared, row.flags) == (1, 1, 1, ())
    assert math.isnan(row.spread)
    assert math.isnan(row.agreement)
    assert math.isnan(row.median_seconds)


def test_words_count_for_speed_and_habit_only(tmp_path: Path) -> None:
    rows = [{**row, "value": "ok" if row["value"] > 3 else "added"} for row in study_rows()]
    for row in describe_raters(judge(rows, tmp_path)):
        assert row.n_ratings == 40
        assert row.n_shared == 0
        assert math.isnan(row.agreement)
        assert 0.5 <= row.straight_lining <= 1


@given(rows=tables(criteria=("q",)))
@settings(max_examples=40, deadline=None)
def test_pairs_of_raters_by_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    (judged,) = judge(rows, tmp_path_factory.mktemp("m"))
    found = rater_matrix(judged)
    names = {row["rater"] for row in rows}
    if len(names) < 2:
        assert found is None
        return
    assert found is not None
    assert set(found.raters) == names
    given_by = {
        name: {(row["item"], row["system"]): row["value"] for row in rows if row["rater"] == name}
        for name in names
    }
    for i, a in enumerate(found.raters):
        for j, b in enumerate(found.raters):
            shared = sorted(given_by[a].keys() & given_by[b].keys())
            assert found.n_shared[i][j] == len(shared)
            expected = math.nan
            if len(shared) >= MIN_SHARED:
                expected = slow.pearson([given_by[a][k] for k in shared], [given_by[b][k] for k in shared])
            if i == j:
                expected = 1.0
            assert found.values[i][j] == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_only_the_busiest_are_shown(tmp_path: Path) -> None:
    rows = [
        {"item": f"i{i}", "system": "s", "rater": f"r{r:02d}", "criterion": "q", "value": 1 + (i * r) % 6}
        for r in range(SHOWN + 5)
        for i in range(1 + r)
    ]
    (judged,) = judge(rows, tmp_path)
    found = rater_matrix(judged)
    assert found is not None
    assert found.raters == tuple(f"r{r:02d}" for r in range(SHOWN + 4, 4, -1))
    assert len(describe_raters([judged])) == SHOWN + 5  # nobody is missing from the table
