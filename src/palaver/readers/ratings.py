"""Rating files as one typed frame, read as a stream.

Text is parsed where text comes in. Columns that have a type already (Parquet, frames in memory) keep their
numbers, times and categories. Memory holds codes and numbers, never the file's text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, UserError, count_of, nearest
from palaver.progress import Progress, no_progress
from palaver.readers.rating_columns import ALIASES, FIELDS, SCHEMA, SHORT, find_layout
from palaver.readers.rating_exports import open_ratings
from palaver.readers.rating_layouts import Layout
from palaver.readers.rating_options import RatingOptions
from palaver.readers.rating_pairs import OUTCOMES, WHO_WON
from palaver.readers.rating_values import ValueCleaner, given_values, is_text
from palaver.schema.rating import KINDS, Kind
from palaver.tables import TableSource
from palaver.text_columns import ROW, as_text

Source = str | Path | TableSource
"""A file, or a table that is open already (`palaver.tables.open_frame` for a frame)."""

_LOOKED_AT = 1000
"""Values of a column that decide what it is."""
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
    n_missing: int = 0
    """Cells without a value, and long rows: nobody answered there."""
    notes: list[str] = field(default_factory=list)


def read_rating_frame(
    sources: Source | Sequence[Source],
    options: RatingOptions | None = None,
    *,
    kinds: Mapping[str, Kind] | None = None,
    progress: Progress = no_progress,
) -> RatingFrame:
    """Read rating files. `kinds` says who rated, file by file, and overrules the column `kind`."""
    options = options or RatingOptions()
    named = [sources] if isinstance(sources, str | Path | TableSource) else list(sources)
    places = [str(Path(source).resolve()) for source in named if isinstance(source, str | Path)]
    twice = [place for place, n in Counter(places).items() if n > 1]
    if twice:
        raise UserError(f"named twice: {', '.join(twice)}", "name each file once")
    readers = [RatingReader(source, options) for source in named]
    tables = [reader.table for reader in readers]
    total = sum(table.size for table in tables)
    ratings = RatingFrame(tuple(_text(table.path) for table in tables))
    parts: list[pl.DataFrame] = []
    done = 0
    for name, reader, kind in zip(_short_names(tables), readers, kinds_of(tables, kinds or {}), strict=True):

        def report(used: int, before: int = done) -> None:
            progress("reading ratings", before + used, total)

        parts += _usable_parts(ratings, reader, name, reader.typed_frames(report), kind)
        done += reader.table.size
    check_criteria(readers)
    if not parts and not ratings.n_bad:
        nothing = "no value is given" if ratings.n_missing else "there is no rating in it"
        raise DataError(f"{', '.join(ratings.paths)}: {nothing}")
    ratings.frame = _one_table(parts)
    return ratings


def _usable_parts(
    ratings: RatingFrame, reader: RatingReader, name: str, frames: Iterator[pl.DataFrame], kind: Kind | None
) -> list[pl.DataFrame]:
    """What can be used of a file, frame by frame. What cannot is counted and listed in `ratings`."""
    number = pl.lit(len(ratings.layouts), dtype=pl.UInt16).alias(FILE)
    parts: list[pl.DataFrame] = []
    bad = [ratings.bad]
    for frame in frames:
        if kind is not None:
            frame = frame.with_columns(pl.lit(kind).alias("kind"))
        good, wrong = _check_fields(frame, reader.layout, name)
        ratings.n_bad += frame.height - good.height
        bad += wrong
        needed = (*NAMES, "value", ROW)
        held = [c for c in good.columns if c in needed or good[c].null_count() < good.height]
        typed = good.select(pl.col(c).cast(TYPES.get(c, pl.Int64)) for c in held)
        parts.append(typed.with_columns(number))
    broken = [(name, row, "", "", text) for row, text in reader.table.problems]
    ratings.bad = pl.concat([*bad, pl.DataFrame(broken, schema=BAD, orient="row")])
    ratings.n_rows += reader.n_rows + len(broken)
    ratings.n_missing += reader.n_missing
    ratings.n_bad += len(broken)
    ratings.layouts.append(reader.layout)
    ratings.files[name] = reader.table.digest()
    ratings.notes += (f"{name}: {note}" for note in reader.notes())
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


class RatingReader:
    """One rating file as frames of the long format. Counts fill up while the frames are consumed."""

    def __init__(self, source: Source, options: RatingOptions | None = None) -> None:
        self.options = options or RatingOptions()
        if not isinstance(source, TableSource):
            source = open_ratings(source, sheet=self.options.sheet)
        self.table = source
        self._start()

    def _start(self) -> None:
        self.layout = Layout("long", {}, {})
        self.n_rows = 0
        self.n_missing = 0
        """Cells without a value."""
        self.n_untimed = 0
        """Times that could not be read."""
        self.criteria_met: set[str] = set()
        """Those of a long file, where the user names the ones to read."""
        self.criteria_left: Counter[str] = Counter()
        self._cleaner = ValueCleaner(self.options, decimal_commas=self.table.decimal_commas)
        self._samples: dict[str, pl.Series] = {}

    def typed_frames(self, progress: Callable[[int], None] | None = None) -> Iterator[pl.DataFrame]:
        """The ratings with the types of `TYPES` (kinds still as text)."""
        for frame in self.long_frames(progress):
            if not frame.is_empty():  # nothing but blank rows
                typed = frame.select(*_typed_columns(frame, self.options.texts), ROW)
                if "untimed" in typed.columns:
                    self.n_untimed += int(typed["untimed"].sum())
                    typed = typed.drop("untimed")
                yield typed

    def long_frames(self, progress: Callable[[int], None] | None = None) -> Iterator[pl.DataFrame]:
        """The ratings with every field as the file has it; values are plain, rows without one are left."""
        self._start()
        known = list(self.table.columns)
        aliases = [alias for name in _CODED for alias in ALIASES.get(name, ())]
        coded = [*_CODED, *aliases, *self.options.columns.values()]
        is_found = False
        try:
            for frame in self.table.typed_frames(progress, coded=coded):
                # A field that the rows of a JSON file had not yet:
                late = [c for c in frame.columns if c not in known and c != ROW]
                known += late
                if self._see_more(frame) or late or not is_found:
                    self.layout = find_layout(known, self.table.path, self.options, self._samples)
                    is_found = True
                frame = _with_all(known, frame)
                if self.layout.kind != "long":  # its columns are laid under each other, whatever their types
                    frame = as_text(frame.select(*self.layout.reads, ROW), self.table.path)
                long = self.layout.to_long(frame)
                yield self._answered(_with_all(FIELDS, long).select(*FIELDS, ROW))
        except pl.exceptions.PolarsError as error:
            raise DataError(f"{self.table.path} cannot be read as a table: {error}") from None

    def _see_more(self, frame: pl.DataFrame) -> bool:
        """Look at columns of which no value was seen yet; whether there is something new in one of them."""
        empty = [c for c in frame.columns if c != ROW and c not in self._samples]
        for column in empty:
            given = frame[column].drop_nulls().head(_LOOKED_AT)
            if len(given):
                values = given_values(given, self._cleaner, SHORT.get(column, column))
                if len(values):
                    self._samples[column] = values.cast(pl.String)
        return any(column in self._samples for column in empty)

    def _answered(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of the criteria to read that have a value. The others are counted."""
        is_long = self.layout.kind == "long"
        self.n_rows += frame.height if is_long else frame[ROW].n_unique()
        wanted = self.options.criteria
        if is_long and wanted is not None:
            criterion = frame["criterion"].cast(pl.String)
            self.criteria_met |= set(criterion.unique().drop_nulls())
            named = [name.lower() for name in wanted]
            is_other = ~criterion.str.to_lowercase().is_in(named) & criterion.is_not_null()
            self.criteria_left.update(dict(criterion.filter(is_other).value_counts().rows()))
            frame = frame.filter(~is_other)
        frame = self._cleaner.clean(frame)
        n_missing = frame["value"].null_count()
        self.n_missing += n_missing
        return frame.filter(pl.col("value").is_not_null()) if n_missing else frame

    def notes(self, *, describe_layout: bool = True) -> Iterator[str]:
        """What a user should know about how the file was read."""
        yield from self.table.notes
        encoding = self.table.encoding
        if encoding.name != "utf-8":
            yield f"encoded as {encoding.name}"
        if encoding.recoded_lines:
            yield f"{count_of(encoding.recoded_lines, 'line')} not in UTF-8, read as Windows-1252"
        if describe_layout and self.layout.describe() != Layout("long", {}, {}).describe():
            yield f"read as {self.layout.describe()}"
        yield from self.layout.notes()
        for criterion, n in self.criteria_left.items():
            yield f"left the criterion {criterion!r} ({count_of(n, 'rating')}): not among --criteria"
        if self._cleaner.n_commas:
            yield f"{count_of(self._cleaner.n_commas, 'number')} with a decimal comma (3,5 read as 3.5)"
        if self.n_untimed:
            yield f"{count_of(self.n_untimed, 'time')} of given_at could not be read"


