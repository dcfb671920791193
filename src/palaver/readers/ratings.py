"""Rating files as one typed frame, read as a stream.

Text is parsed where text comes in. Columns that have a type already (Parquet, frames in memory) keep their
numbers, times and categories. Memory holds codes and numbers, never the file's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, UserError, count_of, nearest
from palaver.progress import Progress, no_progress
from palaver.readers.rating_columns import ALIASES, FIELDS, SCHEMA, Layout, find_layout
from palaver.schema.rating import KINDS, Kind
from palaver.tables import ROW, TableSource, as_text, open_table

Source = str | Path | TableSource
"""A file, or a table that is open already (`palaver.tables.open_frame` for a frame)."""

ORDER = "order"
"""Place of a judgement over all files, in the order they were named."""
FILE = "file"
"""Which of the files, by its number."""

NAMES = ("item", "system", "rater", "criterion")
"""What every rating has besides its value."""

_COMPACT = {pl.String: pl.Categorical, pl.Float64: pl.Float32}
TYPES: dict[str, Any] = {
    **{name: _COMPACT.get(kind, kind) for name, kind in SCHEMA.items() if name not in ("study", "output")},
    "value": pl.Float64,
    "text": pl.Categorical,
    "kind": pl.Enum(KINDS),
}
"""The columns of a typed frame. `value` has the numbers, `text` what is no finite number."""
_CODED = [name for name, kind in TYPES.items() if kind == pl.Categorical and name != "text"]

BAD = {FILE: pl.String, ROW: pl.Int64, "column": pl.String, "value": pl.String, "problem": pl.String}
"""The columns of a list of bad rows."""
_WHO = f"expected {', '.join(KINDS[:-1])} or {KINDS[-1]}"
_WHOLE = "expected a whole number from 0"


@dataclass
class RatingFrame:
    """The ratings of one or more files, names and kinds checked, values as they were given."""

    paths: tuple[str, ...]
    """The files as they were named."""
    frame: pl.DataFrame = field(default_factory=pl.DataFrame)
    """The columns of `TYPES`, and `order`, `file` and `row`."""
    bad: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BAD))
    """Rows left out because something in them is wrong: file, row, column, value, problem."""
    files: dict[str, str] = field(default_factory=dict)
    """Name of each file -> the hash of its content."""
    layouts: list[Layout] = field(default_factory=list)
    """One for each file."""
    n_rows: int = 0
    n_bad: int = 0
    n_empty: int = 0
    """Empty cells of wide files: nobody answered there."""
    notes: list[str] = field(default_factory=list)


def read_rating_frame(
    sources: Source | Sequence[Source],
    *,
    columns: Mapping[str, str] | None = None,
    criteria: Sequence[str] | None = None,
    kinds: Mapping[str, Kind] | None = None,
    progress: Progress = no_progress,
) -> RatingFrame:
    """Read rating files. `kinds` says who rated, file by file, and overrules the column `kind`."""
    named = [sources] if isinstance(sources, str | Path | TableSource) else list(sources)
    tables = [source if isinstance(source, TableSource) else open_table(source) for source in named]
    total = sum(table.size for table in tables)
    ratings = RatingFrame(tuple(_text(table.path) for table in tables))
    parts: list[pl.DataFrame] = []
    done = 0
    for name, table, kind in zip(_short_names(tables), tables, kinds_of(tables, kinds or {}), strict=True):

        def report(used: int, before: int = done) -> None:
            progress("reading ratings", before + used, total)

        frames = typed_ratings(table, columns, report, criteria=criteria)
        parts += _usable_parts(ratings, table, name, frames, kind)
        done += table.size
    if not parts and not ratings.n_bad:
        raise DataError(f"{', '.join(ratings.paths)}: there is no rating in it")
    ratings.frame = _one_table(parts)
    return ratings


def _usable_parts(
    ratings: RatingFrame,
    table: TableSource,
    name: str,
    frames: Iterator[tuple[Layout, pl.DataFrame]],
    kind: Kind | None,
) -> list[pl.DataFrame]:
    """What can be used of a file, frame by frame. What cannot is counted and listed in `ratings`."""
    number = pl.lit(len(ratings.layouts), dtype=pl.UInt16).alias(FILE)
    layout = Layout("long", {}, {})
    parts: list[pl.DataFrame] = []
    bad = [ratings.bad]
    n_untimed = 0
    for layout, frame in frames:
        if kind is not None:
            frame = frame.with_columns(pl.lit(kind).alias("kind"))
        if layout.kind == "long":
            ratings.n_rows += frame.height
        else:
            ratings.n_rows += frame[ROW].n_unique()
            answered = frame.filter(pl.col("value").is_not_null() | pl.col("text").is_not_null())
            ratings.n_empty += frame.height - answered.height
            frame = answered
        good, wrong = _check_fields(frame, layout, name)
        ratings.n_bad += frame.height - good.height
        bad += wrong
        if "untimed" in good.columns:
            n_untimed += int(good["untimed"].sum())
        needed = (*NAMES, "value", ROW)
        held = [c for c in good.columns if c in needed or good[c].null_count() < good.height]
        typed = good.select(pl.col(c).cast(TYPES.get(c, pl.Int64)) for c in held if c != "untimed")
        parts.append(typed.with_columns(number))
    broken = [(name, row, "", "", text) for row, text in table.problems]
    ratings.bad = pl.concat([*bad, pl.DataFrame(broken, schema=BAD, orient="row")])
    ratings.n_rows += len(broken)
    ratings.n_bad += len(broken)
    ratings.layouts.append(layout)
    ratings.files[name] = table.digest()
    ratings.notes += _notes(table, name, n_untimed)
    return parts


def _one_table(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All parts under each other. Columns that no file has are constants, which take no memory."""
    types = {**TYPES, ROW: pl.Int64, FILE: pl.UInt16}
    table = pl.concat(parts, how="diagonal") if parts else pl.DataFrame(schema=types)
    absent = [pl.lit(None, dtype=types[c]).alias(c) for c in types if c not in table.columns]
    table = table.with_columns(absent).with_columns(pl.col("kind").fill_null("human"))
    return table.select(*types).with_row_index(ORDER)


