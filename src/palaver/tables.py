"""Tables read as a stream of frames: JSON, CSV, Parquet, a sheet of a spreadsheet or a frame in memory.

Every frame has all its columns (as text, or with the types they have) plus `row`, the place in the file that
a person would look at: the row of a CSV or a sheet as a spreadsheet numbers it (header and blank rows count),
the line of a JSON-lines file, the entry of a JSON array, the row of a Parquet table. Columns without a name
are left out: nothing could ask for them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import polars as pl

from palaver.errors import DataError
from palaver.files import (
    Encoding,
    Format,
    TextStream,
    as_path,
    check_readable,
    detect_format,
    json_object,
    sha256_of,
)
from palaver.sheets import read_sheet, sheet_kind

# A cell may well be longer than 131,072 characters. Set here, so that it always holds.
csv.field_size_limit(1 << 30)

BLOCK = 1 << 23
BATCH = 1 << 18
"""Rows of a frame."""
ROW = "row"


@dataclass
class TableSource:
    """A table on disk. `problems` and `encoding` fill up while `frames` is consumed."""

    path: Path
    format: Format
    columns: tuple[str, ...]
    size: int
    """Bytes on disk, for progress bars."""
    problems: list[tuple[int, str]] = field(default_factory=list)
    """Rows that could not be read as rows at all: (row, what is wrong)."""
    encoding: Encoding = field(default_factory=Encoding)
    decimal_commas: bool = False
    """Whether 3,5 may be a number: in sheets, and where cells are not parted by commas."""
    notes: list[str] = field(default_factory=list)
    """What was left unread of the file."""

    def frames(self, progress: Callable[[int], None] | None = None) -> Iterator[pl.DataFrame]:
        """Frames of text columns in file order; `progress` is told the bytes consumed so far."""
        for frame in self.typed_frames(progress):
            yield as_text(frame, self.path) if self.format == "parquet" else frame

    def typed_frames(
        self,
        progress: Callable[[int], None] | None = None,
        *,
        coded: Collection[str] = (),
    ) -> Iterator[pl.DataFrame]:
        """The same with the types that Parquet and frames give their columns; text files give text.

        Text columns of Parquet that are named in `coded` come as categories.
        """
        self.problems.clear()
        n_rows = 0
        for frame in self._read(progress or (lambda done: None), coded):
            n_rows += frame.height
            yield frame
        if n_rows == 0 and not self.problems:
            raise DataError(
                f"{self.path} has {'no rows' if self.format == 'jsonl' else 'a header but no rows'}"
            )

    def _read(self, progress: Callable[[int], None], coded: Collection[str]) -> Iterator[pl.DataFrame]:
        if self.format == "parquet":
            return _parquet_frames(self, progress, coded)
        if self.format == "csv":
            return _csv_frames(self, progress)
        return _jsonl_frames(self, progress)

    def digest(self) -> str:
        """The SHA-256 of the content."""
        return sha256_of(self.path)


@dataclass
class FrameSource(TableSource):
    """A frame in memory, read as if it were a file."""

    frame: pl.DataFrame = field(default_factory=pl.DataFrame)

    def _read(self, progress: Callable[[int], None], coded: Collection[str]) -> Iterator[pl.DataFrame]:
        rows = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(ROW)
        for piece in self.frame.select(*self.columns, rows).iter_slices(BATCH):
            progress(piece[ROW][-1])
            yield piece

    def digest(self) -> str:
        content = io.BytesIO()
        self.frame.write_parquet(content)
        return hashlib.sha256(content.getbuffer()).hexdigest()


@dataclass
class WholeSource(TableSource):
    """A file that had to be read whole, as text: a sheet, or a JSON array."""

    frame: pl.DataFrame = field(default_factory=pl.DataFrame)
    """With the numbers of its rows."""
    broken: list[tuple[int, str]] = field(default_factory=list)

    def _read(self, progress: Callable[[int], None], coded: Collection[str]) -> Iterator[pl.DataFrame]:
        self.problems += self.broken
        for piece in self.frame.iter_slices(BATCH):
            if piece.height:
                yield piece
        progress(self.size)


def open_frame(frame: Any, name: str = "frame") -> FrameSource:
    """A polars or pandas frame, or anything that hands out Arrow, as a table."""
    frame = pl.DataFrame(frame)
    columns = tuple(filter(_is_ours, frame.columns))
    return FrameSource(Path(name), "parquet", columns, frame.height, frame=frame)


def open_table(path: str | Path, *, sheet: str | None = None) -> TableSource:
    """Look at the beginning of a file and say what it is. `sheet` names one of a spreadsheet's."""
    path = as_path(path)
    check_readable(path)
    spreadsheet = sheet_kind(path)
    if spreadsheet:
        return _open_sheet(path, spreadsheet, sheet)
    if sheet is not None:
        raise DataError(f"{path} is no spreadsheet, so it has no sheet {sheet!r}", "leave out --sheet")
    kind = detect_format(path)
    source = TableSource(path, kind, (), path.stat().st_size)
    columns: Sequence[str]
    if kind == "parquet":
        with open_parquet(path) as file:
            columns = file.schema_arrow.names
    elif kind == "jsonl":
        if _is_array(path):
            return _open_array(path)
        with TextStream(path) as stream:
            columns = _first_keys(stream, path)
    else:
        with TextStream(path) as stream:
            header = read_header(stream, path)
        columns = header.names
        source.decimal_commas = header.delimiter != ","
    source.columns = tuple(filter(_is_ours, columns))
    return source