def check_criteria(readers: Iterable[RatingReader]) -> None:
    """Raise `DataError` if the user names a criterion that no file has."""
    readers = list(readers)
    met = {name for reader in readers for name in (*reader.layout.criteria, *reader.criteria_met)}
    folded = {name.lower() for name in met}
    for name in readers[0].options.criteria or ():
        if not {name.lower(), SHORT.get(name, name)} & folded:
            files = ", ".join(_text(reader.table.path) for reader in readers)
            raise DataError(
                f"{files}: there is no criterion {name!r}{nearest(name, sorted(met))}",
                f"found {', '.join(sorted(met)) or 'none'}",
            )


def _with_all(columns: Sequence[str], frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with empty columns for those that it does not have."""
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in columns if c not in frame)


def _typed_columns(frame: pl.DataFrame, texts: Collection[str]) -> Iterator[pl.Series | pl.Expr]:
    """Each field as its type. What cannot be read as a number or a time is nothing; the value is kept."""
    yield from _value_and_text(frame["value"], is_text(frame, texts) if texts else None)
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
        elif name == "sampling_probability":
            yield _chance(column)
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


def _chance(column: pl.Series) -> pl.Series:
    """As a number above 0 up to 1; -1 for what is none, so that a wrong one can be told from none."""
    number = _number(column)
    right = ((number > 0) & (number <= 1)).fill_null(False)
    given = column.is_not_null() if column.dtype.is_numeric() else _clean(column).is_not_null()
    chance = pl.when(given & ~right).then(-1.0).otherwise(number).alias(column.name)
    return pl.select(chance).to_series().cast(TYPES[column.name])


def _value_and_text(column: pl.Series, written: pl.Series | None) -> tuple[pl.Series, pl.Series]:
    """Numbers, and what is none; what is `written` as free text never is."""
    number = _number(column)
    if written is not None and written.any():
        number = pl.select(pl.when(~written).then(number).alias(column.name)).to_series()
    if column.dtype.is_numeric() and number.is_finite().all():
        return number, pl.Series("text", [None], dtype=pl.Categorical).new_from_index(0, len(number))
    worded = number.is_null() | ~number.is_finite()
    text = pl.select(pl.when(worded.fill_null(True)).then(_clean(column)).alias("text")).to_series()
    return number, text.cast(pl.Categorical)


_ZONED = ("%Y-%m-%dT%H:%M:%S%.f%z",)
_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%m/%d/%YT%H:%M:%S", "%Y-%m-%d")
_SELDOM_ZONED = ("%Y/%m/%dT%I:%M:%S %p %z",)
_SELDOM_TIMES = (
    *("%Y/%m/%dT%H:%M:%S", "%Y/%m/%dT%I:%M:%S %p", "%m/%d/%YT%I:%M:%S %p", "%m/%d/%YT%H:%M"),
    *("%d.%m.%YT%H:%M:%S", "%d.%m.%YT%H:%M", "%Y-%m-%dT%H:%M"),
)
"""Those of forms and spreadsheets, tried where the others fail."""


def parse_times(column: pl.Series) -> pl.Series:
    """Text as moments in UTC (a time without zone is taken as such); unreadable times are null."""
    text = column.str.replace("Z$", "+00:00").str.replace(" ", "T", literal=True)
    moment = _parse_times(text, _ZONED, _TIMES)
    if moment.null_count() == column.null_count():
        return moment
    zoned = text.str.replace(r" (?:GMT|UTC)([+-])(\d)$", " ${1}0${2}00").str.replace(
        r" (?:GMT|UTC)$", " +0000"
    )
    seldom = _parse_times(zoned, _SELDOM_ZONED, _SELDOM_TIMES)
    return pl.select(pl.coalesce(moment, seldom)).to_series()


def _parse_times(text: pl.Series, zoned: Sequence[str], plain: Sequence[str]) -> pl.Series:
    given = pl.col(text.name)
    in_zone = (given.str.to_datetime(f, time_unit="us", strict=False) for f in zoned)
    utc = (moment.dt.convert_time_zone("UTC").dt.replace_time_zone(None) for moment in in_zone)
    local = (given.str.to_datetime(f, time_unit="us", strict=False) for f in plain)
    return text.to_frame().select(pl.coalesce(*utc, *local)).to_series()


def _moments(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """`given_at`, and `untimed`: whether a time is given that cannot be read."""
    if isinstance(column.dtype, pl.Datetime):
        zone = column.dtype.time_zone
        moment = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None) if zone else column
        moment = moment.cast(pl.Datetime("us"))
    else:
        column = _clean(column)
        moment = parse_times(column)
    return moment.alias("given_at"), (moment.is_null() & column.is_not_null()).alias("untimed")


def _check_fields(frame: pl.DataFrame, layout: Layout, file: str) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Split off rows without a name they need, or of a kind that is none.

    A screen without a rater is said once.
    """
    nothing = pl.lit("")
    checks = [(name, pl.col(name).is_null(), nothing, f"no {name} given") for name in NAMES]
    checks.append(("kind", ~pl.col("kind").is_in(KINDS), pl.col("kind"), f"kind: {_WHO}"))
    for name in ("turn", "repeat"):
        checks.append((name, pl.col(name) < 0, nothing, f"{name}: {_WHOLE}"))
    chance = "sampling_probability"
    checks.append((chance, pl.col(chance) < 0, nothing, f"{chance}: expected a number above 0, at most 1"))
    if layout.kind == "pairs":  # 0 and 1 may be the first and the second, or lost and won
        word, number = pl.col("text").cast(pl.String), pl.col("value").cast(pl.String)
        given = pl.coalesce(word, number.str.replace(r"\.0$", ""))
        checks.append(("value", ~given.is_in(OUTCOMES), given, WHO_WON))
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
