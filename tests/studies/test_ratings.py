"""Rating files as they come: layouts, duplicates, wrong values, other encodings, several files."""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_strategies import Row, tables, write_csv, write_jsonl, write_parquet

from palaver.errors import DataError
from palaver.schema import Checkboxes, Item, Likert, Magnitude, Output, Pairwise, Question, Scale, Study
from palaver.studies import RatingTable, ratings_from_frame, read_ratings

pytestmark = pytest.mark.filterwarnings("error")

HEAD = "item,system,rater,criterion,value\n"


def study(*scales: tuple[str, Scale]) -> Study:
    return Study(
        name="s",
        questions=tuple(Question(criterion=name, text="?", scale=scale) for name, scale in scales),
        items=(Item(id="i", outputs=(Output(system="a", text=""), Output(system="b", text=""))),),
    )


LIKERT = study(("q", Likert()))


def file(folder: Path, text: str | bytes, name: str = "r.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def values(table: RatingTable, *columns: str) -> list[tuple[Any, ...]]:
    frame = table.frame.select(pl.col(columns or ("item", "system", "rater", "criterion", "value")))
    return frame.rows()


def failure(paths: Path | Sequence[Path], **options: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        read_ratings(paths, **options)
    return caught.value


def test_the_long_format(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, HEAD + "i1,a,r1,q,3\ni1,b,r1,q,4\n"), study=LIKERT)
    assert values(table) == [("i1", "a", "r1", "q", 3.0), ("i1", "b", "r1", "q", 4.0)]
    assert table.criteria == ("q",)
    assert table.reading.n_rows == table.reading.n_ratings == 2
    assert table.reading.dropped == ()
    assert list(table.hashes) == ["r.csv"]


# --- the same ratings in every format and layout ------------------------------------------------------


def plain(table: RatingTable) -> set[tuple[Any, ...]]:
    return set(values(table))


@given(rows=tables())
@settings(max_examples=40, deadline=None)
def test_every_format_and_layout_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    folder = tmp_path_factory.mktemp("same")
    screens: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        screens.setdefault((row["item"], row["rater"]), []).append(row)
    outputs: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        wide = outputs.setdefault((row["item"], row["system"], row["rater"]), {})
        wide |= {k: row[k] for k in ("item", "system", "rater")} | {row["criterion"]: row["value"]}
    names = ["quality", "naturalness"]
    by_screen = []
    for (item, rater), given_here in screens.items():
        line: Row = {"item": item, "rater": rater}
        for n, system in enumerate(sorted({row["system"] for row in given_here}), start=1):
            line[f"team{n}"] = system
            line |= {f"{row['criterion']}{n}": row["value"] for row in given_here if row["system"] == system}
        by_screen.append(line)
    numbered = [f"{stem}{n}" for stem in ("team", *names) for n in range(1, 5)]
    expected = {tuple(row[k] for k in ("item", "system", "rater", "criterion", "value")) for row in rows}
    paths = [
        write_csv(rows, folder / "long.csv"),
        write_jsonl(rows, folder / "long.jsonl"),
        write_parquet(rows, folder / "numbers.parquet"),
        write_parquet(rows, folder / "text.parquet", as_text=True),
        write_csv(outputs.values(), folder / "outputs.csv", ["item", "system", "rater", *names]),
        write_csv(by_screen, folder / "screens.csv", ["item", "rater", *numbered]),
        write_jsonl(outputs.values(), folder / "outputs.jsonl"),
    ]
    for path in paths:
        assert plain(read_ratings(path)) == expected, path.name


@given(rows=tables(), order=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_one_file_or_several(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], order: Any) -> None:
    folder = tmp_path_factory.mktemp("several")
    cut = order.randint(1, len(rows))
    paths = [write_csv(rows[:cut], folder / "a.csv")]
    if rows[cut:]:
        paths.append(write_jsonl(rows[cut:], folder / "b.jsonl"))
    whole, parts = read_ratings(write_csv(rows, folder / "whole.csv")), read_ratings(paths)
    assert values(parts) == values(whole)
    assert parts.reading.n_rows == len(rows)
    assert list(parts.hashes) == [p.name for p in paths]


def test_wide_and_long_together(tmp_path: Path) -> None:
    long = file(tmp_path, HEAD + "i1,a,r1,quality,3\n", "long.csv")
    wide = file(tmp_path, "item,rater,team1,team2,quality1,quality2\ni1,r2,a,b,100,200\n", "wide.csv")
    table = read_ratings([long, wide])
    assert table.frame.height == 3
    assert "long.csv: one judgement a row" in table.reading.layout
    assert "wide.csv: one screen a row" in table.reading.layout
    assert not table.treatments["quality"].is_magnitude  # not all of them were on a screen


# --- duplicates ---------------------------------------------------------------------------------------


def test_of_duplicates_the_later_row_counts(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, HEAD + "i,a,r,q,1\ni,a,r2,q,2\ni,a,r,q,3\ni,a,r,q,4\n"), study=LIKERT)
    assert values(table, "rater", "value") == [("r2", 2.0), ("r", 4.0)]
    assert table.reading.dropped == (("earlier answers replaced by a later one", 2),)