def _open_sheet(path: Path, kind: str, name: str | None) -> WholeSource:
    sheet = read_sheet(path, kind, name)
    blank = pl.all_horizontal(pl.all().is_null())
    cells = _text_frame(sheet.cells, pl.int_range(1, sheet.cells.height + 1, eager=True).alias(ROW))
    filled = cells.filter(~cells.drop(ROW).select(blank).to_series()) if cells.width > 1 else cells.clear()
    if filled.is_empty():
        raise DataError(f"{path}: the sheet {sheet.name!r} is empty", "expected a table with a header")
    header = filled.drop(ROW).row(0)
    names = [name or "" for name in header]
    _check_names(names, path)
    columns = [column for column, name in zip(filled.columns, names, strict=False) if _is_ours(name)]
    frame = filled[1:].select(*columns, ROW)
    frame.columns = [*filter(_is_ours, names), ROW]
    source = WholeSource(path, "csv", tuple(frame.columns[:-1]), path.stat().st_size, frame=frame)
    source.decimal_commas = True
    if sheet.others:
        left = ", ".join(map(repr, sheet.others))
        source.notes.append(f"read the sheet {sheet.name!r}; left {left} (--sheet NAME reads another)")
    return source


def _is_array(path: Path) -> bool:
    """Whether a JSON file is one array; not where its first line is a list and more lines follow."""
    with TextStream(path) as stream:
        if not stream.read(4096).lstrip().startswith(b"["):
            return False
    with TextStream(path) as stream:
        first = next((line for line in stream if line.strip()), b"")
        if not any(line.strip() for line in stream):
            return True
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return True
    return False


def _open_array(path: Path) -> WholeSource:
    with TextStream(path) as stream:
        encoding = stream.encoding
        try:
            entries = json.loads(stream.read())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not a whole JSON array: {error}", "is the file cut short?") from None
    rows: list[dict[str, object]] = []
    broken: list[tuple[int, str]] = []
    for number, entry in enumerate(entries, start=1):
        try:
            row = json_object(json.dumps(entry).encode())
        except ValueError as error:
            broken.append((number, str(error)))
        else:
            rows.append({**{key: _cell(value) for key, value in row.items()}, ROW: number})
    frame = _rows_frame(rows, ())
    source = WholeSource(path, "jsonl", tuple(frame.columns[:-1]), path.stat().st_size, frame=frame)
    source.encoding, source.broken = encoding, broken
    return source


def _is_ours(column: str) -> bool:
    """Our own bookkeeping wins over a column called `row`."""
    return column not in ("", ROW)


class Header(NamedTuple):
    """The first row of a CSV that is not blank."""

    names: list[str]
    delimiter: str
    row: int
    """Where it stands: 1 unless blank lines come before it."""
    alone: bool
    """Whether nothing at all comes after it."""


