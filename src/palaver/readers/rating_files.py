"""Ratings as single values: one by one out of a file, and into one, both as a stream."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

import polars as pl
from pydantic import ValidationError

from palaver.errors import DataError, UserError, check_kind
from palaver.files import Format, format_by_name, write_atomically
from palaver.readers.rating_columns import SCHEMA
from palaver.readers.rating_options import RatingOptions
from palaver.readers.rating_pairs import OUTCOMES, WHO_WON
from palaver.readers.ratings import RatingReader, check_criteria, parse_times
from palaver.schema import Rating
from palaver.schema.rating import Kind, value_text
from palaver.sheets import check_can_write, write_sheet
from palaver.tables import write_parquet
from palaver.text_columns import ROW, as_text

RatingFormat = Format | Literal["xlsx"]


def rating_format(path: Path) -> RatingFormat:
    """The format to write ratings in, by the name's ending; an error if it cannot be written here."""
    name = path.name.lower()
    if name.endswith(".xlsx"):
        check_can_write(path)
        return "xlsx"
    if name.endswith(".xlsx.gz"):
        raise UserError(f"cannot write {path.name!r}: a sheet is packed already", "leave out .gz")
    try:
        return format_by_name(path)
    except UserError as error:
        raise UserError(error.message, "end the name in .csv, .jsonl, .parquet or .xlsx") from None


