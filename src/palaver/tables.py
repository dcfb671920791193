"""Tables read as a stream of frames: JSON, CSV, Parquet, a sheet of a spreadsheet or a frame in memory.

Every frame has all its columns (as text, or with the types they have) plus `row`, the place in the file that
a person would look at: the row of a CSV or a sheet as a spreadsheet numbers it (header and blank rows count),
the line of a JSON-lines file, the entry of a JSON array, the row of a Parquet table. Columns without a name
are left out: nothing could ask for them.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

import polars as pl

from palaver.csv_tables import csv_frames, read_header
from palaver.errors import DataError, require
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
from palaver.text_columns import (
    ROW,
    above_heading,
    as_text,
    cell_text,
    check_names,
    heading_of,
    is_ours,
    text_frame,
)

BLOCK = 1 << 23
BATCH = 1 << 18
"""Rows of a frame."""
_LOOK = 20
"""Rows of a sheet that are looked at to tell the heading from titles above it."""


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
    if type(frame).__module__.partition(".")[0] == "pandas":
        require("pyarrow", "pandas")  # polars takes frames of pandas through Arrow
    frame = pl.DataFrame(frame)
    columns = tuple(filter(is_ours, frame.columns))
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
        columns = list(parquet_schema(path))
    elif kind == "jsonl":
        if _is_array(path):
            return _open_array(path)
        with TextStream(path) as stream:
            columns = _first_keys(stream, path)
    else:
        header = read_header(path)
        columns = header.names
        source.decimal_commas = header.delimiter != ","
        source.notes += header.notes
    source.columns = tuple(filter(is_ours, columns))
    return source


def _open_sheet(path: Path, kind: str, name: str | None) -> WholeSource:
    sheet = read_sheet(path, kind, name)
    blank = pl.all_horizontal(pl.all().is_null())
    cells = text_frame(sheet.cells, pl.int_range(1, sheet.cells.height + 1, eager=True).alias(ROW))
    filled = cells.filter(~cells.drop(ROW).select(blank).to_series()) if cells.width > 1 else cells.clear()
    if filled.is_empty():
        raise DataError(f"{path}: the sheet {sheet.name!r} is empty", "expected a table with a header")
    place = heading_of(filled.drop(ROW).head(_LOOK).rows())
    above, filled = filled.drop(ROW).head(place).rows(), filled[place:]
    header = filled.drop(ROW).row(0)
    names = [name or "" for name in header]
    check_names(names, path)
    columns = [column for column, name in zip(filled.columns, names, strict=False) if is_ours(name)]
    frame = filled[1:].select(*columns, ROW)
    frame.columns = [*filter(is_ours, names), ROW]
    source = WholeSource(path, "csv", tuple(frame.columns[:-1]), path.stat().st_size, frame=frame)
    source.decimal_commas = True
    if above:
        source.notes.append(above_heading(above))
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
    source = open_rows(path, list(enumerate(entries, start=1)))
    source.encoding = encoding
    return source


def open_rows(path: Path, entries: Iterable[tuple[int, object]]) -> WholeSource:
    """Entries of JSON with their places as a table; `path` is where they come from."""
    rows: list[dict[str, object]] = []
    broken: list[tuple[int, str]] = []
    for number, entry in entries:
        try:
            row = json_object(json.dumps(entry).encode())
        except ValueError as error:
            broken.append((number, str(error)))
        else:
            rows.append({**{key: cell_text(value) for key, value in row.items()}, ROW: number})
    frame = _rows_frame(rows, ())
    return WholeSource(
        path, "jsonl", tuple(frame.columns[:-1]), path.stat().st_size, frame=frame, broken=broken
    )


def _csv_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    header = read_header(source.path)
    if header.alone:
        return
    with TextStream(source.path) as stream:
        source.encoding = stream.encoding
        for frame in csv_frames(stream, header, source.path, source.problems, BLOCK):
            progress(stream.consumed())
            yield frame


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
    return text_frame(frame, pl.Series(ROW, range(first_line, first_line + n_lines), dtype=pl.Int64))


def _any_json_frame(block: bytes, first_line: int, source: TableSource) -> pl.DataFrame:
    rows: list[dict[str, object]] = []
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        if not line.strip():
            continue
        try:
            row = {key: cell_text(value) for key, value in json_object(line).items()}
        except ValueError as error:
            source.problems.append((number, f"not a JSON object: {error}"))
            continue
        rows.append({**row, ROW: number})
    return _rows_frame(rows, source.columns)


def _rows_frame(rows: Sequence[dict[str, object]], columns: Sequence[str]) -> pl.DataFrame:
    """Rows of JSON with their numbers as a frame that has at least these columns."""
    names = dict.fromkeys([*columns, *(key for row in rows for key in row if key != ROW)])
    frame = pl.DataFrame(rows, schema={**dict.fromkeys(names, pl.String), ROW: pl.Int64})
    return text_frame(frame, frame[ROW])


def parquet_schema(path: Path) -> dict[str, Any]:
    """The names and types of the columns of a Parquet file."""
    try:
        return dict(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is not a Parquet file, or is cut short: {error}") from None


def parquet_batches(path: Path, n_rows: int, coded: Collection[str] = ()) -> Iterator[pl.DataFrame]:
    """A Parquet file in frames of about `n_rows` rows; the columns in `coded` come as categories."""
    rows, total = 0, _count_rows(path)
    try:
        lazy = pl.scan_parquet(path, glob=False).with_columns(
            pl.col(name).cast(pl.Categorical) for name in coded
        )
        for frame in lazy.collect_batches(chunk_size=n_rows):
            rows += frame.height
            yield frame
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is damaged after row {rows}: {error}") from None
    if rows != total:  # a stream of frames that ends early must not pass for the whole file
        raise DataError(f"{path} is damaged after row {rows}: expected {total} rows")


def _count_rows(path: Path) -> int:
    """As the file's footer says."""
    return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())


def write_parquet(frames: Iterable[pl.DataFrame], file: IO[bytes]) -> int:
    """Write frames of one schema as a Parquet file; how many rows there were.

    Polars writes a file in one go. What does not fit into one piece waits on disk, so that memory holds a
    piece at a time.
    """
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        spilled: list[Path] = []
        held: list[pl.DataFrame] = []
        for frame in frames:
            held.append(frame)
            count += frame.height
            if sum(part.height for part in held) >= BATCH:
                spilled.append(Path(folder, f"{len(spilled)}.arrow"))
                pl.concat(held).write_ipc(spilled[-1])
                held = []
        parts = [pl.scan_ipc(path) for path in spilled]
        parts += [part.lazy() for part in held]
        if parts:
            pl.concat(parts).sink_parquet(file, compression="zstd")
    return count


def _parquet_frames(
    source: TableSource, progress: Callable[[int], None], coded: Collection[str]
) -> Iterator[pl.DataFrame]:
    schema = parquet_schema(source.path)
    coded = [name for name, kind in schema.items() if kind == pl.String and name in coded]
    total = max(1, _count_rows(source.path))
    row = 1
    for frame in parquet_batches(source.path, BATCH, coded):
        rows = pl.int_range(row, row + frame.height, dtype=pl.Int64, eager=True).alias(ROW)
        row += frame.height
        progress(source.size * (row - 1) // total)
        yield frame.select(*filter(is_ours, frame.columns), rows)