TIMED = "item,system,rater,criterion,value,given_at\n"


def test_of_duplicates_the_later_time_counts_when_all_have_one(tmp_path: Path) -> None:
    text = TIMED + "i,a,r,q,1,2024-01-02T00:00:00\ni,a,r,q,2,2024-01-01T00:00:00\n"
    table = read_ratings(file(tmp_path, text), study=LIKERT)
    assert values(table, "value") == [(1.0,)]
    assert table.reading.dropped == (("earlier answers replaced by a later one", 1),)


def test_zones_count_when_times_are_compared(tmp_path: Path) -> None:
    text = TIMED + "i,a,r,q,1,2024-01-01T10:00:00-08:00\ni,a,r,q,2,2024-01-01T12:00:00Z\n"
    assert values(read_ratings(file(tmp_path, text), study=LIKERT), "value") == [(1.0,)]


@pytest.mark.parametrize("missing", ["", "yesterday"])
def test_of_duplicates_the_file_decides_when_a_time_is_missing(missing: str, tmp_path: Path) -> None:
    text = TIMED + f"i,a,r,q,1,2024-01-02\ni,a,r,q,2,2024-01-01\ni,a,r2,q,3,{missing}\n"
    table = read_ratings(file(tmp_path, text), study=LIKERT)
    assert values(table, "rater", "value") == [("r", 2.0), ("r2", 3.0)]
    said = [note for note in table.reading.notes if "given_at could not be read" in note]
    assert len(said) == (missing != "")


def test_equal_times_fall_back_on_the_order_of_rows(tmp_path: Path) -> None:
    text = TIMED + "i,a,r,q,1,2024-01-01\ni,a,r,q,2,2024-01-01\n"
    assert values(read_ratings(file(tmp_path, text), study=LIKERT), "value") == [(2.0,)]


def test_of_duplicates_the_later_file_counts(tmp_path: Path) -> None:
    """Whatever the rows: row 2 of the second file is later than row 5 of the first."""
    first = file(tmp_path, HEAD + "x,a,r,q,1\ny,a,r,q,1\nz,a,r,q,1\ni,a,r,q,1\n", "a.csv")
    second = file(tmp_path, HEAD + "i,a,r,q,6\n", "b.csv")
    forth, back = (read_ratings(paths, study=LIKERT) for paths in ([first, second], [second, first]))
    assert dict(values(forth, "item", "value"))["i"] == 6.0
    assert dict(values(back, "item", "value"))["i"] == 1.0
    assert [i for (i,) in values(forth, "item")] == ["x", "y", "z", "i"]


def test_other_criteria_systems_items_and_raters_are_no_duplicates(tmp_path: Path) -> None:
    text = HEAD + "i,a,r,q,1\nj,a,r,q,1\ni,b,r,q,1\ni,a,s,q,1\ni,a,r,p,1\n"
    table = read_ratings(file(tmp_path, text))
    assert table.frame.height == 5
    assert table.reading.dropped == ()


PAIRS = "item,system,against,rater,criterion,value\n"


def test_a_comparison_told_from_both_sides_is_one_judgement(tmp_path: Path) -> None:
    text = PAIRS + "i,a,b,r,q,win\ni,b,a,r,q,win\ni,a,c,r,q,tie\ni,b,a,r2,q,loss\n"
    table = read_ratings(file(tmp_path, text))
    assert values(table, "system", "against", "rater") == [("b", "a", "r"), ("a", "c", "r"), ("b", "a", "r2")]
    assert table.reading.dropped == (("earlier answers replaced by a later one", 1),)