def _text(path: str | Path) -> str:
    """A name on disk need not be text; what is written about it must be."""
    return str(path).encode(errors="replace").decode()


def _short_names(tables: Sequence[TableSource]) -> list[str]:
    """The files' names, with their folders where two files have one name."""
    short = [table.path.name for table in tables]
    return [_text(t.path if short.count(t.path.name) > 1 else t.path.name) for t in tables]


def kinds_of(tables: Sequence[TableSource], kinds: Mapping[str, Kind]) -> list[Kind | None]:
    """The kind of each table where `kinds` says one, by the file's path or its last part."""
    names = [name for table in tables for name in (_text(table.path), _text(table.path.name))]
    for name, kind in kinds.items():
        if kind not in KINDS:
            raise UserError(f"{name}: there is no kind {kind!r}{nearest(kind, KINDS)}", _WHO)
        if name not in names:
            raise UserError(f"a kind is given for {name!r}, but no such file is read{nearest(name, names)}")
    return [kinds.get(_text(t.path), kinds.get(_text(t.path.name))) for t in tables]


def typed_ratings(
    source: TableSource,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    criteria: Sequence[str] | None = None,
) -> Iterator[tuple[Layout, pl.DataFrame]]:
    """The file's rows in the long format with the types of `TYPES` (kinds still as text), frame by frame.

    Of a wide file only the columns named by `criteria` are read, where there are any.
    """
    for layout, frame in long_frames(source, columns, progress, criteria=criteria):
        if not frame.is_empty():  # nothing but blank rows
            yield layout, frame.select(*_typed_columns(frame), ROW)


def long_frames(
    source: TableSource,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    criteria: Sequence[str] | None = None,
) -> Iterator[tuple[Layout, pl.DataFrame]]:
    """The file's rows in the long format, with every field as the file has it."""
    layout: Layout | None = None
    known = list(source.columns)
    aliases = [alias for name in _CODED for alias in ALIASES.get(name, ())]
    coded = [*_CODED, *aliases, *(columns or {}).values()]
    try:
        for frame in source.typed_frames(progress, coded=coded):
            # A field that the rows of a JSON file had not yet:
            late = [c for c in frame.columns if c not in known and c != ROW]
            known += late
            if layout is None or late:
                sample = as_text(frame.head(1000), source.path)
                layout = find_layout(known, source.path, renamed=columns, sample=sample, criteria=criteria)
            if layout.kind != "long":  # its columns are laid under each other, whatever their types
                frame = as_text(frame, source.path)
            long = layout.to_long(_with_all(known, frame))
            yield layout, _with_all(FIELDS, long).select(*FIELDS, ROW)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{source.path} cannot be read as a table: {error}") from None