def read_header(stream: BinaryIO, path: Path) -> Header:
    """Column names and delimiter. A quoted name may hold a line break, hence the csv module."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        row, first = 1, text.readline()
        while first and not first.strip():
            row, first = row + 1, text.readline()
        if not first:
            raise DataError(f"{path} is empty", "expected a table with a header")
        fields = {d: len(next(csv.reader([first], delimiter=d))) for d in (",", "\t", ";")}
        delimiter = max(fields, key=lambda d: fields[d])
        names = next(csv.reader(itertools.chain([first], text), delimiter=delimiter, strict=True))
        alone = not text.read(1)
    except csv.Error as error:
        raise DataError(f"{path}: the header is not a CSV row: {error}") from None
    finally:
        text.detach()
    names = [name.strip() for name in names]
    _check_names(names, path)
    return Header(names, delimiter, row, alone)


def _check_names(names: Sequence[str], path: Path) -> None:
    if not any(map(_is_ours, names)):
        raise DataError(f"{path}: the header names no column", "expected a table with a header")
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: a column name stands twice in the header: {', '.join(map(repr, repeated))}")


def _csv_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    import pyarrow as pa
    import pyarrow.csv

    with TextStream(source.path) as peek:
        header = read_header(peek, source.path)
    if header.alone:
        return
    names = [name or f" {i}" for i, name in enumerate(header.names)]  # no other name begins with a space
    unnamed = [name for name, given in zip(names, header.names, strict=True) if not given]
    skipped: list[int] = []

    def note(row: Any) -> str:
        skipped.append(row.number)
        text = row.text if len(row.text) <= 80 else row.text[:77] + "..."
        if text.strip():
            source.problems.append(
                (row.number, f"expected {row.expected_columns} fields, found {row.actual_columns}: {text!r}")
            )
        return "skip"

    with TextStream(source.path) as stream:
        source.encoding = stream.encoding
        try:
            reader = pa.csv.open_csv(
                _ArrowStream(stream),
                read_options=pa.csv.ReadOptions(
                    use_threads=False,
                    block_size=BLOCK,
                    column_names=names,
                    skip_rows=header.row - 1,
                    skip_rows_after_names=1,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=header.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,  # they come as rows of nulls, which keeps the numbers right
                    invalid_row_handler=note,
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
                ),
            )
            row, last = header.row, ""
            for batch in reader:
                progress(stream.consumed())
                frame = pl.DataFrame(batch)
                if not frame.height:
                    continue
                rows: Sequence[int] = range(row + 1, row + 1 + frame.height + len(skipped))
                if skipped:
                    gaps = set(skipped)
                    rows = [number for number in rows if number not in gaps][: frame.height]
                row = rows[-1]
                skipped[:] = [number for number in skipped if number > row]
                last = frame.item(-1, -1) or ""
                numbered = _text_frame(frame.drop(unnamed), pl.Series(ROW, rows, dtype=pl.Int64))
                yield numbered.filter(~pl.all_horizontal(pl.exclude(ROW).is_null()))
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise DataError(f"{source.path} is not a CSV table: {error}") from None
            raise DataError(
                f"{source.path} has a row of more than {BLOCK:,} bytes",
                "perhaps a quotation mark is never closed, or this is no CSV table",
            ) from None
    if "\n" in last or "\r" in last:
        _check_quotes_closed(source.path, row)


class _ArrowStream(io.RawIOBase):
    """The bytes as Arrow can take them.

    Its CSV lexer loses its place at zero bytes, so they become ASCII's "substitute", and it drops the second
    half of a line break (inside quotes, too) that two blocks share, so no block ends there.
    """

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        taken = self._stream.read(len(buffer) - 1)
        if taken.endswith(b"\r"):
            taken += self._stream.read(1)
        buffer[: len(taken)] = taken.replace(b"\0", b"\x1a")
        return len(taken)


def _check_quotes_closed(path: Path, row: int) -> None:
    """Arrow takes the end of the file for the missing quotation mark and all rows before it for one cell."""
    tail = b""
    with TextStream(path) as stream:
        for line in stream:
            tail = line.strip() or tail
    if not tail.endswith(b'"'):
        raise DataError(
            f"{path}, row {row}: a quotation mark is never closed",
            "all that follows it was read as one cell; close it or take it out",
        )


def _text_frame(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """Its columns as trimmed text, nothing where nothing is left, and the rows' numbers."""
    text = (pl.col(c).str.strip_chars().replace("", None) for c in frame.columns if _is_ours(c))
    return frame.select(*text, rows)


def _first_keys(stream: BinaryIO, path: Path) -> tuple[str, ...]:
    """Keys of the first hundred rows, so that an optional field missing from the first is still seen."""
    keys: dict[str, None] = {}
    wrong = ""
    for number, line in zip(range(1, 101), stream, strict=False):
        if line.strip():
            try:
                keys.update(dict.fromkeys(json_object(line)))
            except ValueError as error:
                wrong = wrong or f"{path}, line {number}: {error}"
    if wrong and not keys:
        raise DataError(wrong, "expected one JSON object per line")
    return tuple(keys)


