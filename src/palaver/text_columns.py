"""Cells of tables as text: trimmed, nothing where nothing is left, with the number of their row."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import polars as pl

from palaver.errors import DataError, short_repr

ROW = "row"
"""The column that holds the number of each row."""


def is_ours(column: str) -> bool:
    """Our own bookkeeping wins over a column called `row`."""
    return column not in ("", ROW)


def check_names(names: Sequence[str], path: Path) -> None:
    if not any(map(is_ours, names)):
        raise DataError(f"{path}: the header names no column", "expected a table with a header")
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: a column name stands twice in the header: {', '.join(map(repr, repeated))}")


def heading_of(rows: Sequence[Sequence[str | None]]) -> int:
    """Which of the first rows of a table names its columns: titles and merged headings may stand above it.

    These fill less than half of the columns. The heading has no numbers in it. Where rows differ in length
    nothing is skipped: one of them is wrong, not a title. A title alone in its row needs three columns below.
    """
    filled = [[cell for cell in row if cell and cell.strip()] for row in rows]
    widest = max(map(len, filled), default=0)
    place = next((n for n, cells in enumerate(filled) if 2 * len(cells) >= widest), 0)
    may_be_alone = widest > 2 and place + 1 < len(rows)
    titles = [row for row in rows[:place] if may_be_alone and len(row) == 1]
    lengths = {len(row) for row in rows if row and row not in titles}
    return 0 if len(lengths) > 1 or any(_is_number(cell) for cell in filled[place]) else place


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell.replace(",", ".")))  # "inf" is a name: RankME's informativeness
    except ValueError:
        return False


def above_heading(rows: Sequence[Sequence[str | None]]) -> str:
    """What is said of the rows above the heading."""
    cells = [cell.strip() for row in rows for cell in row if cell and cell.strip()]
    return f"left what stands above the heading: {', '.join(map(short_repr, cells))}"


def text_frame(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """Its columns as trimmed text, nothing where nothing is left, and the rows' numbers."""
    text = (pl.col(c).str.strip_chars().replace("", None) for c in frame.columns if is_ours(c))
    return frame.select(*text, rows)


def as_text(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """A typed frame as the text formats have it: trimmed text, nothing where nothing is left."""
    try:
        text = frame.select(_as_text(column) for column in frame.iter_columns() if column.name != ROW)
        return text_frame(text, frame[ROW])
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from None


def _as_text(column: pl.Series) -> pl.Series:
    """As the other formats have it: words joined by |, whole numbers without .0, durations in seconds."""
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind == pl.List(pl.String):
        return column.list.join("|", ignore_nulls=True)
    if kind == pl.Duration:
        return _as_text(column.dt.total_microseconds() / 1e6)
    if kind.is_float():
        return column.cast(pl.String).str.strip_suffix(".0")
    if kind == pl.Binary:
        return pl.Series(column.name, [v and v.decode(errors="replace") for v in column], dtype=pl.String)
    if kind.is_nested():
        return pl.Series(column.name, [cell_text(v) for v in column.to_list()], dtype=pl.String)
    return column.cast(pl.String)


def cell_text(value: object) -> str | None:
    """A JSON value as the text a CSV would hold; a list of words is joined by |."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):  # 1e3 as 1000, which is how polars writes it
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "|".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)