def _with_all(columns: Sequence[str], frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with empty columns for those that it does not have."""
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in columns if c not in frame)


def _typed_columns(frame: pl.DataFrame) -> Iterator[pl.Series | pl.Expr]:
    """Each field as its type. What cannot be read as a number or a time is nothing; the value is kept."""
    yield from _value_and_text(frame["value"])
    for name, kind in TYPES.items():
        if name in ("value", "text"):
            continue
        column = frame[name]
        if column.null_count() == len(column):
            yield pl.lit(None, dtype=pl.String if name == "kind" else kind).alias(name)
        elif name in _CODED:
            yield _coded(column)
        elif name == "kind":
            yield _clean(column)
        elif name == "given_at":
            yield from _moments(column)
        elif name in ("turn", "repeat"):
            yield _whole(column)
        else:
            yield _number(column).cast(kind, strict=False)


def _clean(column: pl.Series) -> pl.Series:
    """As trimmed text, nothing where nothing is left."""
    if column.dtype == pl.String:
        return column.str.strip_chars().replace("", None)
    return as_text(column.to_frame().with_row_index(ROW), Path(column.name))[column.name]


def _coded(column: pl.Series) -> pl.Series:
    """As categories, by way of the categories that are there, so that no long column of text is handled."""
    if column.dtype not in (pl.Categorical, pl.Enum):
        return _clean(column).cast(pl.Categorical)
    names = column.unique().cast(pl.String)
    if names.eq_missing(_clean(names)).all():
        return column.cast(pl.Categorical)
    return _clean(column.cast(pl.String)).cast(pl.Categorical)


def _number(column: pl.Series) -> pl.Series:
    """As numbers; a duration is so many seconds. A short float is read as the digits it is shown with."""
    if column.dtype.is_numeric() and column.dtype != pl.Float32:
        return column.cast(pl.Float64)
    return _clean(column).cast(pl.Float64, strict=False)


def _whole(column: pl.Series) -> pl.Series:
    """As whole numbers from 0; -1 for what is none, so that a wrong one can be told from none."""
    number = _number(column)
    wrong = ~((number >= 0) & (number == number.floor())).fill_null(False)
    given = column.is_not_null() if column.dtype.is_numeric() else _clean(column).is_not_null()
    whole = pl.when(given & wrong).then(-1.0).otherwise(number).alias(column.name)
    return pl.select(whole).to_series().cast(pl.Int32, strict=False)


def _value_and_text(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    number = _number(column)
    if column.dtype.is_numeric() and number.is_finite().all():
        return number, pl.Series("text", [None], dtype=pl.Categorical).new_from_index(0, len(number))
    worded = number.is_null() | ~number.is_finite()
    text = pl.select(pl.when(worded.fill_null(True)).then(_clean(column)).alias("text")).to_series()
    return number, text.cast(pl.Categorical)


_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%m/%d/%YT%H:%M:%S", "%Y-%m-%d")


def parsed_time() -> pl.Expr:
    """`given_at` as a moment in UTC (a time without zone is taken as such); unreadable times are null."""
    text = pl.col("given_at").str.replace("Z$", "+00:00").str.replace(" ", "T", literal=True)
    zoned = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
    plain = (text.str.to_datetime(f, time_unit="us", strict=False) for f in _TIMES)
    return pl.coalesce(zoned.dt.convert_time_zone("UTC").dt.replace_time_zone(None), *plain)


def _moments(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """`given_at`, and `untimed`: whether a time is given that cannot be read."""
    if isinstance(column.dtype, pl.Datetime):
        zone = column.dtype.time_zone
        moment = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zone else column
        moment = moment.cast(pl.Datetime("us"))
    else:
        column = _clean(column)
        moment = column.to_frame().select(parsed_time()).to_series()
    return moment.alias("given_at"), (moment.is_null() & column.is_not_null()).alias("untimed")


def _check_fields(frame: pl.DataFrame, layout: Layout, file: str) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Split off rows without a name or value they need, or of a kind that is none.

    A screen without a rater is said once.
    """
    nothing = pl.lit("")
    checks = [(name, pl.col(name).is_null(), nothing, f"no {name} given") for name in NAMES]
    unanswered = pl.col("value").is_null() & pl.col("text").is_null()
    checks.append(("value", unanswered, nothing, "no value given"))
    checks.append(("kind", ~pl.col("kind").is_in(KINDS), pl.col("kind"), f"kind: {_WHO}"))
    for name in ("turn", "repeat"):
        checks.append((name, pl.col(name) < 0, nothing, f"{name}: {_WHOLE}"))
    failed = frame.select(fails.fill_null(False).alias(name) for name, fails, _, _ in checks)
    if not any(column.any() for column in failed.iter_columns()):
        return frame, []
    wrong = [
        bad_rows(frame.filter(failed[name]), layout, file, name, value, problem)
        for name, _, value, problem in checks
    ]
    good = frame.filter(~failed.select(pl.any_horizontal(pl.all())).to_series())
    return good, [pl.concat(wrong).unique(maintain_order=True)]


def bad_rows(
    rows: pl.DataFrame, layout: Layout, file: str, field: str, value: pl.Expr, problem: str
) -> pl.DataFrame:
    """The rows as bad rows, with the name that the field's column has in the file."""
    return rows.select(
        pl.lit(file).alias(FILE),
        pl.col(ROW),
        layout.column_of(field).alias("column"),
        value.alias("value"),
        pl.lit(problem).alias("problem"),
    ).cast(BAD)  # type: ignore[arg-type]


def _notes(source: TableSource, name: str, n_untimed: int) -> Iterator[str]:
    """How a file was encoded, and that times in it could not be read."""
    encoding = source.encoding
    if encoding.name != "utf-8":
        yield f"{name} is encoded as {encoding.name}"
    if encoding.recoded_lines:
        lines = count_of(encoding.recoded_lines, "line")
        yield f"{name}: {lines} not in UTF-8, read as Windows-1252"
    if n_untimed:
        yield f"{name}: {count_of(n_untimed, 'time')} of given_at could not be read"