# --- wrong values -------------------------------------------------------------------------------------


def test_all_rows_outside_the_scale_are_listed(tmp_path: Path) -> None:
    text = HEAD + "i1,a,r,q,0\ni2,a,r,q,3\ni3,a,r,q,7\ni4,a,r,q,2.5\ni5,a,r,q,good\ni6,a,r,q,nan\ni7,a,r,q,\n"
    error = failure(file(tmp_path, text), study=LIKERT)
    assert "4 rows of 7 cannot be used" in error.message
    expected = "expected a whole number from 1 to 6"
    assert error.problems == (
        f"row 2: {expected}, found '0'",
        f"row 4: {expected}, found '7'",
        f"row 5: {expected}, found '2.5'",
        f"row 6: {expected}, found 'good'",
    )
    assert "--skip-bad to `study analyse`" in error.hint  # other commands have no such option


def test_ten_mistakes_are_listed_and_the_rest_counted(tmp_path: Path) -> None:
    error = failure(file(tmp_path, HEAD + "".join(f"i{n},a,r,q,9\n" for n in range(1500))), study=LIKERT)
    assert len(error.problems) == 11
    assert error.problems[-1] == "… and 1,490 more"


def test_skipped_rows_are_counted_and_kept(tmp_path: Path) -> None:
    text = HEAD + "i1,a,r,q,9\n,a,,q,3\ni3,a,r,q,3\ni3,a,r,q\ni4,a,r,zzz,3\n"
    table = read_ratings(file(tmp_path, text), study=LIKERT, skip_bad=True)
    assert values(table) == [("i3", "a", "r", "q", 3.0)]
    assert table.reading.dropped == (("ratings that could not be used", 4),)
    assert table.reading.n_rows == 5
    assert table.bad.rows() == [
        ("r.csv", 2, "value", "9", "expected a whole number from 1 to 6"),
        ("r.csv", 3, "item", "", "no item given"),
        ("r.csv", 3, "rater", "", "no rater given"),
        ("r.csv", 5, "", "", "expected 5 fields, found 4: 'i3,a,r,q'"),
        ("r.csv", 6, "criterion", "zzz", "unknown criterion: the study asks for q"),
    ]


def test_a_row_with_two_mistakes_is_one_row(tmp_path: Path) -> None:
    error = failure(file(tmp_path, HEAD + ",a,,q,3\ni,a,r,q,3\n"))
    assert "1 row of 2 cannot be used" in error.message
    assert error.problems == ("row 2: no item given", "row 2: no rater given")


def test_nothing_left_after_skipping(tmp_path: Path) -> None:
    error = failure(file(tmp_path, HEAD + "i1,a,r,q,9\n"), study=LIKERT, skip_bad=True)
    assert "no usable rating is left" in error.message
    assert error.problems


def test_not_one_row_that_can_be_read(tmp_path: Path) -> None:
    error = failure(file(tmp_path, HEAD + "i,a\n\nj\n"), skip_bad=True)
    assert "no usable rating is left" in error.message
    assert len(error.problems) == 2


def test_a_criterion_that_is_wholly_bad_is_named_and_left_out(tmp_path: Path) -> None:
    design = study(("q", Likert()), ("p", Likert()))
    text = HEAD + "i1,a,r,q,9\ni1,b,r,q,8\ni1,a,r,p,3\n"
    table = read_ratings(file(tmp_path, text), study=design, skip_bad=True)
    assert table.criteria == ("p",)
    assert "q: no usable rating is left" in table.reading.notes


def test_unknown_criterion_with_the_nearest(tmp_path: Path) -> None:
    design = study(("quality", Likert()), ("naturalness", Likert()))
    error = failure(file(tmp_path, HEAD + "i,a,r,qualty,3\n"), study=design)
    assert error.problems == (
        "row 2: unknown criterion: the study asks for quality, naturalness (did you mean 'quality'?)",
    )


