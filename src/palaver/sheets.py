"""Spreadsheets (.xlsx, .ods) as text cells with the row numbers that the spreadsheet shows.

They are recognised by what is in them, whatever their name.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.errors import DataError, MissingExtra, nearest, require

if TYPE_CHECKING:
    import polars as pl

_OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of what Office wrote until 2003."""
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"


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
