"""Rows of a file as plain values, whatever the file: JSON lines, a JSON array, CSV or Parquet.

Dialogues and responses are read from these. Texts stay as they are written, unlike in `palaver.tables`,
whose cells are trimmed.
"""

from __future__ import annotations

import csv
import io
import json
import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from palaver.config import dotted
from palaver.errors import DataError, explain_mistake, nearest
from palaver.files import Encoding, TextStream, as_path, check_readable, detect_format
from palaver.readers.shapes import Tally, other_file

if TYPE_CHECKING:
    from palaver.csv_tables import Header

Row = tuple[int, Any]
"""Where it stands, as a person counts, and what it holds: an object, or a list where JSON has one."""

Word = Literal["line", "row", "entry"]

LISTED = 10
"""Mistakes that an error lists; the others are counted."""
RECODED = "lines that were not UTF-8, read as Windows-1252"
_TOO_MANY = 1000
"""So many mistakes and nothing else: the file is something else, and is not read to its end."""
_CHUNK = 1 << 20
_BATCH = 1000


class Problems:
    """The mistakes of a file: the first ten with their rows, and how many there are."""

    def __init__(self) -> None:
        self.first: list[tuple[int, str]] = []
        self.count = 0

    def add(self, row: int, text: str) -> None:
        self.count += 1
        if len(self.first) < LISTED:
            self.first.append((row, text))

    def __len__(self) -> int:
        return self.count

    def error(self, path: Path, noun: str, word: Word, hint: str = "") -> DataError:
        """One error for all of them, in the order of the file."""
        listed = [f"{word} {row}: {text}" for row, text in sorted(self.first, key=lambda one: one[0])]
        if self.count > len(listed):
            listed.append(f"… and {self.count - len(listed):,} more")
        if len({row for row, _ in self.first}) == 1 and self.count <= LISTED:
            return DataError(f"{path}, {word} {self.first[0][0]}: this is not a {noun}", hint, listed)
        return DataError(f"{path}: {self.count:,} mistakes, so it cannot be read", hint, listed)


class RowFile:
    """A file of rows. `problems` and `encoding` fill up while `rows` is consumed."""

    def __init__(self, path: str | Path, columns: Mapping[str, str] | None = None) -> None:
        self.path = as_path(path)
        self.columns = dict(columns or {})
        self.problems = Problems()
        self.encoding = Encoding()
        self.notes: tuple[str, ...] = ()
        """What was left around the heading of a table."""
        check_readable(self.path)
        self.format = detect_format(self.path)
        self._layout: Literal["lines", "array", "object"] = "lines"
        if self.format == "csv" and _begins_like_json(self.path):
            self.format = "jsonl"
        if self.format == "jsonl":
            self._layout = _json_layout(self.path)
        self.word: Word = "row"
        if self.format == "jsonl":
            self.word = "line" if self._layout == "lines" else "entry"

    @property
    def is_object(self) -> bool:
        """Whether the file is one JSON object over many lines."""
        return self._layout == "object"

    def rows(self) -> Iterator[Row]:
        """Each row with its place; `columns` (field -> name in the file) are renamed to their fields."""
        self.problems = Problems()
        if self.format == "parquet":
            rows = _parquet_rows(self.path)
        elif self.format == "csv":
            rows = self._text_rows()
        else:
            rows = self._json_rows()
        if not self.columns:
            return rows
        return self._renamed(rows)

    def _renamed(self, rows: Iterator[Row]) -> Iterator[Row]:
        missing = {name: field for field, name in self.columns.items()}
        names: dict[str, None] = {}
        for number, row in rows:
            if isinstance(row, dict):
                names.update(dict.fromkeys(row))
                for field, name in self.columns.items():
                    if name in row:
                        missing.pop(name, None)
                        row[field] = row.pop(name)
            yield number, row
        if missing:
            listed = [f"{field}: there is no column {name!r}" for name, field in missing.items()]
            close = nearest(next(iter(missing)), list(names))
            raise DataError(
                f"{self.path}: columns are missing{close}", f"found {', '.join(names) or 'none'}", listed
            )

    def _text_rows(self) -> Iterator[Row]:
        from palaver.csv_tables import read_header  # brings polars, which JSON lines do without

        header = read_header(self.path)
        self.notes = header.notes
        with TextStream(self.path) as stream:
            self.encoding = stream.encoding
            yield from csv_rows(stream, self.path, header)

    def _json_rows(self) -> Iterator[Row]:
        with TextStream(self.path) as stream:
            self.encoding = stream.encoding
            if self._layout == "object":
                yield 1, json.loads(stream.read())
            elif self._layout == "array":
                yield from enumerate(_array_values(stream, self.path), start=1)
            else:
                yield from self._lines(stream)

    def _lines(self, stream: TextStream) -> Iterator[Row]:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                if b"\\u" in line:  # half of a surrogate pair is no text
                    json.dumps(row, ensure_ascii=False).encode()
            except RecursionError:
                self.problems.add(number, "not JSON: brackets within brackets, too deep to follow")
            except ValueError as error:
                self.problems.add(number, f"not JSON: {error}")
            else:
                yield number, row