def test_several_files_name_the_file_of_a_mistake(tmp_path: Path) -> None:
    first = file(tmp_path, HEAD + "i,a,r,q,3\n", "a.csv")
    paths = [
        first,
        file(tmp_path, HEAD + "i,a,r,q,9\n", "b.csv"),
        file(tmp_path, HEAD + "i,a,r,q,8\n", "c.csv"),
    ]
    error = failure(paths, study=LIKERT)
    assert [p.split(":")[0] for p in error.problems] == ["b.csv, row 2", "c.csv, row 2"]
    error = failure(paths[:2], study=LIKERT)
    assert [p.split(":")[0] for p in error.problems] == ["b.csv, row 2"], "also where all are in one of them"


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name, value in (("one", 9), ("two", 3)):
        (tmp_path / name).mkdir()
        file(tmp_path / name, HEAD + f"i,a,{name},q,{value}\n")
    paths = [tmp_path / "one" / "r.csv", tmp_path / "two" / "r.csv"]
    table = read_ratings(paths, study=LIKERT, skip_bad=True)
    assert len(table.hashes) == 2  # each file counts in the signature
    assert table.bad["file"].to_list() == [str(paths[0])]


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        (Magnitude(), ["1", "100", "999999", "1e3"], ["0", "-5", "1000000", "2.5", "inf"]),
        (Magnitude(whole_numbers=False), ["0.5", "100"], ["0", "-0.5", "1e9"]),
        (Checkboxes(), ["ok", "added|missing", "missing|added"], ["ok|added", "wrong", "|", "5"]),
        (
            Checkboxes(options=("1", "2", "none"), exclusive=("none",)),
            ["1", "2", "1|2", "none"],
            ["3", "none|1"],
        ),
    ],
)
def test_scales_decide(scale: Scale, good: list[str], bad: list[str], tmp_path: Path) -> None:
    text = HEAD + "".join(f"i{n},a,r,q,{value}\n" for n, value in enumerate([*good, *bad]))
    table = read_ratings(file(tmp_path, text), study=study(("q", scale)), skip_bad=True)
    assert [item for (item,) in values(table, "item")] == [f"i{n}" for n in range(len(good))]
    assert table.bad["row"].to_list() == [n + 2 for n in range(len(good), len(good) + len(bad))]
    assert table.bad["value"].to_list()[0] == bad[0]


def test_pairwise_with_a_study(tmp_path: Path) -> None:
    text = PAIRS + "i,a,b,r,q,win\nj,a,b,r,q,tie\n"
    strict = study(("q", Pairwise(ties=False)))
    assert "expected win or loss" in failure(file(tmp_path, text), study=strict).problems[0]
    assert read_ratings(file(tmp_path, text), study=study(("q", Pairwise()))).frame.height == 2


def test_pairwise_without_the_other_system(tmp_path: Path) -> None:
    error = failure(file(tmp_path, HEAD + "i,a,r,q,win\n"), study=study(("q", Pairwise())))
    assert "'against'" in error.problems[0]


# --- wide files ---------------------------------------------------------------------------------------


def test_screens_with_fewer_outputs_and_empty_cells(tmp_path: Path) -> None:
    text = (
        "item,rater,team1,team2,team3,quality1,quality2,quality3\n"
        "m1,r1,a,b,c,100,200,50\n"
        "m1,r2,a,b,,100,200,\n"  # two outputs on this screen
        "m2,r1,a,b,c,1,,3\n"  # one not answered
    )
    table = read_ratings(file(tmp_path, text))
    assert table.frame.height == 7
    assert table.reading.n_rows == 3
    assert table.reading.dropped == (("no value given", 2),)
    assert values(table, "shown_position")[:3] == [(0,), (1,), (2,)]


def test_a_screen_without_rater_or_system_is_said_once(tmp_path: Path) -> None:
    text = "item,rater,team1,team2,quality1,quality2,nat1,nat2\nm1,,a,b,1,2,3,4\nm1,r,,b,1,2,3,4\n"
    error = failure(file(tmp_path, text))
    assert error.problems == ("row 2: no rater given", "row 3, column 'team1': no system given")
    assert "2 cells in 2 rows of 2" in error.message
    table = read_ratings(file(tmp_path, text), skip_bad=True)
    assert table.reading.dropped == (("ratings that could not be used", 6),)


def test_the_study_says_which_columns_of_a_wide_file_are_criteria(tmp_path: Path) -> None:
    text = "item,system,rater,q,age\ni,a,r,3,41\ni,b,r,4,41\n"
    table = read_ratings(file(tmp_path, text), study=LIKERT)
    assert table.criteria == ("q",)
    assert any("'age'" in note and "not asked for by the study" in note for note in table.reading.notes)
    assert read_ratings(file(tmp_path, text)).criteria == ("q",)
    assert read_ratings(file(tmp_path, text), criteria=["q", "age"]).criteria == ("q", "age")


