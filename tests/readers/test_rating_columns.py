"""Which column is which."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from palaver.errors import DataError
from palaver.readers.rating_columns import ALIASES, FIELDS, REQUIRED, find_layout
from palaver.tables import ROW

pytestmark = pytest.mark.filterwarnings("error")

FILE = Path("ratings.csv")


def frame(**columns: list[str | None]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame(
        {**columns, ROW: range(2, height + 2)}, schema={**dict.fromkeys(columns, pl.String), ROW: pl.Int64}
    )


def test_long() -> None:
    layout = find_layout([*REQUIRED, "seconds", "comment"], FILE)
    assert layout.kind == "long"
    assert layout.columns == {f: f for f in (*REQUIRED, "seconds")}
    assert layout.describe() == "one judgement a row"


@pytest.mark.parametrize(("field", "alias"), [(f, a) for f, names in ALIASES.items() for a in names])
def test_other_names_people_use(field: str, alias: str) -> None:
    columns = [alias if f == field else f for f in (*REQUIRED, "given_at")]
    layout = find_layout(columns, FILE)
    assert layout.columns[field] == alias
    assert f"'{alias}' as {field}" in layout.describe()


def test_the_fields_own_name_comes_before_other_names() -> None:
    layout = find_layout([*REQUIRED, "score", "team", "mr_id"], FILE)
    assert [layout.columns[f] for f in ("value", "system", "item")] == ["value", "system", "item"]


def test_the_user_overrules() -> None:
    layout = find_layout([*REQUIRED, "score"], FILE, renamed={"value": "score"})
    assert layout.columns["value"] == "score"


def test_a_column_is_used_once() -> None:
    """`--column item=system` leaves no system."""
    with pytest.raises(DataError, match="missing"):
        find_layout(list(REQUIRED), FILE, renamed={"item": "system"})


def test_a_field_that_does_not_exist() -> None:
    with pytest.raises(DataError, match="did you mean 'rater'") as caught:
        find_layout(list(REQUIRED), FILE, renamed={"ratr": "rater"})
    assert all(field in caught.value.hint for field in FIELDS)


def test_a_column_that_does_not_exist() -> None:
    with pytest.raises(DataError, match="did you mean 'rater'"):
        find_layout(list(REQUIRED), FILE, renamed={"rater": "ratr"})


def test_missing_columns_with_the_nearest_names() -> None:
    with pytest.raises(DataError) as caught:
        find_layout(["itm", "sytem", "rater", "criteria", "valu"], FILE)
    assert caught.value.problems == (
        "no column 'item' (is it 'itm'?)",
        "no column 'system' (is it 'sytem'?)",
        "no column 'criterion' (is it 'criteria'?)",
        "no column 'value' (is it 'valu'?)",
    )
    assert "4 columns are missing" in caught.value.message
    assert "--column item=NAME" in caught.value.hint


def test_one_missing_column() -> None:
    with pytest.raises(DataError, match="a column is missing") as caught:
        find_layout(["item", "system", "rater", "criterion", "vlaue"], FILE)
    assert caught.value.problems == ("no column 'value' (is it 'vlaue'?)",)


SCREEN = [
    "mr_id",
    "_worker_id",
    "team1",
    "team2",
    "team3",
    "inf1",
    "inf2",
    "inf3",
    "nat1",
    "nat2",
    "nat3",
    "ref1",
]


def test_screens() -> None:
    layout = find_layout(SCREEN, FILE)
    assert layout.kind == "screens"
    assert layout.systems == ("team1", "team2", "team3")
    assert dict(layout.criteria) == {
        "informativeness": ("inf1", "inf2", "inf3"),
        "naturalness": ("nat1", "nat2", "nat3"),
    }
    assert "3 outputs each" in layout.describe()


def test_screens_become_judgements_in_the_order_they_were_made() -> None:
    layout = find_layout(["item", "rater", "team1", "team2", "quality1", "quality2"], FILE)
    wide = frame(
        item=["m1", "m2"],
        rater=["r", "q"],
        team1=["a", "b"],
        team2=["b", "a"],
        quality1=["1", "3"],
        quality2=["2", None],
    )
    rows = (
        layout.to_long(wide)
        .select("item", "rater", "system", "criterion", "value", "shown_position", ROW)
        .rows()
    )
    assert rows == [
        ("m1", "r", "a", "quality", "1", "0", 2),
        ("m1", "r", "b", "quality", "2", "1", 2),
        ("m2", "q", "b", "quality", "3", "0", 3),
        ("m2", "q", "a", "quality", None, "1", 3),
    ]


@pytest.mark.parametrize("columns", [["q1", "q3"], ["q2", "q3"], ["q1"], ["q1", "q2", "q3"]])
def test_numbers_that_do_not_go_with_the_systems(columns: list[str]) -> None:
    with pytest.raises(DataError, match="no criterion to go with them"):
        find_layout(["item", "rater", "team1", "team2", *columns], FILE)


def test_numbers_may_begin_at_zero_and_have_an_underscore() -> None:
    layout = find_layout(["item", "rater", "system_0", "system_1", "quality_0", "quality_1"], FILE)
    assert layout.kind == "screens"
    assert dict(layout.criteria) == {"quality": ("quality_0", "quality_1")}


def test_screens_without_a_rater() -> None:
    with pytest.raises(DataError, match="a column is missing") as caught:
        find_layout([c for c in SCREEN if c != "_worker_id"], FILE)
    assert caught.value.problems[0].startswith("no column 'rater'")


def test_one_column_per_criterion() -> None:
    sample = frame(
        item=["m"],
        team=["a"],
        rater=["r"],
        nat=["3"],
        check_those_that_apply=["ok"],
        comment=["fine"],
        _id=["7"],
    )
    layout = find_layout(sample.columns[:-1], FILE, sample=sample)
    assert layout.kind == "criteria"
    assert dict(layout.criteria) == {"naturalness": ("nat",), "check": ("check_those_that_apply",)}
    rows = layout.to_long(sample).select("system", "criterion", "value").rows()
    assert rows == [("a", "naturalness", "3"), ("a", "check", "ok")]


def test_only_the_studys_criteria_are_read_from_a_wide_file() -> None:
    sample = frame(item=["m"], team=["a"], rater=["r"], naturalness=["3"], age=["41"])
    columns = sample.columns[:-1]
    asked = find_layout(columns, FILE, sample=sample, criteria=["naturalness", "quality"])
    assert list(asked.criteria) == ["naturalness"]
    assert asked.ignored == ("age",)
    assert "age" in asked.describe()
    none = find_layout(columns, FILE, sample=sample, criteria=["something else"])
    assert list(none.criteria) == ["naturalness", "age"]  # so that the mistake shows
    assert list(find_layout(columns, FILE, sample=sample).criteria) == ["naturalness", "age"]


def test_only_the_studys_criteria_are_read_from_screens() -> None:
    layout = find_layout(SCREEN, FILE, criteria=["naturalness"])
    assert list(layout.criteria) == ["naturalness"]


def test_no_columns_at_all() -> None:
    with pytest.raises(DataError, match="found none"):
        find_layout([], FILE)
