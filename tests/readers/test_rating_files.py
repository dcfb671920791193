"""Ratings one by one: into a file and out again."""

from __future__ import annotations

import itertools
import math
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_strategies import ratings

from palaver import sheets
from palaver.errors import DataError, MissingExtra, UserError
from palaver.readers.rating_files import iter_ratings, ratings_frame, write_frames, write_ratings
from palaver.schema import Rating
from palaver.studies import read_ratings

pytestmark = pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")

FORMATS = ("csv", "jsonl", "parquet", "xlsx")


def rating(**fields: object) -> Rating:
    base = {"item": "i", "system": "s", "rater": "r", "criterion": "q", "value": 3.0}
    return Rating.model_validate({**base, **fields})


def as_stored(given: Rating) -> Rating:
    """Times are stored in UTC without a zone; a single ticked box is a word."""
    moment = given.given_at
    if moment is not None and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return given.model_copy(update={"given_at": moment})


def as_in_a_sheet(given: Rating) -> dict[str, object]:
    """Numbers of cells are written with 16 digits and read with nine decimals."""
    fields = as_stored(given).model_dump()
    return {n: pytest.approx(v, 1e-9, 1e-9) if isinstance(v, float) else v for n, v in fields.items()}


@pytest.mark.parametrize("ending", [ending for ending in FORMATS if ending != "xlsx"])
@given(many=st.lists(ratings, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, ending: str, many: list[Rating]
) -> None:
    path = tmp_path_factory.mktemp("r") / f"ratings.{ending}"
    assert write_ratings(many, path) == len(many)
    assert list(iter_ratings(path)) == [as_stored(r) for r in many]


@given(many=st.lists(ratings, min_size=1, max_size=5))
@settings(max_examples=12, deadline=None)
def test_what_is_written_into_a_sheet_is_read(
    tmp_path_factory: pytest.TempPathFactory, many: list[Rating]
) -> None:
    path = tmp_path_factory.mktemp("r") / "ratings.xlsx"
    assert write_ratings(many, path) == len(many)
    assert [r.model_dump() for r in iter_ratings(path)] == [as_in_a_sheet(r) for r in many]


@pytest.mark.parametrize("ending", FORMATS)
def test_times_with_and_without_zone(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"r.{ending}"
    india = timezone(timedelta(hours=5, minutes=30))
    moments = [
        datetime(2024, 3, 1, 12, 30, 15, 250_000),
        datetime(2024, 3, 1, 12, 30, 15, tzinfo=india),
        datetime(2024, 3, 1, 12, 30, tzinfo=UTC),
        None,
    ]
    write_ratings([rating(item=f"i{n}", given_at=m) for n, m in enumerate(moments)], path)
    read = [r.given_at for r in iter_ratings(path)]
    assert read == [moments[0], datetime(2024, 3, 1, 7, 0, 15), datetime(2024, 3, 1, 12, 30), None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2018-02-03T04:05:06Z", datetime(2018, 2, 3, 4, 5, 6)),
        ("2018-02-03 04:05:06", datetime(2018, 2, 3, 4, 5, 6)),
        ("2018-02-03 04:05:06.5+01:00", datetime(2018, 2, 3, 3, 5, 6, 500_000)),
        ("2/3/2018 04:05:06", datetime(2018, 2, 3, 4, 5, 6)),  # as CrowdFlower wrote them
        ("2018-02-03", datetime(2018, 2, 3)),
        ("2018/02/03 4:05:06 PM GMT+1", datetime(2018, 2, 3, 15, 5, 6)),  # as Google Forms writes them
        ("2018/02/03 04:05:06", datetime(2018, 2, 3, 4, 5, 6)),
        ("03.02.2018 04:05", datetime(2018, 2, 3, 4, 5)),
        ("yesterday", None),
    ],
)
def test_ways_to_write_a_time(text: str, expected: datetime | None, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"item,system,rater,criterion,value,given_at\ni,s,r,q,1,{text}\n")
    assert next(iter_ratings(path)).given_at == expected


def test_numbers_stay_numbers_and_whole_ones_look_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    values = [3.0, 0.1, 1e22, -2.0, 5e-324, 123456.789012345678]
    write_ratings([rating(item=f"i{n}", value=v) for n, v in enumerate(values)], path)
    assert '"value": 3,' in path.read_text()
    assert [r.value for r in iter_ratings(path)] == values


def test_boxes_are_lists_in_json_and_joined_in_tables(tmp_path: Path) -> None:
    ticked = rating(value=("added", "missing"))
    write_ratings([ticked], tmp_path / "r.jsonl")
    write_ratings([ticked], tmp_path / "r.csv")
    assert '["added", "missing"]' in (tmp_path / "r.jsonl").read_text()
    assert "added|missing" in (tmp_path / "r.csv").read_text()


@pytest.mark.parametrize("ending", FORMATS)
def test_many_batches(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One header, whatever the number of batches."""
    monkeypatch.setattr("palaver.readers.rating_files.islice", lambda rows, _: itertools.islice(rows, 7))
    path = tmp_path / f"r.{ending}"
    assert write_ratings((rating(item=f"i{n}") for n in range(30)), path) == 30
    assert [r.item for r in iter_ratings(path)] == [f"i{n}" for n in range(30)]


@pytest.mark.parametrize("ending", FORMATS)
def test_nothing_to_write_is_an_error_and_leaves_no_file(ending: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no ratings to write"):
        write_ratings([], tmp_path / f"r.{ending}")
    with pytest.raises(DataError, match="no ratings to write"):
        write_frames([pl.DataFrame(schema={"item": pl.String})], tmp_path / f"r.{ending}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["", "  ", ()])
@pytest.mark.parametrize("ending", FORMATS)
def test_a_rating_without_a_value_is_not_written(ending: str, value: object, tmp_path: Path) -> None:
    """It could not be read back."""
    with pytest.raises(DataError, match="without a value"):
        write_ratings([rating(), rating(value=value)], tmp_path / f"r.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    write_ratings([rating()], path)
    before = path.read_bytes()

    def failing() -> object:
        yield rating()
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_ratings(failing(), path)  # type: ignore[arg-type]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["r.ods", "r", "r.txt"])
def test_a_name_that_says_no_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot tell the format"):
        write_ratings([rating()], tmp_path / name)


def test_empty_cells_of_wide_files_are_no_ratings(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(
        "item,rater,team1,team2,quality1,quality2\nm1,r1,a,b,100,200\nm1,r2,a,,50,\nm2,r1,b,a,,70\n"
    )
    rows = [(r.item, r.system, r.rater, r.criterion, r.value, r.shown_position) for r in iter_ratings(path)]
    assert rows == [
        ("m1", "a", "r1", "quality", 100.0, 0),
        ("m1", "b", "r1", "quality", 200.0, 1),
        ("m1", "a", "r2", "quality", 50.0, 0),
        ("m2", "a", "r1", "quality", 70.0, 1),
    ]
    assert read_ratings(path).frame.height == len(rows)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("i,s,r,q,inf", "value: Input should be a finite number"),
        (",s,r,q,1", "no item given"),
    ],
)
def test_rows_that_are_no_ratings(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"item,system,rater,criterion,value\ni,s,r,q,1\n{line}\n")
    with pytest.raises(DataError, match="row 3") as caught:
        list(iter_ratings(path))
    assert caught.value.problems == (problem,)
    assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize("nothing", ["", "nan", "NA", "n/a", "-", "–", "null", "None"])
def test_rows_without_a_value_are_left(nothing: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(f"item,system,rater,criterion,value\ni,s,r,q,1\nj,s,r,q,{nothing}\n")
    assert [r.item for r in iter_ratings(path)] == ["i"]


def test_rows_that_cannot_be_read_are_not_lost_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,system,rater,criterion,value\ni,s,r,q,1\ni,s,r,q,1,extra\ni2,s,r,q,2\n")
    read = iter_ratings(path)
    assert [next(read).item, next(read).item] == ["i", "i2"]
    with pytest.raises(DataError, match="cannot be read") as caught:
        next(read)
    assert caught.value.problems[0].startswith("row 3: expected 5 fields, found 6")


def test_words_that_only_python_takes_for_numbers(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,system,rater,criterion,value\ni,s,r,q,1_000\n")
    assert next(iter_ratings(path)).value == "1_000"


def test_the_first_rating_comes_without_reading_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,system,rater,criterion,value\n" + "i,s,r,q,1\n" * 50 + "i,s,r,q,nan\n")
    first = next(iter_ratings(path))
    assert first.value == 1.0
    assert not math.isnan(first.value)


def cells_of(path: Path) -> list[list[tuple[str, object]]]:
    """The cells of a sheet as (type, value), as another program sees them."""
    import zipfile
    from xml.etree import ElementTree

    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    return [
        [(cell.get("t", "n"), "".join(cell.itertext())) for cell in row.iter(f"{space}c")]
        for row in sheet.iter(f"{space}row")
    ]


def test_a_sheet_has_numbers_to_compute_with_and_no_formula(tmp_path: Path) -> None:
    path = tmp_path / "r.xlsx"
    evil = '=HYPERLINK("http://x","y")'
    many = [rating(item="007", system=evil, value=4.5), rating(item="1", value=3)]
    write_ratings(many, path)
    head, first, _ = cells_of(path)
    assert all(kind == "inlineStr" for kind, _ in head)
    assert ("inlineStr", "007") in first
    assert ("inlineStr", evil) in first
    assert ("n", "4.5") in first
    assert next(iter(iter_ratings(path))).system == evil
    write_ratings(many, tmp_path / "s.xlsx")
    assert path.read_bytes() == (tmp_path / "s.xlsx").read_bytes()


def test_a_free_text_that_looks_like_a_number_stays_a_text(tmp_path: Path) -> None:
    path = tmp_path / "r.xlsx"
    frame = ratings_frame([rating(criterion="why", value="12"), rating(criterion="quality", value=12)])
    write_frames([frame], path, texts=["why"])
    kinds = [kind for row in cells_of(path)[1:] for kind, text in row if text == "12"]
    assert kinds == ["inlineStr", "n"]


def test_what_a_sheet_cannot_hold_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.xlsx"
    with pytest.raises(DataError, match=r"(?s)32,767 characters.*\.csv or \.parquet"):
        write_ratings([rating(criterion="why", value="x" * 40_000)], path)
    monkeypatch.setattr(sheets, "MOST_ROWS", 3)
    assert write_ratings([rating(item=str(i)) for i in range(2)], path) == 2
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"(?s)3 rows with its header.*\.csv or \.parquet"):
        write_ratings([rating(item=str(i)) for i in range(3)], path)
    assert path.read_bytes() == before
    with pytest.raises(UserError, match="packed already"):
        write_ratings([rating()], tmp_path / "r.xlsx.gz")
    with pytest.raises(UserError, match=r"\.xlsx"):
        write_ratings([rating()], tmp_path / "r.ods")


def test_without_the_extra_no_sheet_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MissingExtra, match=r"(?s)r.xlsx.*\[sheets\].*\.csv"):
        write_ratings([rating()], tmp_path / "r.xlsx")
    assert not list(tmp_path.iterdir())
