"""Tables read as a stream: every cell, the right row number, whatever the file, wherever its blocks end."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zipfile
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver import csv_tables, files, tables
from palaver.errors import DataError
from palaver.tables import TableSource, open_frame, open_table
from palaver.text_columns import ROW

relaxed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
Rows = list[dict[str, Any]]


def put(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(source: TableSource) -> Rows:
    """All rows as dicts without empty cells, so that frames of different widths compare."""
    return [
        {key: cell for key, cell in row.items() if cell is not None}
        for frame in source.frames()
        for row in frame.iter_rows(named=True)
    ]


def read(path: Path) -> tuple[Rows, list[tuple[int, str]]]:
    source = open_table(path)
    return rows_of(source), source.problems


def read_in_blocks(path: Path, block: int, chunk: int) -> tuple[Rows, list[tuple[int, str]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "BLOCK", block)
        patch.setattr(files, "_CHUNK", chunk)
        return read(path)


# --- CSV -----------------------------------------------------------------------------------------------

cells = st.text("ab é😀,;\t|'\"\n\r\0{[=", max_size=6)


@st.composite
def csv_files(draw: st.DrawFn) -> tuple[bytes, Rows, list[int]]:
    """A file, what is in it, and the numbers of its ragged rows."""
    width = draw(st.integers(2, 4))
    names = [f"c{i}" for i in range(width)]
    delimiter = draw(st.sampled_from([",", ";", "\t"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    before = draw(st.integers(0, 2))
    text.write(end * before)
    writer.writerow(names)
    number = before + 1
    expected: Rows = []
    ragged: list[int] = []
    for kind in draw(st.lists(st.sampled_from(["good", "good", "good", "blank", "ragged"]), max_size=12)):
        number += 1
        if kind == "blank":
            text.write(draw(st.sampled_from(["", " "])) + end)
        elif kind == "ragged":
            size = draw(st.sampled_from([1, width - 1, width + 1, width + 3]))
            writer.writerow(["x", *[draw(cells) for _ in range(size - 1)]] if size != width else ["x"] * 9)
            ragged.append(number)
        else:
            values = [draw(cells) for _ in names]
            writer.writerow(values)
            shown = [value.strip().replace("\0", "\x1a") for value in values]
            row = {name: value for name, value in zip(names, shown, strict=True) if value}
            expected += [{**row, ROW: number}] if row else []
    content = text.getvalue()
    if draw(st.booleans()) and not content.endswith(f"{end}{end}"):
        content = content.removesuffix(end)
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    return content.encode(encoding), expected, ragged


@given(drawn=csv_files(), more=st.integers(0, 200), chunk=st.integers(1, 64))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_csv_gives_every_cell_and_its_row_wherever_blocks_end(
    drawn: tuple[bytes, Rows, list[int]], more: int, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content, expected, ragged = drawn
    path = put(tmp_path_factory.mktemp("csv") / "t.csv", content)
    if not expected and not ragged:
        with pytest.raises(DataError, match="has a header but no rows"):
            read(path)
        return
    found, problems = read(path)
    assert found == expected
    assert [number for number, _ in problems] == ragged
    longest = 256 + more  # a block has to hold the longest row
    assert read_in_blocks(path, longest, chunk) == (found, problems)


@given(body=st.text('ab ,"\n', max_size=60), more=st.integers(0, 60), windows=st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_polars_reads_a_block_as_python_does(
    body: str, more: int, windows: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the quotation marks: the quick way is taken only where it finds the same rows."""
    text = f"x,y\n{body}\n1,2\n".replace("\n", "\r\n" if windows else "\n")
    path = put(tmp_path_factory.mktemp("csv") / "t.csv", text)

    def outcome(block: int) -> object:
        try:
            return read_in_blocks(path, block, 1 << 20)
        except DataError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_tables, "_quick_csv", lambda *_: None)
        expected = outcome(1 << 20)
    assert outcome(1 << 20) == expected
    assert outcome(len(text) + more) == expected
    blocks = outcome(40 + more)
    assert blocks == expected or "a row of more than" in str(blocks)


