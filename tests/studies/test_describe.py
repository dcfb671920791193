"""Counts and moments in one pass."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_strategies import Row, tables, write_csv

from palaver.errors import DataError
from palaver.readers.rating_options import RatingOptions
from palaver.studies import describe
from palaver.studies.describe import Description
from palaver.tables import open_frame

pytestmark = pytest.mark.filterwarnings("error")

HEAD = "item,system,rater,criterion,value\n"


def cells_of(description: Description) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = description.cells.iter_rows(named=True)
    return {(row["criterion"], row["kind"], row["system"]): row for row in rows}


@given(rows=tables())
@settings(max_examples=30, deadline=None)
def test_moments_by_brute_force(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    description = describe(write_csv(rows, tmp_path_factory.mktemp("d") / "r.csv"))
    assert description.n_ratings == len(rows)
    assert description.items == {row["item"] for row in rows}
    assert description.raters == {row["rater"] for row in rows}
    cells = cells_of(description)
    assert set(cells) == {(row["criterion"], "human", row["system"]) for row in rows}
    for (criterion, _, system), cell in cells.items():
        values = [r["value"] for r in rows if (r["criterion"], r["system"]) == (criterion, system)]
        expected = (len(values), 0, min(values), max(values))
        assert (cell["n"], cell["n_words"], cell["low"], cell["high"]) == expected
        assert cell["mean"] == pytest.approx(fmean(values))
        assert cell["sd"] == pytest.approx(stdev(values) if len(values) > 1 else math.nan, nan_ok=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.sampled_from([0.0, 1e9]))
@settings(max_examples=50, deadline=None)
def test_parts_merge_without_loss(values: list[float], far: float) -> None:
    """Also far from zero, where the sum of squares would have lost every digit."""
    values = [round(v, 3) + far for v in values]
    frame = pl.DataFrame({"item": "i", "system": "s", "rater": "r", "criterion": "q", "value": values})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("palaver.tables.BATCH", 7)
        (cell,) = describe(open_frame(frame)).cells.to_dicts()
    assert cell["n"] == len(values)
    assert cell["mean"] == pytest.approx(fmean(values))
    expected = stdev(values) if len(values) > 1 else math.nan
    assert cell["sd"] == pytest.approx(expected, nan_ok=True, rel=1e-5, abs=1e-5)


def test_what_is_no_number_is_counted(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD + "i,a,r,q,3\ni,a,r2,q,good\ni,a,r3,q,nan\ni,a,r4,q,\ni,a\n")
    description = describe(tmp_path / "r.csv")
    cell = cells_of(description)["q", "human", "a"]
    assert (cell["n"], cell["n_words"]) == (1, 1)
    assert (description.n_ratings, description.n_missing, description.n_broken) == (2, 2, 1)


def test_empty_cells_of_wide_files_are_no_ratings(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("item,rater,team1,team2,quality1,quality2\ni,r,a,b,1,\nj,r,a,,2,\n")
    description = describe(tmp_path / "r.csv")
    assert description.n_ratings == 2
    assert cells_of(description)["quality", "human", "a"]["mean"] == 1.5
    assert "one screen a row" in description.layout


def test_columns_named_by_the_user_and_progress(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD.replace("rater", "who") + "i,a,r,q,3\n")
    told: list[tuple[int, int]] = []
    description = describe(
        tmp_path / "r.csv",
        RatingOptions(columns={"rater": "who"}),
        progress=lambda what, done, total: told.append((done, total)),
    )
    assert description.raters == {"r"}
    assert told[-1][0] == told[-1][1] == (tmp_path / "r.csv").stat().st_size


def test_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(HEAD)
    with pytest.raises(DataError, match="no rows"):
        describe(tmp_path / "r.csv")


def test_kinds_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(HEAD.replace("value", "value,kind") + "i,a,r,q,3,\ni,a,m,q,1,metric\n")
    assert {key: cell["mean"] for key, cell in cells_of(describe(path)).items()} == {
        ("q", "human", "a"): 3.0,
        ("q", "metric", "a"): 1.0,
    }
    assert set(cells_of(describe(path, kind="llm"))) == {("q", "llm", "a")}


def test_ratings_that_are_in_no_cell_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "totals.csv"
    path.write_text("item,system,rater,quality\nq1,a,ann,4\nq1,b,ann,3\nMean,,,3.5\n")
    description = describe(path)
    assert description.cells["n"].to_list() == [1, 1]
    assert description.notes == ["ratings without a known kind, criterion or system, in no cell: 1"]
