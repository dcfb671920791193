"""Rating files into one checked table, read as a stream.

Memory holds codes and numbers, never the file's text. Questions that need no table at all are answered in
constant memory from `long_frames` (see `palaver.studies.describe`) or `iter_ratings`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, nearest
from palaver.files import sha256_of
from palaver.schema import Checkboxes, Study
from palaver.studies.columns import FIELDS, Layout, find_layout
from palaver.studies.results import Reading
from palaver.studies.treatment import Treatment, treat
from palaver.tables import ROW, TableSource, open_table

Progress = Callable[[int, int], None]
"""Told (bytes read, bytes in all)."""

KEYS = ("criterion", "item", "system", "against", "rater")
"""What makes two rows the same judgement; the later one counts."""

ORDER = "order"
"""Place of a judgement over all files, in the order they were named."""

_NAMES = ("item", "system", "rater", "criterion")
_BAD = {"file": pl.String, ROW: pl.Int64, "column": pl.String, "value": pl.String, "problem": pl.String}
_SHOWN = 1000


@dataclass(frozen=True)
class RatingTable:
    """Ratings as columns: codes for names, `value` for numbers, `text` for words (boxes, win/tie/loss)."""

    frame: pl.DataFrame
    treatments: Mapping[str, Treatment]
    reading: Reading
    bad: pl.DataFrame
    """Rows left out because something in them is wrong: file, row, column, value, problem."""
    hashes: Mapping[str, str]

    @property
    def criteria(self) -> tuple[str, ...]:
        """In order of first appearance."""
        return tuple(self.treatments)

    def of(self, criterion: str) -> pl.DataFrame:
        """The rows of one criterion."""
        return self.frame.filter(pl.col("criterion") == criterion)


def read_ratings(
    paths: str | Path | Sequence[str | Path],
    *,
    study: Study | None = None,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    progress: Progress | None = None,
) -> RatingTable:
    """Read one or more rating files into a table.

    Rows that cannot be used raise `DataError` naming each of them, or with `skip_bad` are left out,
    counted and kept in `RatingTable.bad`.
    """
    files = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    sources = [open_table(path) for path in files]
    names = [_text(p.name if sum(p.name == q.name for q in files) == 1 else p) for p in files]
    total = sum(source.size for source in sources)
    intake = _Intake()
    done = 0
    for name, source in zip(names, sources, strict=True):
        before = done
        report = (lambda used, before=before: progress(before + used, total)) if progress else None
        criteria = [q.criterion for q in study.questions] if study else None
        for layout, frame in long_frames(source, columns, report, criteria=criteria):
            intake.take(layout, frame, name)
        intake.finish(source, name)
        done = before + source.size
    if not intake.frames and not intake.bad:
        raise DataError(f"{', '.join(map(str, files))}: there is no rating in it")
    table, treatments, wrong = _check_values(intake.table(), study, intake.kinds == {"screens"})
    bad = pl.concat([pl.DataFrame(schema=_BAD), *intake.bad, wrong]).sort("file", ROW, maintain_order=True)
    if bad.height and not skip_bad:
        raise _bad_error(files, bad, intake.n_rows)
    lost = [c for c in treatments if not (table["criterion"] == c).any()]
    table, n_duplicates = _drop_earlier(table)
    dropped = {
        "ratings that could not be used": intake.n_bad + wrong.height,
        "empty cells (no answer given)": intake.n_empty,
        "earlier answers replaced by a later one": n_duplicates,
    }
    if table.is_empty():
        raise DataError(f"{', '.join(map(str, files))}: no usable rating is left", problems=_listed(bad))
    reading = Reading(
        files=tuple(_text(p) for p in files),
        layout="; ".join(intake.layouts),
        n_rows=intake.n_rows,
        n_ratings=table.height,
        dropped=tuple((reason, n) for reason, n in dropped.items() if n),
        notes=(*intake.notes, *(f"{criterion}: no usable rating is left" for criterion in lost)),
    )
    hashes = {name: sha256_of(path) for name, path in zip(names, files, strict=True)}
    kept = {criterion: t for criterion, t in treatments.items() if criterion not in lost}
    return RatingTable(table, kept, reading, bad, hashes)


def _text(path: str | Path) -> str:
    """A name on disk need not be text; what is written about it must be."""
    return str(path).encode(errors="replace").decode()


def ratings_from_frame(frame: Any, **options: Any) -> RatingTable:
    """The same from a polars or pandas frame (or anything that hands out Arrow) in one of the layouts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "frame.parquet")
        pl.DataFrame(frame).write_parquet(path)
        table = read_ratings(path, **options)
    return replace(table, reading=replace(table.reading, files=("frame",)))


