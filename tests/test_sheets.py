"""Spreadsheets: recognised by what is in them, with the row numbers they show."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest

from palaver.errors import DataError, MissingExtra
from palaver.sheets import write_sheet
from palaver.studies import read_ratings

pytestmark = pytest.mark.filterwarnings("error")

FOLDER = Path(__file__).parent / "data" / "ratings-shapes"


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
    assert "read the sheet 'one'; left 'two', 'three'" in " ".join(table.reading.notes)
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
        MissingExtra, match=r"(?s)sheet.xlsx is an Excel file .*\[sheets\].*or save it as CSV"
    ):
        read_ratings(FOLDER / "sheet.xlsx")


def test_old_and_broken_sheets(tmp_path: Path) -> None:
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(DataError, match="(?s)old.xls is an old Excel .*save it as .xlsx or CSV"):
        read_ratings(tmp_path / "old.xls")
    whole = (FOLDER / "sheet.xlsx").read_bytes()
    (tmp_path / "cut.xlsx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut.xlsx"):
        read_ratings(tmp_path / "cut.xlsx")


def test_what_cannot_be_written_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(DataError, match="holds at most 32,767 characters, row 3 has a text of 40,000"):
        write_sheet([pl.DataFrame({"comment": ["short", "x" * 40_000]})], io.BytesIO())
    assert not list(tmp_path.iterdir())
