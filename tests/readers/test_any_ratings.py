"""The same ratings in twelve shapes are read to equal values, and through every verb that takes them."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from palaver.cli.main import run
from palaver.errors import DataError, MissingExtra, UserError
from palaver.readers.rating_options import parse_labels
from palaver.studies import RatingTable, ratings_from_frame, read_ratings

pytestmark = pytest.mark.filterwarnings("error")

FOLDER = Path(__file__).parents[1] / "data" / "ratings-shapes"
SHAPES = tomllib.loads((FOLDER / "files.toml").read_text(encoding="utf-8"))
RATING_FILES: dict[str, list[str]] = SHAPES["files"]
NAMES = ("item", "system", "rater", "criterion")
LONG = "item,system,rater,criterion,value\n"

Call = Callable[..., str]


def content(table: RatingTable, criterion: str | None = None) -> set[tuple[Any, ...]]:
    frame = table.frame if criterion is None else table.of(criterion)
    return set(frame.select(*NAMES, "value").rows())


def said(table: RatingTable) -> str:
    return "\n".join(table.reading.notes)


def keywords(words: list[str]) -> dict[str, Any]:
    """The command line's options as Python takes them."""
    options: dict[str, Any] = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        options[name.removeprefix("--")] = parse_labels([value]) if name == "--labels" else value.split(",")
    return options