@dataclass
class _Intake:
    """What has been read so far, over all files."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    bad: list[pl.DataFrame] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    layouts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    n_rows: int = 0
    n_bad: int = 0
    n_empty: int = 0
    _layout: Layout | None = None
    _n_untimed: int = 0

    def take(self, layout: Layout, frame: pl.DataFrame, name: str) -> None:
        """Keep what is usable of a frame, and a note of what is not."""
        self._layout = layout
        self.n_rows += frame[ROW].n_unique()
        answered = frame
        if layout.kind != "long":  # an empty cell of a wide file: nobody answered there
            answered = frame.filter(pl.col("value").is_not_null())
        self.n_empty += frame.height - answered.height
        good, wrong = _check_names(answered, name)
        self.n_bad += answered.height - good.height
        compact = _compact(good, name)
        self._n_untimed += compact["given_at"].null_count() - good["given_at"].null_count()
        self.frames.append(compact)
        if wrong.height:
            self.bad.append(wrong)

    def finish(self, source: TableSource, name: str) -> None:
        """What is known of a file once it has been read to its end."""
        if self._layout is not None:
            self.kinds.add(self._layout.kind)
            self.layouts.append(f"{name}: {self._layout.describe()}")
        self.notes += _encoding_notes(source, name)
        if self._n_untimed:
            self.notes.append(f"{name}: {_count(self._n_untimed, 'time')} of given_at could not be read")
        if source.problems:
            self.bad.append(_bad_rows(name, [(row, "", "", text) for row, text in source.problems]))
        self.n_rows += len(source.problems)
        self.n_bad += len(source.problems)
        self._layout, self._n_untimed = None, 0

    def table(self) -> pl.DataFrame:
        return pl.concat(self.frames).with_row_index(ORDER) if self.frames else pl.DataFrame()


def long_frames(
    source: TableSource,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    criteria: Sequence[str] | None = None,
) -> Iterator[tuple[Layout, pl.DataFrame]]:
    """The file's rows in the long format, all text, frame by frame.

    Of a wide file only the columns named by `criteria` are read, where there are any.
    """
    layout: Layout | None = None
    known = list(source.columns)
    try:
        for frame in source.frames(progress):
            late = [
                c for c in frame.columns if c not in known and c != ROW
            ]  # a field that JSON rows had not yet
            known += late
            if layout is None or late:
                layout = find_layout(
                    known, source.path, renamed=columns, sample=frame.head(1000), criteria=criteria
                )
            missing = [c for c in known if c not in frame.columns]
            frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in missing)
            yield layout, _with_all_fields(layout.to_long(frame))
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{source.path} cannot be read as a table: {error}") from None


def _with_all_fields(frame: pl.DataFrame) -> pl.DataFrame:
    absent = [f for f in FIELDS if f not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(f) for f in absent).select([*FIELDS, ROW])


def _bad_rows(file: str, rows: Iterable[tuple[int, str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame([(file, *row) for row in rows], schema=_BAD, orient="row")


def _check_names(frame: pl.DataFrame, file: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split off rows without a name or value they need; a screen without a rater is said once."""
    wrong = [
        frame.filter(pl.col(name).is_null()).select(
            pl.lit(file).alias("file"),
            pl.col(ROW),
            pl.lit(name).alias("column"),
            pl.lit("").alias("value"),
            pl.lit(f"no {name} given").alias("problem"),
        )
        for name in (*_NAMES, "value")
    ]
    good = frame.filter(pl.all_horizontal(pl.col(n).is_not_null() for n in (*_NAMES, "value")))
    return good, pl.concat(wrong).unique(maintain_order=True)


_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%m/%d/%YT%H:%M:%S", "%Y-%m-%d")


def parsed_time() -> pl.Expr:
    """`given_at` as a moment in UTC (a time without zone is taken as such); unreadable times are null."""
    text = pl.col("given_at").str.replace("Z$", "+00:00").str.replace(" ", "T", literal=True)
    zoned = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
    plain = (text.str.to_datetime(f, time_unit="us", strict=False) for f in _TIMES)
    return pl.coalesce(zoned.dt.convert_time_zone("UTC").dt.replace_time_zone(None), *plain)