class FirstRows:
    """The row in which each key came first. A dict would take 100 bytes a key; this takes 16 to 32."""

    def __init__(self) -> None:
        self._make(1 << 12)

    def _make(self, n_places: int) -> None:
        """Empty places, a power of two of them; a key stands at the first free one from where it belongs."""
        self._keys = array("q", bytes(8 * n_places))  # 0: free
        self._rows = array("I", bytes(array("I").itemsize * n_places))
        self._last = n_places - 1
        self._n_free = n_places * 3 // 4

    def of(self, key: int, row: int) -> int:
        """The row of an equal key before, or this one; keys are hashes of 64 bits."""
        key = key or 1
        keys, last = self._keys, self._last
        place = key & last
        while keys[place] != key:
            if not keys[place]:
                keys[place] = key
                self._rows[place] = row
                self._n_free -= 1
                if not self._n_free:
                    self._grow()
                return row
            place = (place + 1) & last
        return self._rows[place]

    def _grow(self) -> None:
        keys, rows = self._keys, self._rows
        self._make(2 * len(keys))
        for key, row in zip(keys, rows, strict=True):
            if key:
                self.of(key, row)


class RowReader:
    """What the readers of dialogues and of responses share; the counts are about the last time of reading."""

    noun = ""
    expected = ""
    """The hint of every error about the file."""

    def __init__(self, path: str | Path, columns: Mapping[str, str] | None = None) -> None:
        self.file = RowFile(path, columns)
        self.path = self.file.path
        self._start()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def _start(self) -> None:
        self._tally = Tally()
        self._bad_row: Any = None
        """The first row with a mistake, for the error."""

    @property
    def problems(self) -> Problems:
        """Rows that are wrong, so far."""
        return self.file.problems

    def error(self) -> DataError:
        """One error that says what is wrong, where, and what was expected."""
        hint = self.expected
        if self._bad_row is not None:
            row = json.dumps(self._bad_row, ensure_ascii=False, default=str)
            hint += f"\nfound {row if len(row) <= 120 else f'{row[:119]}…'}"
        if isinstance(self._bad_row, dict):
            looks = other_file(self._bad_row)
            hint += f"\n{looks}" if looks and self.noun not in looks else ""
        return self.problems.error(self.path, self.noun, self.file.word, hint)

    @property
    def tally(self) -> Tally:
        """What a user should know about the file, and how often it is so."""
        tally = Tally(self._tally)
        if self.file.encoding.recoded_lines:
            tally[RECODED] = self.file.encoding.recoded_lines
        return tally

    @property
    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        return (*self.file.notes, *(f"{what}: {count:,}" for what, count in self.tally.items() if count))

    def _mistake(self, number: int, text: str, row: Any) -> None:
        self.problems.add(number, text)
        if self._bad_row is None:
            self._bad_row = row

    def _mistakes(
        self, error: ValidationError, row: Any, place_of: Callable[[tuple[int | str, ...]], int]
    ) -> None:
        """Everything that the check of the noun found wrong in a row."""
        for mistake in error.errors():
            what = dotted(mistake["loc"]) or self.noun
            self._mistake(place_of(mistake["loc"]), f"{what}: {explain_mistake(mistake)}", row)

    def _is_hopeless(self, n_good: int) -> bool:
        return not n_good and len(self.problems) >= _TOO_MANY