# --- JSON lines and Parquet -----------------------------------------------------------------------------


def test_lists_in_json_are_boxes(tmp_path: Path) -> None:
    rows = [{"item": 1, "system": "a", "rater": "r", "criterion": "q", "value": v} for v in (["ok"],)]
    rows += [{"item": 2, "system": "a", "rater": "r", "criterion": "q", "value": ["missing", "added"]}]
    path = write_jsonl(rows, tmp_path / "r.jsonl")
    table = read_ratings(path, study=study(("q", Checkboxes())))
    assert values(table, "item", "text") == [("1", "ok"), ("2", "missing|added")]
    assert read_ratings(path).treatments["q"].options == ("added", "missing", "ok")


def test_json_numbers_words_and_nothing(tmp_path: Path) -> None:
    lines = [
        '{"item":1,"system":"a","rater":"r","criterion":"q","value":3}',
        "",
        '{"item":2,"system":"a","rater":"r","criterion":"q","value":"4"}',
        '{"item":3,"system":"a","rater":"r","criterion":"q","value":null}',
        '{"item":4,"system":"a","rater":"r","criterion":"q","value":NaN}',
        '{"item":5,"system":"a","rater":"r","criterion":"q","value":{"x":1}}',
        '{"item":6,"system":"a","rater":"r","criterion":"q","value":[]}',
        "[1, 2]",
        '{"item":7,"system":"a","rat',
    ]
    table = read_ratings(file(tmp_path, "\n".join(lines), "r.jsonl"), study=LIKERT, skip_bad=True)
    assert values(table, "item", "value") == [("1", 3.0), ("2", 4.0)]
    assert table.bad["row"].to_list() == [6, 8, 9]
    assert table.reading.dropped == (("ratings that could not be used", 3), ("no value given", 3))


def test_json_fields_in_any_order_and_sometimes_absent(tmp_path: Path) -> None:
    rows = [
        {"value": 1, "criterion": "q", "rater": "r", "system": "a", "item": "i"},
        {"item": "j", "seconds": 4.5, "system": "a", "rater": "r", "criterion": "q", "value": 2},
    ]
    table = read_ratings(write_jsonl(rows, tmp_path / "r.jsonl"))
    assert values(table, "item", "seconds") == [("i", None), ("j", 4.5)]


def test_parquet_with_times_lists_and_categories(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "item": [1, 2],
            "system": pl.Series(["a", "b"], dtype=pl.Categorical),
            "rater": ["r", "r"],
            "criterion": ["q", "q"],
            "value": [["ok"], ["added", "missing"]],
            "given_at": pl.Series(["2024-01-01T10:00:00", "2024-01-01T11:00:00"]).str.to_datetime(
                time_zone="UTC"
            ),
            "shown_position": [0.0, None],
        }
    )
    frame.write_parquet(tmp_path / "r.parquet")
    table = read_ratings(tmp_path / "r.parquet", study=study(("q", Checkboxes())))
    assert values(table, "item", "system", "text", "shown_position") == [
        ("1", "a", "ok", 0),
        ("2", "b", "added|missing", None),
    ]
    assert table.frame["given_at"].dt.hour().to_list() == [10, 11]


# --- files as they come -------------------------------------------------------------------------------

TEXT = HEAD + 'café,"a,b",r1,q,3\n"two\nlines","say ""hi""",r2,q,4\n'
ROWS = [("café", "a,b", "r1", "q", 3.0), ("two\nlines", 'say "hi"', "r2", "q", 4.0)]


@pytest.mark.parametrize(
    ("raw", "note"),
    [
        (TEXT.encode(), ""),
        (b"\xef\xbb\xbf" + TEXT.encode(), "byte-order mark"),
        (TEXT.encode("utf-16"), "utf-16"),
        (TEXT.encode("cp1252"), "1 line not in UTF-8, read as Windows-1252"),
        (TEXT.rstrip("\n").encode(), ""),
    ],
)
def test_encodings(raw: bytes, note: str, tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, raw), study=LIKERT)
    assert values(table) == ROWS
    assert note in " ".join(table.reading.notes)
    assert bool(table.reading.notes) == bool(note)