def test_row_numbers_stay_right_among_many_bad_rows(tmp_path: Path) -> None:
    rows = [f"{n},x" if n % 3 else f"{n}" for n in range(2, 30_000)]
    path = put(tmp_path / "t.csv", "\n".join(["n,x", *rows]))
    for block in (1 << 10, 1 << 23):
        found, problems = read_in_blocks(path, block, 1 << 22)
        assert all(int(row["n"]) == row[ROW] for row in found)
        assert len(found) + len(problems) == len(rows)
        assert [number for number, _ in problems] == [n for n in range(2, 30_000) if n % 3 == 0]
    assert problems[0] == (3, "expected 2 fields, found 1: '3'")


def test_a_block_of_bad_rows_only(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", "a,b\n" + "x\n" * 500 + "1,2\n")
    found, problems = read_in_blocks(path, 64, 64)
    assert found == [{"a": "1", "b": "2", ROW: 502}]
    assert len(problems) == 500


def test_all_rows_bad_is_not_the_same_as_no_rows(tmp_path: Path) -> None:
    found, problems = read(put(tmp_path / "t.csv", "a,b\n1\n2\n"))
    assert found == []
    assert len(problems) == 2


def test_what_a_bad_row_says_is_shown_but_not_all_of_it(tmp_path: Path) -> None:
    _, problems = read(put(tmp_path / "t.csv", "a,b\n1,2\n" + "x" * 5000 + "\n"))
    assert problems[0][0] == 3
    assert len(problems[0][1]) < 150


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a,b\n1,2\n", ("a", "b")),
        ("a;b\n1;2,5\n", ("a", "b")),
        ("a\tb\n1\t2\n", ("a", "b")),
        ("only\n1\n", ("only",)),
        (' a , "b"\n1,2\n', ("a", '"b"')),
        ('"a, with; marks";b\n1;2\n', ("a, with; marks", "b")),
        ('"a\nb",c\n1,2\n', ("a\nb", "c")),
        ('"a""b",c\n1,2\n', ('a"b', "c")),
        ("\ufeffa,b\n1,2\n", ("a", "b")),
        ("\n\r\n  \na,b\n1,2\n", ("a", "b")),
        (",a,b\n0,1,2\n", ("a", "b")),
        ("a,,b,,\n1,,2,,\n", ("a", "b")),
        ("row,a\n9,1\n", ("a",)),
        ("ROW,a\n9,1\n", ("ROW", "a")),
        ("é,ü\n1,2\n", ("é", "ü")),
    ],
)
def test_headers(content: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    source = open_table(put(tmp_path / "t.csv", content))
    assert source.columns == columns
    assert source.format == "csv"
    (frame,) = source.frames()
    assert set(frame.columns) == {*columns, ROW}
    assert frame.height == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b,a\n1,2,3\n", "a column name stands twice in the header: 'a'"),
        ("a, a \n1,2\n", "stands twice"),
        ("\ufeff", "is empty"),
        ("\n\n", "is empty"),
        (",,\n1,2,3\n", "names no column"),
        ("row\n1\n", "names no column"),
        ('"a,b\n1,2\n', "the header is not a CSV row"),
        ('"a"x,b\n1,2\n', "the header is not a CSV row"),
        ("a,b", "has a header but no rows"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\r\n\r\n", "has a header but no rows"),
        ("a,b\n,\n ,\n", "has a header but no rows"),
        ('a,b\n1,"2\n3,4\n5,6\n', "row 2: a quotation mark is never closed"),
    ],
)
def test_csv_that_is_none(content: str, words: str, tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", content)
    with pytest.raises(DataError, match=words):
        rows_of(open_table(path))


def test_a_last_cell_with_line_breaks_is_no_open_quotation(tmp_path: Path) -> None:
    for content in ('a,b\n1,"2\n3"', 'a,b\n1,"2\r\n3"\r\n\r\n', 'a,b\n1,"2\n""3"""\n'):
        found, _ = read(put(tmp_path / "t.csv", content))
        assert len(found) == 1


def test_a_row_longer_than_a_block_says_so(tmp_path: Path) -> None:
    path = put(tmp_path / "t.csv", 'a,b\n1,2\n3,"' + "x,y\n" * 1000)
    with pytest.raises(DataError, match=r"a row of more than 512 bytes\nperhaps a quotation mark"):
        read_in_blocks(path, 512, 100)


def test_a_cell_of_a_million_characters(tmp_path: Path) -> None:
    found, _ = read(put(tmp_path / "t.csv", f"a,b\n1,{'x' * 10**6}\n2,y"))
    assert len(found[0]["b"]) == 10**6
    assert found[1] == {"a": "2", "b": "y", ROW: 3}


def test_old_lines_and_zero_bytes(tmp_path: Path) -> None:
    found, _ = read(put(tmp_path / "t.csv", b"a,b\r1,x\0y\r2,\0"))
    assert found == [{"a": "1", "b": "x\x1ay", ROW: 2}, {"a": "2", "b": "\x1a", ROW: 3}]


def test_zero_bytes_do_not_shift_cells(tmp_path: Path) -> None:
    """A lexer that skips ahead may end a step at a zero byte."""
    rows = [f'"{n}","some longer text \0 here, with a mark",{n}\n' for n in range(200)]
    found, problems = read(put(tmp_path / "t.csv", "a,b,c\n" + "".join(rows)))
    assert problems == []
    assert [(row["a"], row["c"]) for row in found] == [(str(n), str(n)) for n in range(200)]


def test_a_line_break_in_a_cell_stays_whole_wherever_blocks_end(tmp_path: Path) -> None:
    content = "a,b\n" + "xxxxxx,yyyyy\n" * 4 + '"q","x\r\ny"\n'
    path = put(tmp_path / "t.csv", content)
    for block in range(32, len(content) + 2):
        found, problems = read_in_blocks(path, block, 64)
        assert problems == []
        assert found[-1]["b"] == "x\r\ny", block


def test_mixed_encodings_in_one_file_are_counted(tmp_path: Path) -> None:
    source = open_table(put(tmp_path / "t.csv", "a,b\né,1\n".encode() + "é,2\n".encode("cp1252")))
    assert [row["a"] for row in rows_of(source)] == ["é", "é"]
    assert source.encoding.recoded_lines == 1


def test_wrapped_files(tmp_path: Path) -> None:
    expected = [{"a": "1", "b": "2", ROW: 2}]
    assert read(put(tmp_path / "t.csv.gz", gzip.compress(b"a,b\n1,2\n")))[0] == expected
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("t.tsv", "a\tb\n1\t2\n")
    assert read(tmp_path / "t.zip")[0] == expected
    assert read(put(tmp_path / "noname", "a;b\n1;2\n"))[0] == expected


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_cut_short_is_not_taken_for_a_whole_one(ending: str, tmp_path: Path) -> None:
    lines = {"csv": ["a,b", *["1,2"] * 5000], "jsonl": ['{"a": 1}'] * 5000}[ending]
    packed = gzip.compress("\n".join(lines).encode())
    path = put(tmp_path / f"t.{ending}.gz", packed[:-12])
    with pytest.raises(DataError, match="damaged, cut short"):
        rows_of(open_table(path))


def test_progress_reaches_the_size(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": ["x"] * 1000})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_ndjson(tmp_path / "t.jsonl")
    for ending in ("csv", "jsonl", "parquet"):
        told: list[int] = []
        source = open_table(tmp_path / f"t.{ending}")
        list(source.frames(told.append))
        assert told == sorted(told)
        assert told[-1] == source.size == source.path.stat().st_size


def test_frames_can_be_read_again(tmp_path: Path) -> None:
    source = open_table(put(tmp_path / "t.csv", "a,b\n1,2\n3\n"))
    assert rows_of(source) == rows_of(source)
    assert len(source.problems) == 1


# --- JSON lines ----------------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text('ab é😀\t"\\{}[],:\n\r\0', max_size=6),
)
values = (
    scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text("ab", max_size=2), scalars, max_size=2)
)
objects = st.dictionaries(st.sampled_from(["a", "b", "value", "row", "é"]), values, max_size=4)
WRONG = [
    "{",
    "5",
    "null",
    '"x"',
    "[1]",
    '{"a": 1} {"a": 2}',
    "{'a': 1}",
    '{"a": 1,}',
    '{"a": "\\ud800"}',
    "x",
]