def _jsonl_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    with TextStream(source.path) as stream:
        source.encoding = stream.encoding
        first_line, rest = 1, [b""]
        while True:
            chunk = stream.read(BLOCK)
            progress(stream.consumed())
            cut = chunk.rfind(b"\n") + 1
            block = b"".join([*rest, chunk[:cut]]) if cut or not chunk else b""
            rest = [chunk[cut:]] if cut else [*rest, chunk]
            if block.strip():
                frame = _plain_json_frame(block, first_line, source)
                yield _any_json_frame(block, first_line, source) if frame is None else frame
            first_line += block.count(b"\n")
            if not chunk:
                return


def _plain_json_frame(block: bytes, first_line: int, source: TableSource) -> pl.DataFrame | None:
    """Polars reads plain rows quickly: no lists, no objects, no halves of characters, no blank lines."""
    n_lines = block.rstrip().count(b"\n") + 1
    if block.count(b"{") != n_lines or any(odd in block for odd in (b"[", b"\n\n", b"\r", b"\\u")):
        return None
    columns = list(source.columns)
    try:
        while True:
            # all rows are looked at, for polars would leave out a field that comes late without a word
            frame = pl.read_ndjson(
                io.BytesIO(block),
                schema_overrides=dict.fromkeys(columns, pl.String),
                infer_schema_length=None,
            )
            late = [c for c in frame.columns if c not in columns]
            if not late:
                break
            columns += late
    except pl.exceptions.PolarsError:
        return None
    if frame.height != n_lines or not frame.width:
        return None
    return _text_frame(frame, pl.Series(ROW, range(first_line, first_line + n_lines), dtype=pl.Int64))


def _any_json_frame(block: bytes, first_line: int, source: TableSource) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        if not line.strip():
            continue
        try:
            row = {key: _cell(value) for key, value in json_object(line).items()}
        except ValueError as error:
            source.problems.append((number, f"not a JSON object: {error}"))
            continue
        rows.append({**row, ROW: number})
    return _rows_frame(rows, source.columns)


def _rows_frame(rows: Sequence[dict[str, object]], columns: Sequence[str]) -> pl.DataFrame:
    """Rows of JSON with their numbers as a frame that has at least these columns."""
    names = dict.fromkeys([*columns, *(key for row in rows for key in row if key != ROW)])
    frame = pl.DataFrame(rows, schema={**dict.fromkeys(names, pl.String), ROW: pl.Int64})
    return _text_frame(frame, frame[ROW])


def _cell(value: object) -> str | None:
    """A JSON value as the text a CSV would hold; a list of words is joined by |."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):  # 1e3 as 1000, which is how polars writes it
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "|".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def open_parquet(path: Path, coded: Collection[str] = ()) -> Any:
    """A `pyarrow.parquet.ParquetFile`, to be used in a `with`; the columns in `coded` come as categories."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pa.parquet.ParquetFile(path, read_dictionary=list(coded))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a Parquet file, or is cut short: {error}") from None


def _parquet_frames(
    source: TableSource, progress: Callable[[int], None], coded: Collection[str]
) -> Iterator[pl.DataFrame]:
    import pyarrow as pa

    row = 1
    with open_parquet(source.path) as file:
        texts = (field.name for field in file.schema_arrow if field.type in (pa.string(), pa.large_string()))
        coded = [name for name in texts if name in coded]
    with open_parquet(source.path, coded) as file:
        total = max(1, file.metadata.num_rows)
        try:
            for batch in file.iter_batches(batch_size=BATCH):
                frame = pl.DataFrame(batch)
                rows = pl.int_range(row, row + frame.height, dtype=pl.Int64, eager=True).alias(ROW)
                row += frame.height
                progress(source.size * (row - 1) // total)
                yield frame.select(*filter(_is_ours, frame.columns), rows)
        except (pa.ArrowException, OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{source.path} is damaged from row {row} on: {error}") from None


def as_text(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """A typed frame as the text formats have it: trimmed text, nothing where nothing is left."""
    try:
        text = frame.select(_as_text(column) for column in frame.iter_columns() if column.name != ROW)
        return _text_frame(text, frame[ROW])
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
        return pl.Series(column.name, [_cell(v) for v in column.to_list()], dtype=pl.String)
    return column.cast(pl.String)