def test_windows_line_ends(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, TEXT.replace("\n", "\r\n")), study=LIKERT)
    assert [row[0] for row in values(table)] == ["café", "two\r\nlines"]
    assert values(table, "value") == [(3.0,), (4.0,)]


def test_two_encodings_in_one_file(tmp_path: Path) -> None:
    raw = (HEAD + "é1,a,r,q,3\n").encode() + "é2,a,r,q,3\né3,a,r,q,3\n".encode("cp1252")
    table = read_ratings(file(tmp_path, raw), study=LIKERT)
    assert [item for (item,) in values(table, "item")] == ["é1", "é2", "é3"]
    assert "2 lines not in UTF-8" in table.reading.notes[0]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters(delimiter: str, tmp_path: Path) -> None:
    assert values(read_ratings(file(tmp_path, (HEAD + "i,a,r,q,3\n").replace(",", delimiter)))) == [
        ("i", "a", "r", "q", 3.0)
    ]


def test_packed(tmp_path: Path) -> None:
    plain_rows = values(read_ratings(file(tmp_path, TEXT)))
    with gzip.open(tmp_path / "r.csv.gz", "wb") as packed:
        packed.write(TEXT.encode())
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
        archive.writestr("inside.csv", TEXT)
    assert values(read_ratings(tmp_path / "r.csv.gz")) == plain_rows
    assert values(read_ratings(tmp_path / "r.zip")) == plain_rows


def test_row_numbers_count_as_people_do(tmp_path: Path) -> None:
    """The header is row 1, a quoted line break does not begin a new row."""
    text = HEAD + '"a\nb",s,r,q,3\ni,s,r,q,9\n'
    assert failure(file(tmp_path, text), study=LIKERT).problems[0].startswith("row 3:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (HEAD.encode(), "no rows"),
        (HEAD.rstrip().encode(), "no rows"),
        (b"hello", "no rows|missing"),
        (b"hello\nworld\n", "5 columns are missing"),
        (HEAD.replace("value", "rater").encode() + b"1,2,3,4,5\n", "stands twice"),
        (HEAD.encode() + b'"i,a,r,q,3\n', "a quotation mark is never closed"),
        (b"PAR1", None),
        (bytes(range(256)) * 40, None),
        (b"\x00" * 1000, None),
        (b"\xff\xfe\x00", None),
        (b"PK\x03\x04" + bytes(range(256)) * 4, None),
        (b"%PDF-1.7\n" + bytes(range(255, 0, -1)), None),
    ],
)
def test_what_is_no_rating_file(text: bytes, message: str | None, tmp_path: Path) -> None:
    """Whatever is in it, the user gets one clear error that names the file."""
    error = failure(file(tmp_path, text))
    assert "r.csv" in str(error)
    if message is not None:
        assert re.search(message, str(error))


@pytest.mark.parametrize("name", ["r.jsonl", "r.parquet", "r.zip", "r.csv.gz", "r"])
def test_what_is_not_what_its_name_says(name: str, tmp_path: Path) -> None:
    for raw in (b"no such thing\n", b"{}\n", b"[]\n", b"{\n", bytes(range(256))):
        assert name in str(failure(file(tmp_path, raw, name)))


def test_directories_and_missing_files(tmp_path: Path) -> None:
    file(tmp_path, HEAD, "ratings.csv")
    assert "is a directory" in str(failure(tmp_path))
    assert "did you mean 'ratings.csv'" in str(failure(tmp_path / "rating.csv"))
    assert "there is no file" in str(failure(tmp_path / "nowhere" / "r.csv"))


def test_one_unreadable_file_among_several(tmp_path: Path) -> None:
    good = file(tmp_path, HEAD + "i,a,r,q,3\n", "good.csv")
    assert "bad.csv is empty" in str(failure([good, file(tmp_path, b"", "bad.csv")]))


def test_columns_named_by_the_user(tmp_path: Path) -> None:
    path = file(tmp_path, "id,sys,who,what,how\ni,a,r,q,3\n")
    names = {"item": "id", "system": "sys", "rater": "who", "criterion": "what", "value": "how"}
    table = read_ratings(path, columns=names)
    assert values(table) == [("i", "a", "r", "q", 3.0)]
    assert "'who' as rater" in table.reading.layout