def as_text(value: Any) -> str | None:
    """What the cell should hold: words as they are, numbers so that they parse to the same number."""
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "|".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def same_cell(found: str | None, value: Any) -> bool:
    expected = (as_text(value) or "").strip()
    if isinstance(value, float):
        return found is not None and float(found) == value and "e" not in found
    return (found or "").strip() == expected


@st.composite
def json_files(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, dict[str, Any]]], list[int]]:
    lines: list[str] = []
    expected, wrong = [], []
    plain = draw(st.booleans())
    drawn = st.dictionaries(st.sampled_from(["a", "b", "row"]), scalars, max_size=3) if plain else objects
    ascii_only = draw(st.booleans())
    for kind in draw(st.lists(st.sampled_from(["good", "good", "good", "blank", "wrong"]), max_size=10)):
        number = len(lines) + 1
        if kind == "blank" and not plain:
            lines.append(draw(st.sampled_from(["", "  ", "\t"])))
        elif kind == "wrong" and not plain:
            lines.append(draw(st.sampled_from(WRONG)))
            wrong.append(number)
        else:
            row = draw(drawn)
            lines.append(json.dumps(row, ensure_ascii=ascii_only))
            expected.append((number, row))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))), expected, wrong


@given(drawn=json_files(), block=st.integers(1, 100), chunk=st.integers(1, 64))
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
def test_json_lines_give_every_cell_and_its_line_wherever_blocks_end(
    drawn: tuple[bytes, list[tuple[int, dict[str, Any]]], list[int]],
    block: int,
    chunk: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    content, expected, wrong = drawn
    path = put(tmp_path_factory.mktemp("json") / "t.jsonl", content or b"\n")
    if not any(row for _, row in expected):
        if not wrong and not expected:
            with pytest.raises(DataError, match="has no rows"):
                read(path)
        return
    found, problems = read(path)
    assert [row[ROW] for row in found] == [number for number, _ in expected]
    for got, (_, row) in zip(found, expected, strict=True):
        for key in {*got, *row} - {ROW}:
            assert same_cell(got.get(key), row.get(key)), (key, got, row)
    assert [number for number, _ in problems] == wrong
    assert read_in_blocks(path, block, chunk) == (found, problems)


@pytest.mark.parametrize("late", ["2", '"2"', "2.5", "[1, 2]", "true", '{"x": 1}'])
def test_a_field_that_comes_late_is_not_lost(late: str, tmp_path: Path) -> None:
    lines = ['{"item": "i", "value": 1}'] * 100_000
    lines += ['{"item": "i", "value": 1, "late": ' + late + "}", '{"late": "x"}']
    source = open_table(put(tmp_path / "t.jsonl", "\n".join(lines)))
    assert source.columns == ("item", "value")
    last = pl.concat(source.frames(), how="diagonal")[-3:].to_dicts()
    assert [row[ROW] for row in last] == [100_000, 100_001, 100_002]
    text = late.strip('"')
    assert [row["late"] for row in last] == [None, text, "x"]


def test_a_value_that_changes_its_kind_late(tmp_path: Path) -> None:
    odd = ["1.5", '"text"', "null", "true", "12345678901234567890", "[]", '["a", "b"]', '{"a": [1]}', "1e2"]
    lines = ['{"value": 1}'] * 5000 + [f'{{"value": {v}}}' for v in odd]
    found, problems = read(put(tmp_path / "t.jsonl", "\n".join(lines)))
    shown = ["1.5", "text", None, "true", "12345678901234567890", None, "a|b", '{"a": [1]}', "100"]
    assert [row.get("value") for row in found[5000:]] == shown
    assert problems == []


def test_a_whole_number_is_the_same_text_however_it_is_read(tmp_path: Path) -> None:
    plain = '{"a": 1.0, "b": 3, "c": 1e3, "d": 0.1, "e": 1e-7, "f": 1e22}\n'
    (fast,), _ = read(put(tmp_path / "fast.jsonl", plain))
    slow, _ = read(put(tmp_path / "slow.jsonl", plain + '{"g": ["list"]}\n'))
    assert slow[0] == fast
    assert fast == {
        "a": "1",
        "b": "3",
        "c": "1000",
        "d": "0.1",
        "e": "0.0000001",
        "f": "1" + "0" * 22,
        ROW: 1,
    }


def test_the_quick_way_is_taken_for_plain_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("not for plain rows")

    monkeypatch.setattr(tables, "_any_json_frame", refuse)
    found, _ = read(put(tmp_path / "t.jsonl", '{"a": "x", "b": 1}\n{"a": "é", "late": 2}\n'))
    assert found == [{"a": "x", "b": "1", ROW: 1}, {"a": "é", "late": "2", ROW: 2}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("\n \n", "has no rows"),
        ("5\n", "line 1: expected a JSON object, found int"),
        ("\n[]\n", "has no rows"),
        ("[]\n[]\n", "line 1: expected a JSON object, found list"),
        ('[{"a": 1},\n{"a": 2}', "is not a whole JSON array: .*\nis the file cut short"),
        ('{\n"a": 1\n}', "line 1: "),
        ('{"a": 1}\r{"a": 2}\r', "line 1: "),
        ("\0\0\0", "line 1: "),
        ('{"a": "\\udc00"}', "line 1: .*surrogates not allowed"),
    ],
)
def test_json_lines_that_are_none(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words):
        rows_of(open_table(put(tmp_path / "t.jsonl", content)))


