"""Which column is which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.errors import DataError
from palaver.readers.rating_columns import ALIASES, FIELDS, REQUIRED, find_layout
from palaver.readers.rating_layouts import Layout
from palaver.readers.rating_options import Labels, RatingOptions
from palaver.text_columns import ROW

pytestmark = pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")

FILE = Path("ratings.csv")


def frame(**columns: list[str | None]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame(
        {**columns, ROW: range(2, height + 2)}, schema={**dict.fromkeys(columns, pl.String), ROW: pl.Int64}
    )


def layout_of(sample: pl.DataFrame, **options: Any) -> Layout:
    """The layout of a file with this content."""
    values = {column: sample[column].drop_nulls() for column in sample.columns if column != ROW}
    return find_layout(list(values), FILE, RatingOptions(**options), values)


def test_long() -> None:
    layout = find_layout([*REQUIRED, "seconds", "comment"], FILE)
    assert layout.kind == "long"
    assert layout.columns == {f: f for f in (*REQUIRED, "seconds")}
    assert layout.describe() == "one judgement a row"


@pytest.mark.parametrize(("field", "alias"), [(f, a) for f, names in ALIASES.items() for a in names])
def test_other_names_people_use(field: str, alias: str) -> None:
    columns = [alias if f == field else f for f in (*REQUIRED, "given_at", "seconds")]
    layout = find_layout(columns, FILE)
    assert layout.columns[field] == alias
    assert f"'{alias}' as {field}" in layout.describe()


def test_the_fields_own_name_comes_before_other_names() -> None:
    layout = find_layout([*REQUIRED, "score", "team", "mr_id"], FILE)
    assert [layout.columns[f] for f in ("value", "system", "item")] == ["value", "system", "item"]


def test_the_user_overrules() -> None:
    layout = find_layout([*REQUIRED, "score"], FILE, RatingOptions(columns={"value": "score"}))
    assert layout.columns["value"] == "score"


def test_a_column_is_used_once() -> None:
    """`--column item=system` leaves no system."""
    with pytest.raises(DataError, match="missing"):
        find_layout(list(REQUIRED), FILE, RatingOptions(columns={"item": "system"}))


def test_a_field_that_does_not_exist() -> None:
    with pytest.raises(DataError, match="did you mean 'rater'") as caught:
        find_layout(list(REQUIRED), FILE, RatingOptions(columns={"ratr": "rater"}))
    assert all(field in caught.value.hint for field in FIELDS)


def test_a_column_that_does_not_exist() -> None:
    with pytest.raises(DataError, match="did you mean 'rater'"):
        find_layout(list(REQUIRED), FILE, RatingOptions(columns={"rater": "ratr"}))


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


def test_ratings_without_a_column_are_not_said_to_look_like_ratings() -> None:
    with pytest.raises(DataError) as caught:
        find_layout(["item", "rater", "criterion", "value"], FILE)
    assert caught.value.hint == "rename the column, or say which one it is: --column system=NAME"


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
    layout = layout_of(sample)
    assert layout.kind == "criteria"
    assert dict(layout.criteria) == {"naturalness": ("nat",), "check": ("check_those_that_apply",)}
    rows = layout.to_long(sample).select("system", "criterion", "value").rows()
    assert rows == [("a", "naturalness", "3"), ("a", "check", "ok")]


def test_only_the_studys_criteria_are_read_from_a_wide_file() -> None:
    sample = frame(item=["m"], team=["a"], rater=["r"], naturalness=["3"], warmth=["2"])
    asked = layout_of(sample, asked=["naturalness", "quality"])
    assert list(asked.criteria) == ["naturalness"]
    assert asked.left == {"warmth": "not asked for by the study"}
    none = layout_of(sample, asked=["something else"])
    assert list(none.criteria) == ["naturalness", "warmth"]  # so that the mistake shows
    assert list(layout_of(sample).criteria) == ["naturalness", "warmth"]


def test_only_the_studys_criteria_are_read_from_screens() -> None:
    layout = find_layout(SCREEN, FILE, RatingOptions(asked=["naturalness"]))
    assert list(layout.criteria) == ["naturalness"]


# --- columns that are asked about -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("age", ["31", "45", "27"], "it looks like an age"),
        ("Age of rater", ["31", "45", "27"], "it looks like an age"),
        ("birthYear", ["1990", "1985", "2001"], "it looks like a year"),
        ("answered", ["2023", "2024", "2024"], "it looks like a year"),
        ("n_words", ["12", "30", "9"], "it looks like a count or a length"),
        ("duration", ["3.5", "2", "7"], "it looks like a duration"),
        ("when", ["1700000000", "1700000100", "1700000200"], "it looks like a date or a time"),
        ("x", [str(n) for n in range(1, 20)], "it looks like an index"),
        ("trial", ["1", "2", "3"], "it looks like an index"),
        ("comment", ["fine", "good", "fine"], "words ('fine', 'good'), not numbers"),
        ("nothing", [None, None, None], "it is empty"),
        ("worker_id", ["1", "1", "1"], "an id or a text, by its name"),
    ],
)
def test_columns_that_are_no_criteria_unless_the_user_says_so(
    column: str, values: list[str | None], reason: str
) -> None:
    n = len(values)
    sample = frame(item=["m"] * n, team=["a"] * n, rater=["r"] * n, quality=["3"] * n, **{column: values})
    if column == "worker_id":
        sample = sample.rename({"rater": "Rater"})
    layout = layout_of(sample)
    assert list(layout.criteria) == ["quality"]
    assert layout.left[column].startswith(reason)
    (note,) = layout.notes()
    assert f"left the column {column!r}: {reason}" in note
    assert list(layout_of(sample, criteria=["quality", column]).criteria) == ["quality", column]
    if "looks like" in reason:
        assert f'--criteria "quality,{column}"' in note


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("quality", ["1", "2", "3"]),
        ("language", ["1", "2", "2"]),
        ("timeliness", ["4", "2", "4"]),
        ("x", ["4", "5", "1"]),
    ],
)
def test_columns_that_are_criteria(column: str, values: list[str | None]) -> None:
    sample = frame(item=["m"] * 3, team=["a"] * 3, rater=["r"] * 3, **{column: values})
    assert list(layout_of(sample).criteria) == [column]


def test_criteria_that_are_not_there() -> None:
    sample = frame(item=["m"], team=["a"], rater=["r"], quality=["3"])
    with pytest.raises(DataError, match=r"none of the criteria qualty is there.*did you mean 'quality'"):
        layout_of(sample, criteria=["qualty"])


def test_a_file_without_a_column_of_ratings_says_what_its_columns_are() -> None:
    sample = frame(item=["m"], team=["a"], rater=["r"], verdict=["Good"], age=["30"])
    with pytest.raises(DataError, match="no column of ratings") as caught:
        layout_of(sample)
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["'verdict'", "'age'"]
    assert "--labels" in caught.value.hint


def test_words_with_an_order_are_a_criterion() -> None:
    sample = frame(item=["m"], team=["a"], rater=["r"], verdict=["Good"])
    labels = Labels({"verdict": {"poor": 1, "good": 2}})
    assert list(layout_of(sample, labels=labels).criteria) == ["verdict"]


def test_one_value_and_no_criterion() -> None:
    sample = frame(item=["m"], system=["a"], rater=["r"], rating=["3"])
    assert dict(layout_of(sample).criteria) == {"rating": ("rating",)}
    assert dict(layout_of(sample, criteria=["quality"]).criteria) == {"quality": ("rating",)}
    misspelt = frame(item=["m"], system=["a"], rater=["r"], criteria=["q"], rating=["3"])
    with pytest.raises(DataError, match="a column is missing") as caught:
        layout_of(misspelt)
    assert caught.value.problems == ("no column 'criterion' (is it 'criteria'?)",)


def test_capitals_and_spaces_do_not_matter() -> None:
    layout = find_layout(["Item ID", "System", "Worker ID", "Criterion", "Value"], FILE)
    assert layout.columns["rater"] == "Worker ID"
    assert layout.columns["item"] == "Item ID"


def test_long_files_name_the_columns_they_do_not_read() -> None:
    layout = find_layout([*REQUIRED, *(f"x{n}" for n in range(20)), "score"], FILE)
    (note,) = layout.notes()
    assert "'x0', 'x1'" in note
    assert "and 8 more: no field of a rating" in note


# --- forms --------------------------------------------------------------------------------------------------


def cells(*columns: str, **options: Any) -> list[tuple[str, str, str]]:
    layout = find_layout(["Timestamp", *columns], FILE, RatingOptions(**options))
    assert layout.kind == "forms"
    return [(cell.item, cell.system, cell.criterion) for cell in layout.cells.values()]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["Q01 [a]", "Q01 [b]"], [("Q01", "a", "rating"), ("Q01", "b", "rating")]),
        (["Q01[ a ]"], [("Q01", "a", "rating")]),
        (["[a]", "[b]"], [("1", "a", "rating"), ("1", "b", "rating")]),
        (["Q01 [a] quality", "Q01 [a] warmth"], [("Q01", "a", "quality"), ("Q01", "a", "warmth")]),
        (["quality: Q01 [a]", "quality: Q02 [a]"], [("Q01", "a", "quality"), ("Q02", "a", "quality")]),
        (
            ["Q01: How good is it? [a]", "Q02: How good is it? [a]"],
            [("Q01: How good is it?", "a", "rating"), ("Q02: How good is it?", "a", "rating")],
        ),
        (
            ["Q01: Good? [a]", "Q02: Warm? [a]"],
            [("Q01: Good?", "a", "rating"), ("Q02: Warm?", "a", "rating")],
        ),
    ],
)
def test_columns_of_forms(columns: list[str], expected: list[tuple[str, str, str]]) -> None:
    assert cells(*columns) == expected


def test_the_user_names_the_criterion_of_a_form_or_chooses_among_them() -> None:
    assert cells("Q01 [a]", criteria=["quality"]) == [("Q01", "a", "quality")]
    both = ("Q01 [a] quality", "Q01 [a] warmth")
    assert cells(*both, criteria=["warmth"]) == [("Q01", "a", "warmth")]


@pytest.mark.parametrize(
    "column", ["Email Address", "Name", "Participant", "ID", "rater", "Username", "worker_id"]
)
def test_who_filled_in_a_form(column: str) -> None:
    layout = find_layout(["Timestamp", column, "Comments", "Q01 [a]"], FILE)
    assert layout.columns == {"rater": column, "given_at": "Timestamp"}
    assert layout.left == {"Comments": "no [system] in its name"}


def test_without_a_name_each_row_of_a_form_is_a_rater() -> None:
    sample = frame(Timestamp=["1/2/2024 10:00:00", "1/2/2024 11:00:00"])
    sample = sample.with_columns(pl.Series("Q01 [a]", ["3", "4"])).select("Timestamp", "Q01 [a]", ROW)
    layout = find_layout(sample.columns[:-1], FILE)
    assert "each row is a rater" in layout.describe()
    rows = layout.to_long(sample).select("item", "system", "rater", "criterion", "value").rows()
    assert rows == [("Q01", "a", "row 2", "rating", "3"), ("Q01", "a", "row 3", "rating", "4")]


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("forms", "no column names a system in brackets"),
        ("screens", "no numbered columns of systems"),
        ("long", "missing"),
        ("criteria", "missing"),
    ],
)
def test_a_shape_that_the_file_has_not(shape: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        find_layout(["a", "b"], FILE, RatingOptions(shape=shape))


def test_no_columns_at_all() -> None:
    with pytest.raises(DataError, match="found none"):
        find_layout([], FILE)