def test_a_column_called_row_does_no_harm(tmp_path: Path) -> None:
    path = file(tmp_path, "row,order," + HEAD + "9,8,i,a,r,q,3\n7,6,i,a,r,q,9\n")
    table = read_ratings(path, study=LIKERT, skip_bad=True)
    assert values(table, "item", "order") == [("i", 0)]
    assert table.bad["row"].to_list() == [3]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    paths = [file(tmp_path, HEAD + "i,a,r,q,3\n" * 100, f"{n}.csv") for n in range(3)]
    told: list[tuple[int, int]] = []
    read_ratings(paths, progress=lambda what, done, total: told.append((done, total)))
    assert told[-1] == (told[0][1], sum(p.stat().st_size for p in paths))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_seconds_and_positions_that_are_no_numbers(tmp_path: Path) -> None:
    text = "item,system,rater,criterion,value,seconds,shown_position\ni,a,r,q,3,fast,first\nj,a,r,q,3,2.5,1\n"
    assert values(read_ratings(file(tmp_path, text)), "seconds", "shown_position") == [(None, None), (2.5, 1)]


def test_the_hash_is_that_of_the_file(tmp_path: Path) -> None:
    path = file(tmp_path, HEAD + "i,a,r,q,3\n")
    before = dict(read_ratings(path).hashes)
    assert dict(read_ratings(path).hashes) == before
    path.write_text(HEAD + "i,a,r,q,4\n")
    assert dict(read_ratings(path).hashes) != before


def test_long_names_and_many_columns(tmp_path: Path) -> None:
    extra = [f"extra{n}" for n in range(300)]
    row = {
        "item": "i" * 5000,
        "system": "a",
        "rater": "r",
        "criterion": "q",
        "value": 3,
        **dict.fromkeys(extra, "x"),
    }
    path = file(tmp_path, json.dumps(row) + "\n", "r.jsonl")
    assert values(read_ratings(path), "item") == [("i" * 5000,)]


