"""Tables read as a stream of text frames, whatever the file: JSON lines, CSV or Parquet.

Every frame has all its columns as text plus `row`, the place in the file a person would look at: the
row of a CSV counting its header as 1, the line of a JSON-lines file, the row of a Parquet table.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from palaver.errors import DataError
from palaver.files import Encoding, Format, TextStream, check_readable, detect_format

BLOCK = 1 << 23
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

    def frames(self, progress: Callable[[int], None] | None = None) -> Iterator[pl.DataFrame]:
        """Frames of text columns in file order; `progress` is told the bytes consumed so far."""
        reader = {"csv": _csv_frames, "jsonl": _jsonl_frames, "parquet": _parquet_frames}[self.format]
        self.problems.clear()
        n_rows = 0
        for frame in reader(self, progress or (lambda done: None)):
            n_rows += frame.height
            yield frame
        if n_rows == 0 and not self.problems:
            raise DataError(f"{self.path} has a header but no rows")


def open_table(path: str | Path) -> TableSource:
    """Look at the beginning of a file and say what it is."""
    path = Path(path)
    check_readable(path)
    kind = detect_format(path)
    if kind == "parquet":
        columns = tuple(_parquet(path).schema_arrow.names)
    else:
        with TextStream(path) as stream:
            columns = tuple(_header(stream, path)[0]) if kind == "csv" else _first_keys(stream, path)
    if ROW in columns:
        columns = tuple(c for c in columns if c != ROW)  # our own bookkeeping wins over a column of that name
    return TableSource(path, kind, columns, path.stat().st_size)


def _header(stream: BinaryIO, path: Path) -> tuple[list[str], str]:
    """Column names and delimiter. A quoted name may hold a line break, hence the csv module."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    first = text.readline()
    counts = {delimiter: first.count(delimiter) for delimiter in (",", "\t", ";")}
    delimiter = max(counts, key=lambda d: counts[d])
    try:
        names = next(csv.reader(_chain(first, text), delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        raise DataError(f"{path}: the header is not a CSV row: {error}") from None
    finally:
        text.detach()
    names = [name.strip() for name in names]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: a column name stands twice in the header: {', '.join(map(repr, repeated))}")
    return names, delimiter


def _chain(first: str, rest: io.TextIOWrapper) -> Iterator[str]:
    yield first
    yield from rest


def _csv_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    import pyarrow as pa
    import pyarrow.csv

    with TextStream(source.path) as peek:
        names, delimiter = _header(peek, source.path)
    ragged: list[int] = []

    def note(row: Any) -> str:
        ragged.append(row.number)
        text = row.text if len(row.text) <= 80 else row.text[:77] + "..."
        source.problems.append(
            (row.number, f"expected {row.expected_columns} fields, found {row.actual_columns}: {text!r}")
        )
        return "skip"

    with TextStream(source.path) as stream:
        source.encoding = stream.encoding
        try:
            reader = pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(
                    use_threads=False, block_size=BLOCK, column_names=names, skip_rows_after_names=1
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
                ),
            )
            row = 1
            for batch in reader:
                progress(stream.consumed())
                frame = _text_frame(pl.DataFrame(batch))
                if not frame.height:
                    continue
                rows, row = _number_rows(row + 1, frame.height, ragged)
                yield frame.with_columns(pl.Series(ROW, rows, dtype=pl.Int64))
        except pa.ArrowInvalid as error:
            raise DataError(f"{source.path} is not a CSV table: {error}") from None


def _number_rows(start: int, count: int, skipped: list[int]) -> tuple[list[int] | range, int]:
    """The numbers of `count` good rows from `start` on, stepping over the rows that were skipped."""
    gaps = {n for n in skipped if n >= start}
    if not gaps:
        return range(start, start + count), start + count - 1
    rows: list[int] = []
    n = start
    while len(rows) < count:
        if n not in gaps:
            rows.append(n)
        n += 1
    return rows, n - 1


def _text_frame(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select([c for c in frame.columns if c != ROW]).with_columns(
        pl.col(pl.String).str.strip_chars().replace("", None)
    )


def _first_keys(stream: BinaryIO, path: Path) -> tuple[str, ...]:
    """Keys of the first hundred rows, so that an optional field missing from the first is still seen."""
    keys: dict[str, None] = {}
    for number, line in zip(range(1, 101), stream, strict=False):
        if line.strip():
            try:
                keys.update(dict.fromkeys(_json_row(line)))
            except ValueError as error:
                if not keys:
                    raise DataError(
                        f"{path}, line {number}: {error}", "expected one JSON object per line"
                    ) from None
    return tuple(keys)


def _json_row(line: bytes) -> dict[str, object]:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, found {type(row).__name__}")
    return row


def _jsonl_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    with TextStream(source.path) as stream:
        source.encoding = stream.encoding
        first_line, rest = 1, b""
        while True:
            chunk = stream.read(BLOCK)
            progress(stream.consumed())
            block = rest + chunk
            cut = block.rfind(b"\n") + 1 if chunk else len(block)
            block, rest = block[:cut], block[cut:]
            if block.strip():
                yield _json_frame(block, first_line, source)
            first_line += block.count(b"\n")
            if not chunk:
                return


def _json_frame(block: bytes, first_line: int, source: TableSource) -> pl.DataFrame:
    """Polars reads plain rows quickly; lists, blank or broken lines and odd rows go one by one."""
    if b"[" not in block and b"\n\n" not in block and b"\r" not in block:
        try:
            frame = pl.read_ndjson(
                io.BytesIO(block), schema_overrides=dict.fromkeys(source.columns, pl.String)
            )
            if frame.height == block.rstrip().count(b"\n") + 1:
                rows = pl.int_range(first_line, first_line + frame.height, dtype=pl.Int64)
                return _text_frame(frame.cast(pl.String)).with_columns(rows.alias(ROW))
        except pl.exceptions.PolarsError:
            pass
    rows_read: list[dict[str, object]] = []
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        if not line.strip():
            continue
        try:
            row = {key: _cell(value) for key, value in _json_row(line).items()}
        except ValueError as error:
            source.problems.append((number, f"not a JSON object: {error}"))
            continue
        rows_read.append({**row, ROW: number})
    names = dict.fromkeys([*source.columns, *(key for row in rows_read for key in row if key != ROW)])
    schema = {**dict.fromkeys(names, pl.String), ROW: pl.Int64}
    frame = pl.DataFrame(rows_read, schema=schema)
    return _text_frame(frame).with_columns(frame[ROW])


def _cell(value: object) -> str | None:
    """A JSON value as the text a CSV would hold; a list of words is joined by |."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "|".join(value)
    return json.dumps(value, ensure_ascii=False)


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        return pa.parquet.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is not a Parquet file, or is cut short: {error}") from None


def _parquet_frames(source: TableSource, progress: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    row = 1
    file = _parquet(source.path)
    total = max(1, file.metadata.num_rows)
    for batch in file.iter_batches(batch_size=1 << 17):
        frame = pl.DataFrame(batch)
        frame = frame.select(
            pl.col(name).list.join("|") if isinstance(kind, pl.List) else pl.col(name).cast(pl.String)
            for name, kind in frame.schema.items()
            if name != ROW and not isinstance(kind, pl.Struct)
        )
        rows = pl.int_range(row, row + frame.height, dtype=pl.Int64)
        row += frame.height
        progress(source.size * (row - 1) // total)
        yield _text_frame(frame).with_columns(rows.alias(ROW))