def _compact(frame: pl.DataFrame, file: str) -> pl.DataFrame:
    number = pl.col("value").cast(pl.Float64, strict=False)
    return frame.select(
        *(pl.col(n).cast(pl.Categorical) for n in ("item", "system", "against", "rater", "criterion")),
        number.alias("value"),
        pl.when(number.is_null() | ~number.is_finite())
        .then(pl.col("value"))
        .cast(pl.Categorical)
        .alias("text"),
        parsed_time().alias("given_at"),
        pl.col("seconds").cast(pl.Float64, strict=False).cast(pl.Float32),
        pl.col("shown_position").cast(pl.Float64, strict=False).cast(pl.Int32, strict=False),
        pl.lit(file, dtype=pl.String).cast(pl.Categorical).alias("file"),
        pl.col(ROW),
    )


def _check_values(
    table: pl.DataFrame, study: Study | None, screens: bool
) -> tuple[pl.DataFrame, dict[str, Treatment], pl.DataFrame]:
    """Decide how each criterion is treated and split off values outside its scale."""
    treatments: dict[str, Treatment] = {}
    kept, wrong = [], []
    names = [q.criterion for q in study.questions] if study else []
    criteria = table["criterion"].unique(maintain_order=True).to_list() if table.height else []
    for criterion in criteria:
        rows = table.filter(pl.col("criterion") == criterion)
        if study is not None and criterion not in names:
            expected = f"the study asks for {', '.join(names)}{nearest(criterion, names)}"
            wrong.append(
                _marked(rows, "criterion", pl.lit(criterion), pl.lit(f"unknown criterion: {expected}"))
            )
            continue
        scale = study.question(criterion).scale if study else None
        if isinstance(scale, Checkboxes):  # a box may be called "1"
            rows = rows.with_columns(_shown().cast(pl.Categorical).alias("text"))
        treatment, good, problem = treat(criterion, rows, scale, screens=screens)
        treatments[criterion] = treatment
        kept.append(rows.filter(good))
        wrong.append(_marked(rows.filter(~good), "value", _shown(), pl.lit(problem)))
    empty = pl.DataFrame(schema=_BAD)
    return (
        (pl.concat(kept).sort(ORDER) if kept else table.clear()),
        treatments,
        pl.concat([empty, *wrong]),
    )


def _shown() -> pl.Expr:
    """The value as it stood in the file, give or take a trailing .0."""
    number = pl.col("value").cast(pl.String).str.replace(r"\.0$", "")
    return pl.coalesce(pl.col("text").cast(pl.String), number)


def _marked(rows: pl.DataFrame, column: str, value: pl.Expr, problem: pl.Expr) -> pl.DataFrame:
    return rows.select(
        pl.col("file"),
        pl.col(ROW),
        pl.lit(column).alias("column"),
        value.alias("value"),
        problem.alias("problem"),
    ).cast(_BAD)  # type: ignore[arg-type]


def _drop_earlier(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    if table.is_empty():
        return table, 0
    if table["given_at"].null_count() == 0:
        table = table.sort("given_at", maintain_order=True)
    if table["against"].null_count() < table.height:  # "a beats b" and "b loses to a" are one judgement
        pair = [pl.col(name).cast(pl.String) for name in ("system", "against")]
        keyed = table.with_columns(
            pl.min_horizontal(pair).alias("_first"), pl.max_horizontal(pair).alias("_second")
        )
        keys = [*(k for k in KEYS if k not in ("system", "against")), "_first", "_second"]
        latest = keyed.unique(subset=keys, keep="last").drop("_first", "_second")
    else:
        latest = table.unique(subset=list(KEYS), keep="last")
    return latest.sort(ORDER), table.height - latest.height


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + "s" * (n != 1)


def _encoding_notes(source: TableSource, name: str) -> list[str]:
    encoding, notes = source.encoding, []
    if encoding.name != "utf-8":
        notes.append(f"{name} is encoded as {encoding.name}")
    if encoding.recoded_lines:
        lines = _count(encoding.recoded_lines, "line")
        notes.append(f"{name}: {lines} not in UTF-8, read as Windows-1252")
    return notes


def _listed(bad: pl.DataFrame) -> list[str]:
    several = bad["file"].n_unique() > 1
    listed = [
        (f"{file}, " if several else "")
        + f"row {row}: {problem}"
        + (f", found {value!r}" if value and column == "value" else "")
        for file, row, column, value, problem in bad.head(_SHOWN).iter_rows()
    ]
    if bad.height > _SHOWN:
        listed.append(f"… and {bad.height - _SHOWN:,} more")
    return listed


def _bad_error(files: Sequence[Path], bad: pl.DataFrame, n_rows: int) -> DataError:
    count = _count(bad.select("file", ROW).n_unique(), "row")
    return DataError(
        f"{', '.join(map(str, files))}: {count} of {n_rows:,} cannot be used",
        "mend them, or add --skip-bad to leave them out (they are counted and written to bad-rows.csv)",
        _listed(bad),
    )