def test_a_name_on_disk_that_is_no_text(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.csv"))
    try:
        path.write_text(HEAD + "i,a,r,q,3\n")
    except OSError:
        pytest.skip("this file system takes only names that are text")
    table = read_ratings(path)
    for name in (*table.hashes, *table.reading.files, table.reading.layout):
        name.encode()


def test_a_field_that_json_rows_have_only_later_is_not_lost(tmp_path: Path) -> None:
    rows = [
        {"item": str(i), "system": "a", "rater": "r", "criterion": "q", "value": i % 5 + 1}
        for i in range(200)
    ]
    rows += [{**row, "rater": "s", "seconds": 3.5} for row in rows]
    path = tmp_path / "late.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seconds = read_ratings(path).frame["seconds"]
    assert seconds.null_count() == 200
    assert seconds.drop_nulls().unique().to_list() == [3.5]


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_a_frame_is_as_good_as_a_file(kind: str, tmp_path: Path) -> None:
    import pandas as pd

    columns = {
        "item": ["1", "1", "2", "2"],
        "system": ["a", "b", "a", "b"],
        "rater": ["r", "r", "r", "r"],
        "criterion": ["q"] * 4,
        "value": [1, 2, 3, 4],
    }
    frame = pl.DataFrame(columns) if kind == "polars" else pd.DataFrame(columns)
    table = ratings_from_frame(frame)
    path = tmp_path / "same.csv"
    pl.DataFrame(columns).write_csv(path)
    from_file = read_ratings(path)
    assert table.reading.files == ("frame",)
    wanted = ["item", "system", "rater", "criterion", "value"]
    assert table.frame.select(wanted).rows() == from_file.frame.select(wanted).rows()


@given(rows=tables())
@settings(max_examples=25, deadline=None)
def test_a_frame_and_a_file_give_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    path = write_csv(rows, tmp_path_factory.mktemp("same") / "r.csv")
    table, from_file = ratings_from_frame(pl.DataFrame(rows)), read_ratings(path)
    assert table.frame.equals(from_file.frame)
    assert table.treatments == from_file.treatments
    assert table.kinds == from_file.kinds


# --- who rated ------------------------------------------------------------------------------------------

WHO = "item,system,rater,criterion,value,kind\n"


def test_kinds_are_never_mixed(tmp_path: Path) -> None:
    people = file(tmp_path, HEAD + "i,a,ann,q,3\ni,b,ann,q,4\ni,a,ann,p,2\n", "people.csv")
    judge = file(tmp_path, WHO + "i,a,gpt,q,3,llm\ni,b,gpt,q,5,llm\ni,a,bleu,b,0.5,metric\n", "judge.csv")
    table = read_ratings([people, judge])
    assert table.criteria == ("q", "p", "q (llm)", "b")
    assert dict(table.kinds) == {"q": "human", "p": "human", "q (llm)": "llm", "b": "metric"}
    assert dict(table.names) == {"q": "q", "p": "p", "q (llm)": "q", "b": "b"}
    assert [table.of(c).height for c in table.criteria] == [2, 1, 2, 1]
    (note,) = table.reading.notes
    assert "q: rated by people (q), a language model (q (llm))" in note
    assert "not mixed" in note


def test_one_kind_alone_keeps_its_names_and_needs_no_note(tmp_path: Path) -> None:
    table = read_ratings(file(tmp_path, WHO + "i,a,m,q,0.5,metric\ni,b,m,q,0.25,metric\n"))
    assert table.criteria == ("q",)
    assert dict(table.kinds) == {"q": "metric"}
    assert table.reading.notes == ()


def test_a_label_that_a_criterion_has_already(tmp_path: Path) -> None:
    text = WHO + "i,a,ann,q,3,human\ni,a,gpt,q,3,llm\ni,a,ann,q (llm),1,human\n"
    assert read_ratings(file(tmp_path, text)).criteria == ("q", "q (llm)*", "q (llm)")


def test_the_same_rater_of_another_kind_turn_or_repeat_is_another_judgement(tmp_path: Path) -> None:
    head = "item,system,rater,criterion,value,kind,turn,repeat\n"
    rows = ["human,,", "llm,,", "llm,1,", "llm,2,", "llm,2,0", "llm,2,1", "llm,2,1"]
    table = read_ratings(file(tmp_path, head + "".join(f"i,a,r,q,{n},{row}\n" for n, row in enumerate(rows))))
    assert table.reading.dropped == (("earlier answers replaced by a later one", 1),)
    assert values(table, "item", "rater", "value") == [
        ("i", "r", 0.0),
        ("i", "r", 1.0),
        ("i #1", "r", 2.0),
        ("i #2", "r", 3.0),
        ("i #2", "r #0", 4.0),
        ("i #2", "r #1", 6.0),
    ]
    assert any("each turn counts as an item" in note for note in table.reading.notes)
    assert any("each repeat counts as a rater" in note for note in table.reading.notes)


def test_a_judge_that_was_asked_once_keeps_its_name(tmp_path: Path) -> None:
    path = file(tmp_path, "item,system,rater,criterion,value,repeat\ni,a,gpt,q,1,0\nj,a,gpt,q,2,0\n")
    assert values(read_ratings(path), "rater") == [("gpt",), ("gpt",)]


def test_a_study_asks_people_but_not_metrics(tmp_path: Path) -> None:
    text = WHO + "i,a,ann,q,3,human\ni,a,gpt,q,4,llm\ni,a,m,q,0.25,metric\ni,a,m,f1,0.5,metric\n"
    table = read_ratings(file(tmp_path, text), study=LIKERT)
    assert table.criteria == ("q", "q (llm)", "q (metric)", "f1")
    assert table.treatments["q"].scale == table.treatments["q (llm)"].scale == Likert()
    assert table.treatments["q (metric)"].scale is None
    beyond = file(tmp_path, WHO + "i,a,ann,q,3,human\ni,a,gpt,q,9,llm\ni,a,ann,f1,1,human\n")
    error = failure(beyond, study=LIKERT)
    assert [problem.split(":")[0] for problem in error.problems] == ["row 3", "row 4"]


def test_wrong_values_of_wide_files_under_the_columns_of_the_file(tmp_path: Path) -> None:
    screens = file(tmp_path, "item,rater,team1,team2,q1,q2\ni,r,a,b,3,9\n", "screens.csv")
    outputs = file(tmp_path, "item,rater,team,q\ni,r,a,8\n", "outputs.csv")
    table = read_ratings([screens, outputs], study=LIKERT, skip_bad=True)
    assert table.bad.select("file", "column", "value").rows() == [
        ("outputs.csv", "q", "8"),
        ("screens.csv", "q2", "9"),
    ]