def test_a_json_array_is_a_table(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": "x"}, 5, {"a": None, "late": ["u", "v"]}, {"a": "\udc00"}]
    for name in ("t.json", "t.jsonl", "t"):
        for indent in (None, 1):
            found, problems = read(put(tmp_path / name, json.dumps(rows, indent=indent)))
            assert found == [{"a": "1", "b": "x", ROW: 1}, {"late": "u|v", ROW: 3}]
            assert [row for row, _ in problems] == [2, 4]


def test_a_broken_first_line_is_one_broken_line(tmp_path: Path) -> None:
    found, problems = read(put(tmp_path / "t.jsonl", '{"a": \n{"a": 1}\n'))
    assert found == [{"a": "1", ROW: 2}]
    assert [number for number, _ in problems] == [1]


def test_brackets_without_end_are_one_broken_line(tmp_path: Path) -> None:
    lines = ['{"a": 1}', '{"a": ' + "[" * 100_000, '{"a": ' + '{"a": ' * 100_000, '{"a": 2}', "9" * 5000]
    found, problems = read(put(tmp_path / "t.jsonl", "\n".join(lines)))
    assert [row["a"] for row in found] == ["1", "2"]
    assert [number for number, _ in problems] == [2, 3, 5]


def test_rows_without_fields_still_count(tmp_path: Path) -> None:
    found, _ = read(put(tmp_path / "t.jsonl", "{}\n{}\n"))
    assert found == [{ROW: 1}, {ROW: 2}]


def test_one_line_longer_than_a_block(tmp_path: Path) -> None:
    long = "x" * (tables.BLOCK + 1000)
    found, _ = read(put(tmp_path / "t.jsonl", f'{{"a": "{long}"}}\n{{"a": "y"}}'))
    assert [len(row["a"]) for row in found] == [len(long), 1]
    assert found[1][ROW] == 2


# --- Parquet -------------------------------------------------------------------------------------------


def test_parquet_of_all_kinds_of_columns(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": [" a ", ""],
            "whole": [1, None],
            "real": [1.0, 2.5],
            "small": pa.array([0.5, None], pa.float32()),
            "truth": [True, False],
            "day": [date(2020, 1, 2), None],
            "moment": [datetime(2020, 1, 2, 3, 4, 5), None],
            "took": [timedelta(seconds=1.5), timedelta(days=1)],
            "price": [Decimal("1.50"), None],
            "words": [["a", "b"], []],
            "holes": [["a", None], None],
            "numbers": [[1, 2], None],
            "thing": [{"x": 1, "y": "é"}, None],
            "bytes": [b"abc", b"\xff"],
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "pairs": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "nothing": pa.nulls(2),
            "row": [9, 9],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    assert "row" not in source.columns
    first, second = rows_of(source)
    pairs = first.pop("pairs")
    assert '"k"' in pairs
    assert first == {
        "text": "a",
        "whole": "1",
        "real": "1",
        "small": "0.5",
        "truth": "true",
        "day": "2020-01-02",
        "moment": "2020-01-02 03:04:05.000000",
        "took": "1.5",
        "price": "1.50",
        "words": "a|b",
        "holes": "a",
        "numbers": "[1, 2]",
        "thing": '{"x": 1, "y": "é"}',
        "bytes": "abc",
        "kind": "x",
        ROW: 1,
    }
    assert second == {
        "real": "2.5",
        "truth": "false",
        "took": "86400",
        "bytes": "\ufffd",
        "kind": "y",
        ROW: 2,
    }


def test_parquet_rows_are_numbered_across_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": list(range(1, 1001))}), tmp_path / "t.parquet", row_group_size=7)
    found, _ = read(tmp_path / "t.parquet")
    assert all(int(row["n"]) == row[ROW] for row in found)
    assert len(found) == 1000


def test_parquet_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not a Parquet file, or is cut short"):
        open_table(put(tmp_path / "t.parquet", "item,value"))
    pq.write_table(pa.table({"a": [math.pi] * 10_000}), tmp_path / "good.parquet", use_dictionary=False)
    whole = (tmp_path / "good.parquet").read_bytes()
    with pytest.raises(DataError, match="cut short"):
        open_table(put(tmp_path / "cut.parquet", whole[:-50]))
    damaged = put(tmp_path / "damaged.parquet", whole[:4] + b"\xff" * 200 + whole[204:])
    with pytest.raises(DataError, match="damaged after row 0"):
        rows_of(open_table(damaged))
    pq.write_table(pa.table({"a": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    with pytest.raises(DataError, match="has a header but no rows"):
        rows_of(open_table(tmp_path / "empty.parquet"))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(DataError):
        rows_of(open_table(tmp_path / "twice.parquet"))


# --- all of them ---------------------------------------------------------------------------------------


@given(
    rows=st.lists(
        st.fixed_dictionaries({"a": st.text("xyz é|", max_size=4), "b": st.text("xyz,\n", max_size=4)}),
        min_size=1,
        max_size=6,
    )
)
@relaxed
def test_one_table_reads_the_same_in_all_formats(
    rows: Rows, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("same")
    rows = [{**row, "c": "x"} for row in rows]
    frame = pl.DataFrame(rows)
    frame.write_csv(folder / "t.csv")
    frame.write_ndjson(folder / "t.jsonl")
    frame.write_parquet(folder / "t.parquet")
    stripped = [{key: cell.strip() for key, cell in row.items() if cell.strip()} for row in rows]
    for ending, first in {"csv": 2, "jsonl": 1, "parquet": 1}.items():
        found, problems = read(folder / f"t.{ending}")
        assert problems == []
        assert found == [{**row, ROW: number} for number, row in enumerate(stripped, start=first)]


def test_a_directory_and_a_missing_file(tmp_path: Path) -> None:
    put(tmp_path / "ratings.csv", "a\n1\n")
    with pytest.raises(DataError, match=r"is a directory, not a file .it holds ratings.csv"):
        open_table(tmp_path)
    with pytest.raises(DataError, match="did you mean 'ratings.csv'"):
        open_table(str(tmp_path / "rating.csv"))


# --- types ----------------------------------------------------------------------------------------------


def test_typed_frames_keep_what_parquet_and_frames_say(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [datetime(2024, 1, 1), None]})
    frame = frame.with_columns(pl.Series("d", [["x"], []]), pl.Series(ROW, [7, 8]))
    frame.write_parquet(tmp_path / "t.parquet")
    (typed,) = open_table(tmp_path / "t.parquet").typed_frames(coded=["a", "b", "d", "no such column"])
    assert dict(typed.schema) == {
        "a": pl.Int64,
        "b": pl.Categorical,
        "c": pl.Datetime("us"),
        "d": pl.List(pl.String),
        ROW: pl.Int64,
    }
    assert typed[ROW].to_list() == [1, 2]
    (own,) = open_frame(frame).typed_frames()
    assert own.equals(typed.cast({"b": pl.String}))
    (text,) = open_frame(frame).frames()
    (text_of_file,) = open_table(tmp_path / "t.parquet").frames()
    assert text.equals(text_of_file)
    assert set(text.drop(ROW).dtypes) == {pl.String}


def test_frames_come_in_pieces_with_rows_that_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH", 2)
    told: list[int] = []
    pieces = list(open_frame(pl.DataFrame({"a": range(5)})).typed_frames(told.append))
    assert [piece[ROW].to_list() for piece in pieces] == [[1, 2], [3, 4], [5]]
    assert told == [2, 4, 5]


def test_a_frame_without_rows() -> None:
    with pytest.raises(DataError, match="mine has a header but no rows"):
        list(open_frame(pl.DataFrame({"a": []}), "mine").frames())
