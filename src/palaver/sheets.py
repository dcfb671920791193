"""Spreadsheets: read (.xlsx, .ods) as text cells with the row numbers they show, and written (.xlsx).

They are recognised by what is in them, whatever their name.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from palaver.errors import DataError, MissingExtra, nearest, require

if TYPE_CHECKING:
    import polars as pl

_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of what Office wrote until 2003."""
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"

MOST_ROWS = 1_048_576
"""Rows of a sheet, its header included; what comes after them no spreadsheet shows."""
MOST_CHARACTERS = 32_767
"""Of a cell."""
_LARGEST = 9.99e307
"""Of a cell's numbers."""
_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""When a sheet says it was made: the same ratings give the same bytes."""


@dataclass(frozen=True)
class Sheet:
    """The cells of one sheet as text, from its first row on; columns have no names yet."""

    name: str
    cells: pl.DataFrame
    others: tuple[str, ...]
    """The sheets that were left."""


def sheet_kind(path: Path) -> str:
    """`an Excel file (.xlsx)`, `an OpenDocument spreadsheet (.ods)`, or nothing for any other file."""
    with path.open("rb") as file:
        head = file.read(8)
        if head.startswith(_OLD):
            raise DataError(
                f"{path} is an old Excel file (.xls), or an Office file with a password",
                "save it as .xlsx or CSV, without a password",
            )
        if not head.startswith(b"PK\x03\x04"):
            return ""
        try:
            with zipfile.ZipFile(file) as archive:
                names = set(archive.namelist())
                if {"xl/workbook.xml", "xl/workbook.bin"} & names:
                    return "an Excel file (.xlsx)"
                if "mimetype" in names and archive.read("mimetype").strip() == _ODS:
                    return "an OpenDocument spreadsheet (.ods)"
        except (zipfile.BadZipFile, RuntimeError, OSError, ValueError, NotImplementedError):
            pass  # no sheet, and not for us to say what it is
    return ""


def read_sheet(path: Path, kind: str, name: str | None = None) -> Sheet:
    """The sheet called `name`, or the first."""
    try:
        fastexcel: Any = require("fastexcel", "sheets")
    except MissingExtra as error:
        raise MissingExtra(f"{path} is {kind}: {error.message}", f"{error.hint}, or save it as CSV") from None
    try:
        book = fastexcel.read_excel(path)
        names = list(book.sheet_names)
        if name is not None and name not in names:
            listed = ", ".join(map(repr, names))
            raise DataError(f"{path} has no sheet {name!r}{nearest(name, names)}", f"it has {listed}")
        chosen = names[0] if name is None else name
        # all rows as text and none taken for a header, so that rows keep their numbers
        cells = book.load_sheet(chosen, header_row=None, skip_rows=0, dtypes="string").to_polars()
    except fastexcel.FastExcelError as error:
        raise DataError(f"{path} is {kind} that cannot be read: {str(error).splitlines()[0]}") from None
    return Sheet(chosen, cells, tuple(other for other in names if other != chosen))


def check_can_write(path: Path) -> None:
    """Raise `MissingExtra` if sheets cannot be written here."""
    try:
        require("xlsxwriter", "sheets")
    except MissingExtra as error:
        hint = f"{error.hint}, or end the name in .csv"
        raise MissingExtra(f"{path} would be an Excel file: {error.message}", hint) from None


def write_sheet(frames: Iterable[pl.DataFrame], file: IO[bytes]) -> None:
    """Write frames of one schema as the only sheet of an .xlsx file, row by row.

    Numbers are numbers and texts are texts, whatever they look like: no cell becomes a formula or a link.
    """
    xlsxwriter: Any = require("xlsxwriter", "sheets")
    with xlsxwriter.Workbook(file, {"constant_memory": True}) as book:  # else its temporary files stay
        book.set_properties({"created": _DAY})
        sheet = book.add_worksheet("ratings")
        row = 0
        for frame in frames:
            if not row:
                row = _write_row(sheet, 0, frame.columns)
                sheet.freeze_panes(1, 0)
            for cells in frame.iter_rows():
                row = _write_row(sheet, row, cells)


def _write_row(sheet: Any, row: int, cells: Iterable[Any]) -> int:
    """The place of the next row."""
    if row >= MOST_ROWS:
        raise DataError(
            f"a sheet has at most {MOST_ROWS:,} rows with its header, and there are more ratings",
            "end the name in .csv or .parquet",
        )
    for column, cell in enumerate(cells):
        if cell is None or cell == "":
            continue
        if isinstance(cell, bool):
            sheet.write_boolean(row, column, cell)
        elif isinstance(cell, int | float) and abs(cell) < _LARGEST:
            sheet.write_number(row, column, cell)
        else:
            text = cell.isoformat(timespec="microseconds") if isinstance(cell, datetime) else str(cell)
            if len(text) > MOST_CHARACTERS:
                raise DataError(
                    f"a cell of a sheet holds at most {MOST_CHARACTERS:,} characters, row {row + 1} "
                    f"has a text of {len(text):,}",
                    "end the name in .csv or .parquet",
                )
            sheet.write_string(row, column, text)
    return row + 1
