"""CSV tables as frames of text: polars reads a plain block, Python's csv one with an odd row in it."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import polars as pl

from palaver.errors import DataError
from palaver.files import TextStream
from palaver.text_columns import ROW, above_heading, check_names, heading_of, text_frame

# A cell may well be longer than 131,072 characters. Set here, so that it always holds.
csv.field_size_limit(1 << 30)


_LOOK = 60
"""Lines below the first one that are looked at, to tell the heading from titles above it."""
_SEPARATOR = re.compile(r"\"?sep=([,;\t|])\"?\s*")
"""What Excel writes and reads in a line above the heading."""
_QUALTRICS = '{"ImportId"'
"""How the cells of Qualtrics' third row begin; the second one has the texts of the questions."""


class Header(NamedTuple):
    """The row of a CSV that names its columns: the first that is not blank, below titles."""

    names: list[str]
    delimiter: str
    row: int
    """The last row above the data: 1 unless blank lines or titles stand there, or Qualtrics' further rows."""
    alone: bool
    """Whether nothing at all comes after it."""
    notes: tuple[str, ...] = ()
    """What was left around it."""


def read_header(path: Path) -> Header:
    """Column names and delimiter. A quoted name may hold a line break, hence the csv module."""
    text = io.TextIOWrapper(TextStream(path), encoding="utf-8", newline="")
    try:
        row, first = 1, text.readline()
        separator = _SEPARATOR.fullmatch(first)
        while first and (not first.strip() or (separator is not None and row == 1)):
            row, first = row + 1, text.readline()
        if not first:
            raise DataError(f"{path} is empty", "expected a table with a header")
        ahead = list(itertools.islice(text, _LOOK))
        delimiter = separator[1] if separator else _delimiter(first, ahead)
        left = itertools.chain(ahead, text)
        names = next(csv.reader(itertools.chain([first], left), delimiter=delimiter, strict=True))
        below = list(itertools.islice(left, _LOOK))
    except csv.Error as error:
        raise DataError(f"{path}: the header is not a CSV row: {error}") from None
    finally:
        text.close()
    rows = [names, *csv.reader(below, delimiter=delimiter)]
    whole = rows[:-1] if len(below) == _LOOK else rows  # the last one may go on below what is looked at
    place = heading_of(whole)
    notes = [above_heading(rows[:place])] if place else []
    names = [name.strip() for name in rows[place]]
    last = place
    if len(rows) > place + 2 and rows[place + 2] and rows[place + 2][0].startswith(_QUALTRICS):
        asked = [cell.strip() for cell in rows[place + 1]]
        if not any("[" in name for name in names) and len(asked) == len(names):
            names = [text if "[" in text else name for name, text in zip(names, asked, strict=True)]
        notes.append("left the second and the third row of Qualtrics' heading")
        last = place + 2
    check_names(names, path)
    return Header(names, delimiter, row + last, len(rows) == last + 1, tuple(notes))


def _delimiter(first: str, ahead: Sequence[str]) -> str:
    """What parts the cells of the first line, or those of a table below a title alone in its line."""
    fields = {d: len(next(csv.reader([first], delimiter=d))) for d in (",", "\t", ";")}
    if max(fields.values()) > 1:
        return max(fields, key=lambda d: fields[d])
    if len(ahead) == _LOOK:
        ahead = ahead[:-1]  # it may go on below what is looked at
    return next((d for d in fields if heading_of([[first], *csv.reader(ahead, delimiter=d)])), ",")


def csv_frames(
    stream: BinaryIO, header: Header, path: Path, problems: list[tuple[int, str]], block_size: int
) -> Iterator[pl.DataFrame]:
    """Frames of text columns with their `row`, a block of the file at a time; bad rows go to `problems`."""
    # No other name begins with a space.
    names = [name or f" {i}" for i, name in enumerate(header.names)]
    unnamed = [name for name, given in zip(names, header.names, strict=True) if not given]
    row, rest = 0, b""
    ahead = stream.read(block_size)
    while True:
        chunk, ahead = ahead, stream.read(block_size)
        is_last = not ahead  # so that a last row without a line end comes with those before it
        block = rest + chunk.replace(b"\0", b"\x1a")  # ASCII's "substitute"
        if is_last and block and not block.endswith((b"\n", b"\r")):
            block += b"\n"
        if row < header.row:  # it may hold line breaks, so it is read like any other row
            records, used = _csv_records(block, header.delimiter, header.row - row, at_end=is_last)
            row += len(records)
            block = block[used:]
        quick = _quick_csv(block, names, header.delimiter) if row >= header.row else None
        rows: Sequence[int]
        if quick is not None:
            frame, used = quick
            rows = range(row + 1, row + 1 + frame.height)
            row += frame.height
        else:
            records, used = [], 0
            if row >= header.row:
                records, used = _csv_records(block, header.delimiter, at_end=is_last)
            if not is_last and not used and len(block) > block_size:
                raise DataError(
                    f"{path} has a row of more than {block_size:,} bytes",
                    "perhaps a quotation mark is never closed, or this is no CSV table",
                )
            if records and records[-1].is_open:
                raise DataError(
                    f"{path}, row {row + len(records)}: a quotation mark is never closed",
                    "all that follows it was read as one cell; close it or take it out",
                )
            numbered = list(enumerate(records, start=row + 1))
            row += len(records)
            whole = [one for one in numbered if len(one[1].cells) == len(names)]
            problems += _ragged(numbered, len(names))
            rows = [number for number, _ in whole]
            columns = zip(*(record.cells for _, record in whole), strict=True)
            frame = pl.DataFrame(list(columns) or [[] for _ in names], dict.fromkeys(names, pl.String))
        rest = block[used:]
        if frame.height:
            text = text_frame(frame.drop(unnamed), pl.Series(ROW, rows, dtype=pl.Int64))
            yield text.filter(~pl.all_horizontal(pl.exclude(ROW).is_null()))
        if is_last and not (rest and chunk):  # what the quick way left is read once more
            return