def file_stem(path: Path) -> str:
    """`chats` of `chats.jsonl.gz`: names what has no name of its own."""
    return path.name.partition(".")[0]


def _begins_like_json(path: Path) -> bool:
    """For names that say nothing, or `.txt`: CSV by its name stays CSV."""
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        return False
    with TextStream(path) as stream:
        return stream.read(4096).lstrip().startswith((b"{", b"["))


def _json_layout(path: Path) -> Literal["lines", "array", "object"]:
    """One value a line, one array, or one object over many lines."""
    with TextStream(path) as stream:
        first = next((line.strip() for line in stream if line.strip()), b"")
        more = any(line.strip() for line in stream)
    is_value = _is_json(first)
    if first.startswith(b"[") and not (is_value and more):
        return "array"
    if first.startswith(b"{") and more and not is_value:
        with TextStream(path) as stream:
            return "object" if _is_json(stream.read()) else "lines"
    return "lines"


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _array_values(stream: TextStream, path: Path) -> Iterator[Any]:
    """The values of one JSON array, one by one; only what belongs to the next value is held."""
    decoder = json.JSONDecoder()
    file = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    number, size = 1, _CHUNK
    text = file.read(size).lstrip()[1:]
    try:
        while True:
            text = text.lstrip(" \t\r\n,")
            if text.startswith("]"):
                return
            try:
                value, end = decoder.raw_decode(text)
                enough = end < len(text)
            except ValueError as error:
                enough, reason = False, str(error)
            else:
                reason = "the array is never closed"
            if not enough:
                more = file.read(size)
                if not more:
                    raise DataError(f"{path}, entry {number}: not JSON: {reason}", "is the file whole?")
                size *= 2  # so that a long value is not begun again and again
                text += more
                continue
            yield value
            text, number, size = text[end:], number + 1, _CHUNK
    except RecursionError:
        raise DataError(f"{path}, entry {number}: brackets within brackets, too deep to follow") from None
    finally:
        file.detach()


def csv_rows(stream: TextStream, path: Path, header: Header) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows by column name, numbered as a spreadsheet does; blank ones are passed over."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    number = 0
    try:
        for number, cells in enumerate(csv.reader(text, delimiter=header.delimiter, strict=True), start=1):
            if number <= header.row or not cells:
                continue
            if len(cells) != len(header.names):
                raise DataError(
                    f"{path}, row {number}: expected {len(header.names)} fields, found {len(cells)}"
                )
            yield number, {name: cell for name, cell in zip(header.names, cells, strict=True) if name}
    except csv.Error as error:
        raise DataError(f"{path}, row {number + 1}: not a CSV row: {error}") from None
    finally:
        text.detach()


def _parquet_rows(path: Path) -> Iterator[Row]:
    from palaver.tables import parquet_batches, parquet_schema

    parquet_schema(path)  # says what is wrong with a file that is no Parquet at all
    rows = (row for frame in parquet_batches(path, _BATCH) for row in frame.iter_rows(named=True))
    for number, row in enumerate(rows, start=1):
        yield number, _without_nan(row)


def _without_nan(value: Any) -> Any:
    """NaN is how some tools write a number that is not there."""
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