@pytest.fixture
def palaver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def call(*words: object, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["palaver", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            run()
        written = capsys.readouterr()
        assert (stopped.value.code or 0) == code, written.out + written.err
        return written.out + written.err

    return call


def test_twelve_files_hold_the_same_ratings() -> None:
    assert len(RATING_FILES) == 12
    expected = read_ratings(FOLDER / "long.csv")
    assert expected.reading.n_ratings == 142
    for name, words in RATING_FILES.items():
        table = read_ratings(FOLDER / name, **keywords(words))
        for criterion in table.criteria:
            assert content(table, criterion) == content(expected, criterion), name
        assert table.criteria == (("quality",) if name == "forms.csv" else ("quality", "warmth")), name
        assert table.reading.dropped == (("no value given", len(table.criteria)),), name


@pytest.mark.parametrize("name", ["words.csv", "forms.csv"])
def test_every_verb_takes_them(name: str, palaver: Call) -> None:
    """What `convert` writes is analysed to the same means and ranking as the file itself."""
    words = RATING_FILES[name]
    palaver("study", "convert", FOLDER / name, "long.csv", *words)
    means = {}
    for file, more in ((FOLDER / name, words + SHAPES["analyse"].get(name, [])), ("long.csv", [])):
        out = palaver("study", "analyse", file, "--out", "o", "--force", "--replicates", 20, *more)
        assert "1. alpha" in out
        results = json.loads(Path("o/results.json").read_text(encoding="utf-8"))
        ranking = next(row for row in results["ranking"] if row["method"] == "bootstrap")
        means[str(file)] = [(row["system"], row["score"]) for row in ranking["scores"]]
    assert len({json.dumps(rows) for rows in means.values()}) == 1
    described = palaver("study", "describe", FOLDER / name, *words)
    assert "left out, no value given" in described
    assert f"{dict(means['long.csv'])['alpha']:.4g}" in described


# --- sheets -------------------------------------------------------------------------------------------------


def test_rows_of_a_sheet_have_the_numbers_it_shows(tmp_path: Path) -> None:
    import xlsxwriter

    path = tmp_path / "ratings.dat"  # recognised by what is in it
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("one")
        sheet.write_row(2, 1, ["item", "system", "rater", "criterion", "value", "", "seconds"])
        sheet.write_row(3, 1, ["i", "a", "r", "q", 3.5, "no name above", 2])
        sheet.write_row(5, 1, ["i", "", "r", "q", 2.5])
        book.add_worksheet("two").write_row(0, 0, ["item", "system", "rater", "q"])
        book.add_worksheet("three")
    table = read_ratings(path, skip_bad=True)
    assert table.frame.select("value", "seconds").rows() == [(3.5, 2.0)]
    assert table.bad.select("row", "column").rows() == [(6, "system")]
    assert "read the sheet 'one'; left 'two', 'three'" in said(table)
    with pytest.raises(DataError, match="has no sheet 'tow'.*did you mean 'two'"):
        read_ratings(path, sheet="tow")
    with pytest.raises(DataError, match="a header but no rows"):
        read_ratings(path, sheet="two")
    with pytest.raises(DataError, match="the sheet 'three' is empty"):
        read_ratings(path, sheet="three")
    with pytest.raises(DataError, match="is no spreadsheet"):
        read_ratings(FOLDER / "long.csv", sheet="one")


def test_without_the_extra_it_says_what_the_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(
        MissingExtra, match=r"(?s)sheet.xlsx is an Excel file .*palaver\[sheets\].*or save it as CSV"
    ):
        read_ratings(FOLDER / "sheet.xlsx")


def test_old_and_broken_sheets(tmp_path: Path, palaver: Call) -> None:
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    said = palaver("study", "analyse", "old.xls", code=1)
    assert "old.xls is an old Excel or Office file" in said
    assert "save it as .xlsx or CSV" in said
    whole = (FOLDER / "sheet.xlsx").read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(whole[: len(whole) // 2])
    assert "cut.xlsx" in palaver("study", "analyse", "cut.xlsx", code=1)


# --- words, commas, nothing ---------------------------------------------------------------------------------


def file(folder: Path, text: str, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def values(table: RatingTable) -> list[float]:
    return table.frame["value"].to_list()


WORDS = LONG + "i,a,r,q,Good\ni,b,r,q,poor\nj,a,r,q,Fair\nj,b,r,q,good\n"


def test_words_need_an_order(tmp_path: Path, palaver: Call) -> None:
    file(tmp_path, WORDS)
    said = palaver("study", "analyse", "r.csv", code=1)
    assert "q: 'Fair' (1), 'Good' (1), 'good' (1), 'poor' (1)" in said
    assert '--labels "poor,Fair,good"' in said
    assert "lowest first" in said
    assert '--labels "q:nominal"' in said


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
    table = read_ratings(file(tmp_path, text), labels=parse_labels(["low,high", "effort:high,low"]))
    assert values(table) == [2, 1, 1, 2]


@pytest.mark.parametrize("label", ["Good", "Good,,Bad", "Good=x,Bad=1", "q:"])
def test_labels_that_are_none(label: str, palaver: Call) -> None:
    Path("r.csv").write_text(WORDS)
    assert "--labels" in palaver("study", "describe", "r.csv", "--labels", label, code=2)


def test_a_word_with_two_numbers(palaver: Call) -> None:
    Path("r.csv").write_text(WORDS)
    words = ("--labels", "poor,good", "--labels", "good,poor")
    assert "two numbers" in palaver("study", "describe", "r.csv", *words, code=2)


@pytest.mark.parametrize(
    "text", ["i,a,r,q,ok\ni,b,r,q,added\n", "i,a,r,q,x|y\ni,b,r,q,x\n", "i,a,r,check,x\ni,b,r,check,y\n"]
)
def test_boxes_are_words_by_right(text: str, tmp_path: Path) -> None:
    (treatment,) = read_ratings(file(tmp_path, LONG + text)).treatments.values()
    assert treatment.kind == "boxes"


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


# --- criteria and columns -----------------------------------------------------------------------------------


def test_criteria_of_a_long_file(tmp_path: Path) -> None:
    path = file(tmp_path, LONG + "i,a,r,q,1\ni,a,r,p,2\ni,b,r,p,2\n")
    table = read_ratings(path, criteria=["q"])
    assert table.criteria == ("q",)
    assert "left the criterion 'p' (2 ratings): not among --criteria" in said(table)
    assert read_ratings(path, criteria=["Q"]).criteria == ("q",)
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


def test_bad_cells_are_cells(tmp_path: Path, palaver: Call) -> None:
    file(
        tmp_path, "item,system,Judge,Fluency,warmth\ni,a,r,3,2\ni,b,r,x,y\nj,a,r,4,z\nj,b,r,2,1\nk,b,r,2,1\n"
    )
    error = palaver("study", "analyse", "r.csv", code=1)
    assert "3 cells in 2 rows of 5 cannot be used" in error
    assert "row 3, column 'Fluency': expected a finite number" in error
    out = palaver("study", "analyse", "r.csv", "--skip-bad", "--out", "o", "--replicates", 20)
    assert "left out 3 cells in 2 rows that cannot be used" in out
    bad = pl.read_csv("o/bad-rows.csv")
    assert bad.select("row", "column", "value").rows() == [
        (3, "Fluency", "x"),
        (3, "warmth", "y"),
        (4, "warmth", "z"),
    ]


def test_bad_cells_of_a_form_are_named(tmp_path: Path) -> None:
    path = file(tmp_path, "Name,i [a],i [b],j [b]\nr,2,x,1\n")
    assert read_ratings(path, skip_bad=True).bad.select("row", "column").rows() == [(2, "i [b]")]


def test_shapes_that_do_not_exist(tmp_path: Path, palaver: Call) -> None:
    path = file(tmp_path, WORDS)
    with pytest.raises(UserError, match="there is no shape 'form'.*did you mean 'forms'"):
        read_ratings(path, shape="form")  # type: ignore[arg-type]
    assert "did you mean 'forms'" in palaver("study", "describe", "r.csv", "--shape", "form", code=2)


def test_a_study_knows_the_words_of_its_scales(tmp_path: Path) -> None:
    from palaver.schema import Item, Likert, Output, Question, Study

    scale = Likert(low=1, high=3, labels=("Poor", "Fair", "Good"))
    study = Study(
        name="s",
        questions=(Question(criterion="q", text="?", scale=scale),),
        items=(Item(id="i", outputs=(Output(system="a", text=""), Output(system="b", text=""))),),
    )
    assert values(read_ratings(file(tmp_path, WORDS), study=study)) == [3, 1, 2, 3]


# --- the page about one's own ratings -----------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-ratings.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ") if "```csv" in part}


@pytest.mark.parametrize("title", SECTIONS)
def test_every_example_of_the_page_is_read(title: str, palaver: Call) -> None:
    """With the options of the command that stands in the same section."""
    (example,) = re.findall(r"```csv\n(.*?)```", SECTIONS[title], flags=re.S)
    assert len(example.splitlines()) == 3
    commands = re.findall(r"```\npalaver study analyse \S+(.*)\n```", SECTIONS[title])
    Path("ratings.csv").write_text(example, encoding="utf-8")
    options = shlex.split(commands[0]) if commands else []
    assert "ratings, " in palaver("study", "describe", "ratings.csv", *options)
    palaver("study", "convert", "ratings.csv", "long.jsonl", *options)


def test_the_page_shows_every_shape() -> None:
    assert len(SECTIONS) >= 9
