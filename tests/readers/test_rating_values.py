"""Cells as values: words for numbers, words for nothing, decimal commas; and the columns they stand in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.errors import DataError, UserError
from palaver.readers.rating_options import RatingOptions, parse_labels
from palaver.schema import Item, Likert, Output, Question, Study
from palaver.studies import RatingTable, ratings_from_frame, read_ratings
from palaver.studies.ratings import read_rating_table

pytestmark = pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")

LONG = "item,system,rater,criterion,value\n"


def file(folder: Path, text: str, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def values(table: RatingTable) -> list[float]:
    return table.frame["value"].to_list()


def content(table: RatingTable) -> set[tuple[Any, ...]]:
    return set(table.frame.select("item", "system", "rater", "criterion", "value").rows())


def said(table: RatingTable) -> str:
    return "\n".join(table.reading.notes)


WORDS = LONG + "i,a,r,q,Good\ni,b,r,q,poor\nj,a,r,q,Fair\nj,b,r,q,good\n"


def test_an_order_that_we_do_not_know_is_not_made_up(tmp_path: Path) -> None:
    text = (
        WORDS.replace("Good", "gut")
        .replace("good", "gut")
        .replace("Fair", "naja")
        .replace("poor", "schlecht")
    )
    with pytest.raises(DataError) as caught:
        read_ratings(file(tmp_path, text))
    assert '--labels "LOWEST,…,HIGHEST"' in caught.value.hint


@pytest.mark.parametrize(
    "labels",
    [
        ["Poor", "Fair", "Good"],
        {"poor": 1, "FAIR": 2, "Good": 3},
        {"q": ["poor", "fair", "good"]},
        {"q": {"poor": 1, "fair": 2, "good": 3}, "other": ["good", "poor"]},
    ],
)
def test_the_order_of_words(labels: Any, tmp_path: Path) -> None:
    assert values(read_ratings(file(tmp_path, WORDS), labels=labels)) == [3, 1, 2, 3]


def test_words_without_an_order(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, WORDS), labels={"q": "nominal"})
    assert table.treatments["q"].kind == "boxes"


def test_labels_hold_for_their_own_criterion(tmp_path: Path) -> None:
    text = LONG + "i,a,r,q,high\ni,b,r,q,low\ni,a,r,effort,high\ni,b,r,effort,low\n"
    options = RatingOptions(labels=parse_labels(["low,high", "Effort:high,low"]))
    table = read_rating_table(file(tmp_path, text), options)
    assert values(table) == [2, 1, 1, 2]


@pytest.mark.parametrize(
    "text", ["i,a,r,q,ok\ni,b,r,q,added\n", "i,a,r,q,x|y\ni,b,r,q,x\n", "i,a,r,check,x\ni,b,r,check,y\n"]
)
def test_boxes_are_words_by_right(text: str, tmp_path: Path) -> None:
    (treatment,) = read_ratings(file(tmp_path, LONG + text)).treatments.values()
    assert treatment.kind == "boxes"


def test_a_study_knows_the_words_of_its_scales(tmp_path: Path) -> None:
    scale = Likert(low=1, high=3, labels=("Poor", "Fair", "Good"))
    study = Study(
        name="s",
        questions=(Question(criterion="q", text="?", scale=scale),),
        items=(Item(id="i", outputs=(Output(system="a", text=""), Output(system="b", text=""))),),
    )
    assert values(read_ratings(file(tmp_path, WORDS), study=study)) == [3, 1, 2, 3]


NOTHING = ["", "NA", "na", "N/A", "n/a", "-", "–", "null", "None", "nan", "NaN"]


@pytest.mark.parametrize("nothing", NOTHING)
def test_nothing_is_nothing_in_every_format(nothing: str, tmp_path: Path) -> None:
    rows = [
        {"item": "i", "system": s, "rater": "r", "criterion": "q", "value": v}
        for s, v in (("a", "2"), ("b", nothing))
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    wide = f"item,system,rater,q\ni,a,r,2\ni,b,r,{nothing}\n"
    screens = f"item,rater,team1,team2,q1,q2\ni,r,a,b,2,{nothing}\n"
    form = f"Name,i [a],i [b]\nr,2,{nothing}\n"
    tables = [
        read_ratings(file(tmp_path, f"{LONG}i,a,r,q,2\ni,b,r,q,{nothing}\n", "long.csv")),
        read_ratings(file(tmp_path, lines, "long.jsonl")),
        read_ratings(file(tmp_path, json.dumps(rows), "array.json")),
        ratings_from_frame(pl.DataFrame(rows)),
        read_ratings(file(tmp_path, wide, "wide.csv")),
        read_ratings(file(tmp_path, screens, "screens.csv")),
        read_ratings(file(tmp_path, form, "form.csv"), criteria=["q"]),
    ]
    for table in tables:
        assert content(table) == {("i", "a", "r", "q", 2.0)}
        assert table.reading.dropped == (("no value given", 1),)


def test_numbers_that_are_not_there_in_frames() -> None:
    frame = pl.DataFrame(
        {"item": ["i", "j"], "system": "a", "rater": "r", "criterion": "q", "value": [1.5, float("nan")]}
    )
    for given in (frame, frame.to_pandas()):
        table = ratings_from_frame(given)
        assert values(table) == [1.5]
        assert table.reading.dropped == (("no value given", 1),)


def test_further_words_for_nothing(tmp_path: Path) -> None:
    path = file(tmp_path, LONG + "i,a,r,q,1\ni,b,r,q,skip\nj,a,r,q,999\nj,b,r,q,2\n")
    assert values(read_ratings(path, missing=["skip", "999"])) == [1, 2]
    frame = pl.DataFrame(
        {"item": ["i", "j"], "system": "a", "rater": "r", "criterion": "q", "value": [1, -9]}
    )
    assert values(ratings_from_frame(frame, missing=["-9"])) == [1]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas(delimiter: str, tmp_path: Path) -> None:
    rows = [
        "item,system,rater,criterion,value",
        "i,a,r,q,3.5",
        "i,b,r,q,1.234.5",
        "j,a,r,q,2",
        "j,b,r,q,-0.25",
    ]
    text = "\n".join(row.replace(",", delimiter) for row in rows).replace("1.234.5", "1.234,5")
    text = text.replace("3.5", "3,5").replace("-0.25", "-0,25")
    table = read_ratings(file(tmp_path, text))
    assert values(table) == [3.5, 1234.5, 2, -0.25]
    assert "3 numbers with a decimal comma" in said(table)


def test_points_among_decimal_commas_are_thousands_unless_they_are_not(tmp_path: Path) -> None:
    head = LONG.replace(",", ";")
    assert values(read_ratings(file(tmp_path, head + "i;a;r;q;1.500\ni;b;r;q;99,5\n"))) == [1500, 99.5]
    assert values(read_ratings(file(tmp_path, head + "i;a;r;q;1.500\ni;b;r;q;99,5\nj;b;r;q;2.5\n"))) == [
        1.5,
        99.5,
        2.5,
    ]
    assert values(read_ratings(file(tmp_path, head + "i;a;r;q;1.500\ni;b;r;q;2\n"))) == [1.5, 2]


def test_decimal_commas_in_columns_of_criteria(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, "item;system;rater;quality\ni;a;r;3,5\ni;b;r;4\n"))
    assert (table.criteria, values(table)) == (("quality",), [3.5, 4.0])


def test_criteria_of_a_long_file(tmp_path: Path) -> None:
    path = file(tmp_path, LONG + "i,a,r,q,1\ni,a,r,p,2\ni,b,r,p,2\n")
    table = read_ratings(path, criteria=["q"])
    assert table.criteria == ("q",)
    assert "left the criterion 'p' (2 ratings): not among --criteria" in said(table)
    assert read_ratings(path, criteria=["Q"]).criteria == ("q",)
    assert read_ratings(path, criteria="q").criteria == ("q",)
    with pytest.raises(DataError, match=r"there is no criterion 'qq'"):
        read_ratings(path, criteria=["q", "qq"])


def test_a_column_that_begins_empty_does_not_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its first value comes after a thousand rows or in a later block."""
    rows = [f"i{n},a,r,3,{'' if n < 1500 else 4},{'' if n < 1500 else 'late'}" for n in range(2000)]
    path = file(tmp_path, "\n".join(["item,system,rater,quality,warmth,comment", *rows]))
    for block in (1 << 23, 4096):
        monkeypatch.setattr("palaver.tables.BLOCK", block)
        table = read_ratings(path)
        assert table.criteria == ("quality", "warmth")
        assert table.of("warmth").height == 500
        assert "left the column 'comment': words ('late')" in said(table)


def test_bad_cells_of_a_form_are_named(tmp_path: Path) -> None:
    path = file(tmp_path, "Name,i [a],i [b],j [b]\nr,2,x,1\n")
    assert read_ratings(path, skip_bad=True).bad.select("row", "column").rows() == [(2, "i [b]")]


def test_a_shape_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no shape 'form'.*did you mean 'forms'"):
        read_ratings(file(tmp_path, WORDS), shape="form")  # type: ignore[arg-type]