def _quick_csv(block: bytes, names: Sequence[str], delimiter: str) -> tuple[pl.DataFrame, int] | None:
    """What polars reads of a block, and the bytes it took; None where a row is odd in any way.

    Polars fills short rows up without a word, so the marks between cells are counted before.
    """
    if block.count(b"\r") != block.count(b"\r\n"):
        return None
    if b'"' in block:
        cut, n_rows, n_marks = _count_outside_quotes(block, delimiter)
    else:
        cut = block.rfind(b"\n") + 1
        n_rows, n_marks = block.count(b"\n", 0, cut), block.count(delimiter.encode(), 0, cut)
    if not n_rows or n_marks != n_rows * (len(names) - 1):
        return None
    schema = dict.fromkeys(names, pl.String)
    try:
        frame = pl.read_csv(block[:cut], has_header=False, separator=delimiter, schema=schema)
    except pl.exceptions.PolarsError:  # more cells in a row than there are columns
        return None
    return (frame, cut) if frame.height == n_rows else None


def _count_outside_quotes(block: bytes, delimiter: str) -> tuple[int, int, int]:
    """Where the last whole row of a block ends, the rows up to there and the marks between their cells.

    All are 0 where a quotation mark stands inside a cell that is not quoted: polars would part rows there
    which Python's csv does not.
    """
    import numpy as np

    content = np.frombuffer(block, dtype=np.uint8)
    ends, mark, quote = ord("\n"), ord(delimiter), ord('"')
    quotes = np.flatnonzero(content == quote)
    breaks = np.flatnonzero(content == ends)
    breaks = breaks[np.searchsorted(quotes, breaks) % 2 == 0]
    if not breaks.size:
        return 0, 0, 0
    cut = int(breaks[-1]) + 1
    quotes = quotes[quotes < cut]
    before = content[quotes[::2] - 1]  # of the first byte: the last one, which is a line break
    before[quotes[::2] == 0] = ends
    after = content[quotes[1::2] + 1]
    if (
        not np.isin(before, (mark, ends, quote)).all()
        or not np.isin(after, (mark, ends, ord("\r"), quote)).all()
    ):
        return 0, 0, 0
    marks = np.flatnonzero(content[:cut] == mark)
    n_marks = np.count_nonzero(np.searchsorted(quotes, marks) % 2 == 0)
    return cut, breaks.size, int(n_marks)


class _Record(NamedTuple):
    cells: list[str]
    text: str
    is_open: bool
    """Whether the file ends inside its quotation marks."""


def _csv_records(
    block: bytes, delimiter: str, most: int | None = None, *, at_end: bool
) -> tuple[list[_Record], int]:
    """The rows of a block or the first of them, blank ones too, by Python's csv, and the bytes they take."""
    cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
    if not at_end and block.endswith(b"\r"):  # perhaps half of a line break
        cut = max(block.rfind(b"\n", 0, cut - 1), block.rfind(b"\r", 0, cut - 1)) + 1
    taken: list[str] = []
    is_over = False

    def lines() -> Iterator[str]:
        nonlocal is_over
        for line in io.StringIO(block[:cut].decode(), newline=""):
            taken.append(line)
            yield line
        is_over = True

    records: list[_Record] = []
    used = 0
    for cells in itertools.islice(csv.reader(lines(), delimiter=delimiter), most):
        if is_over and not at_end:  # it goes on in the next block
            break
        text = "".join(taken)
        records.append(_Record(cells, text, is_over))
        used += len(text.encode())
        taken.clear()
    return records, used


def _ragged(rows: Sequence[tuple[int, _Record]], n_columns: int) -> Iterator[tuple[int, str]]:
    """What is wrong with rows of another length. Blank ones are left out without a word."""
    for number, record in rows:
        text = record.text.rstrip("\r\n")
        if len(record.cells) != n_columns and text.strip():
            shown = text if len(text) <= 80 else text[:77] + "..."
            yield number, f"expected {n_columns} fields, found {len(record.cells)}: {shown!r}"