def iter_ratings(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Iterator[Rating]:
    """Ratings one by one in constant memory, values as they stand in the file (numbers where they are)."""
    return ratings_of(RatingReader(path, RatingOptions(columns=columns or {})))


def ratings_of(reader: RatingReader, *, kind: Kind | None = None) -> Iterator[Rating]:
    """The same of a reader that is told more. `kind` says who rated and overrules the column of that name."""
    path = reader.table.path
    for frame in reader.long_frames():
        frame = as_text(frame, path)
        if kind is not None:
            frame = frame.with_columns(pl.lit(kind).alias("kind"))
        for row in frame.with_columns(parse_times(frame["given_at"])).iter_rows(named=True):
            number = row.pop(ROW)
            if reader.layout.kind == "pairs" and row["value"] not in OUTCOMES:
                raise DataError(f"{path}, row {number}: {WHO_WON}, found {row['value']!r}")
            try:
                yield Rating.model_validate({k: _loosen(k, v) for k, v in row.items() if v is not None})
            except ValidationError as error:
                raise DataError(f"{path}, row {number}: not a rating", problems=_mistakes(error)) from None
    check_criteria([reader])
    if reader.table.problems:
        problems = [f"row {row}: {text}" for row, text in reader.table.problems]
        raise DataError(f"{path} has rows that cannot be read", problems=problems)


def _mistakes(error: ValidationError) -> list[str]:
    """One line per field, whichever kinds of value it might have been."""
    fields = {str(mistake["loc"][0]): mistake for mistake in reversed(error.errors())}
    return [
        f"no {name} given" if mistake["type"] == "missing" else f"{name}: {mistake['msg']}"
        for name, mistake in reversed(fields.items())
    ]


def _loosen(field: str, text: Any) -> Any:
    if field in ("shown_position", "turn", "repeat") and text.endswith(".0"):
        return text.removesuffix(".0")
    if field != "value":
        return text
    try:
        if "_" not in text:  # Python would read 1_000 as a number; tables do not
            return float(text)
    except ValueError:
        pass
    return tuple(text.split("|")) if "|" in text else text


def with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame of the long format, its values as numbers where all of them are: people compute with it."""
    numbers = frame["value"].cast(pl.Float64, strict=False)
    return frame if numbers.null_count() > frame["value"].null_count() else frame.with_columns(numbers)


def write_ratings(ratings: Iterable[Rating], path: str | Path) -> int:
    """Write ratings as JSON lines, CSV, Parquet or .xlsx, by the name's ending; how many there were."""
    return write_frames(_batches(iter(ratings)), path)


def _batches(ratings: Iterator[Rating]) -> Iterator[pl.DataFrame]:
    while batch := list(islice(ratings, 50_000)):
        for rating in batch:
            check_kind(rating, Rating, "ratings")
        yield ratings_frame(batch)


def write_frames(
    frames: Iterable[pl.DataFrame],
    path: str | Path,
    boxes: Collection[str] = (),
    texts: Collection[str] = (),
) -> int:
    """Write frames of the long format, whole or not at all; how many rows there were."""
    path = Path(path)
    kind = rating_format(path)
    count = 0

    def counted() -> Iterator[pl.DataFrame]:
        nonlocal count
        for frame in frames:
            count += frame.height
            yield frame

    with write_atomically(path, "wb") as file:
        file.writelines(encode_frames(counted(), kind, boxes, texts))
        if count == 0:
            raise DataError(f"there are no ratings to write to {path}")
    return count


def encode_frames(
    frames: Iterable[pl.DataFrame],
    kind: RatingFormat,
    boxes: Collection[str] = (),
    texts: Collection[str] = (),
) -> Iterator[bytes]:
    """Frames of the long format as the bytes of one file, piece by piece.

    In JSON lines a value of the criteria `boxes` is a list, however many boxes are ticked. There and in a
    sheet one of the criteria `texts` is a text, whatever it looks like.
    """
    filled = (frame for frame in frames if not frame.is_empty())
    if kind == "jsonl":
        for frame in filled:
            yield b"".join(_json_line(row, boxes, texts) for row in frame.iter_rows(named=True))
    elif kind == "csv":
        for n, frame in enumerate(filled):
            text = frame.write_csv(include_header=n == 0, datetime_format="%Y-%m-%dT%H:%M:%S%.6f")
            yield text.encode(errors="replace")
    elif kind == "xlsx":
        yield from _by_way_of_disk(lambda file: _write_sheet(filled, texts, file))
    else:
        yield from _by_way_of_disk(lambda file: write_parquet(filled, file))


def _json_line(row: Mapping[str, Any], boxes: Collection[str], texts: Collection[str]) -> bytes:
    """Without empty fields; a value that is a number is written as one."""
    plain = {key: value for key, value in row.items() if value is not None and value != ""}
    if row["criterion"] in boxes:
        plain["value"] = plain["value"].split("|")
    elif row["criterion"] not in texts:
        value = _loosen("value", plain["value"])
        whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
        plain["value"] = int(value) if whole else value
    if "given_at" in plain:
        plain["given_at"] = plain["given_at"].isoformat(timespec="microseconds")
    return json.dumps(plain, ensure_ascii=False).encode(errors="replace") + b"\n"


def _write_sheet(frames: Iterable[pl.DataFrame], texts: Collection[str], file: IO[bytes]) -> None:
    """Values that are numbers become cells to compute with: a sheet keeps text and numbers apart."""

    def with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
        pairs = zip(frame["criterion"], frame["value"], strict=True)
        cells = [value if criterion in texts else _number_or_text(value) for criterion, value in pairs]
        return frame.with_columns(pl.Series("value", cells, dtype=pl.Object))

    write_sheet(map(with_numbers, frames), file)


def _number_or_text(text: str) -> float | str:
    """The number that a text is, if a cell gives the same text back."""
    value = _loosen("value", text)
    return value if isinstance(value, float) and math.isfinite(value) and value_text(value) == text else text


def _by_way_of_disk(write: Callable[[IO[bytes]], object]) -> Iterator[bytes]:
    """The bytes of a file that cannot be written from front to back."""
    with tempfile.TemporaryFile() as file:
        write(file)
        file.seek(0)
        while piece := file.read(1 << 20):
            yield piece


def ratings_frame(batch: Sequence[Rating]) -> pl.DataFrame:
    """Ratings as rows of the long format."""
    rows = [
        {**r.model_dump(), "value": value_text(r.value), "given_at": _naive_utc(r.given_at)} for r in batch
    ]
    unread = next((r for r in rows if not r["value"].strip()), None)
    if unread is not None:
        place = ", ".join(str(unread[name]) for name in ("item", "system", "rater", "criterion"))
        raise DataError(f"a rating without a value cannot be written: {place}")
    return pl.DataFrame(rows, schema=SCHEMA)


def _naive_utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment is not None and moment.tzinfo else moment
