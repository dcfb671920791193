"""Rating files into one checked table, read as a stream.

Memory holds codes and numbers, never the file's text. Questions that need no table at all are answered in
constant memory from `long_frames` (see `palaver.studies.describe`) or `iter_ratings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from palaver.errors import DataError, nearest
from palaver.files import sha256_of
from palaver.schema import Study
from palaver.studies.columns import FIELDS, Layout, find_layout
from palaver.studies.results import Reading
from palaver.studies.treatment import Treatment, treat
from palaver.tables import ROW, TableSource, open_table

Progress = Callable[[int, int], None]
"""Told (bytes read, bytes in all)."""

KEYS = ("criterion", "item", "system", "against", "rater")
"""What makes two rows the same judgement; the later one counts."""

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
    total = sum(source.size for source in sources)
    frames, bad, layouts, notes = [], [], [], []
    n_rows = n_empty = done = 0
    screens = True
    for source in sources:
        before = done
        report = (lambda used, before=before: progress(before + used, total)) if progress else None
        for layout, frame in long_frames(source, columns, report):
            n_rows += frame[ROW].n_unique() if layout.kind != "long" else frame.height
            good, wrong, empty = _check_names(frame, layout, source.path)
            n_empty += empty
            frames.append(_compact(good, source.path))
            bad.append(wrong)
        screens = screens and layout.kind == "screens"
        layouts.append(f"{source.path.name}: {layout.describe()}")
        notes += _encoding_notes(source)
        bad.append(_bad_rows(source.path, [(row, "", "", text) for row, text in source.problems]))
        n_rows += len(source.problems)
        done = before + source.size
    table = pl.concat(frames) if frames else pl.DataFrame()
    if table.is_empty() and not any(b.height for b in bad):
        raise DataError(f"{', '.join(map(str, files))}: there is no rating in it")
    table, treatments, wrong = _check_values(table, study, screens)
    bad.append(wrong)
    all_bad = pl.concat(bad).sort("file", ROW)
    if all_bad.height and not skip_bad:
        raise _bad_error(files, all_bad, n_rows)
    table, n_duplicates = _drop_earlier(table)
    dropped = {
        "rows with something wrong in them": all_bad.height,
        "empty cells (no answer given)": n_empty,
        "earlier answers replaced by a later one": n_duplicates,
    }
    if table.is_empty():
        raise DataError(f"{', '.join(map(str, files))}: no usable rating is left", problems=_listed(all_bad))
    reading = Reading(
        files=tuple(str(p) for p in files),
        layout="; ".join(layouts),
        n_rows=n_rows,
        n_ratings=table.height,
        dropped=tuple((reason, n) for reason, n in dropped.items() if n),
        notes=tuple(notes),
    )
    hashes = {path.name: sha256_of(path) for path in files}
    return RatingTable(table, treatments, reading, all_bad, hashes)


def long_frames(
    source: TableSource,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[tuple[Layout, pl.DataFrame]]:
    """The file's rows in the long format, all text, frame by frame."""
    layout: Layout | None = None
    for frame in source.frames(progress):
        if layout is None:
            layout = find_layout(source.columns, source.path, renamed=columns, sample=frame.head(1000))
        missing = [c for c in source.columns if c not in frame.columns]
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(c) for c in missing)
        yield layout, _with_all_fields(layout.to_long(frame))


def _with_all_fields(frame: pl.DataFrame) -> pl.DataFrame:
    absent = [f for f in FIELDS if f not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=pl.String).alias(f) for f in absent).select([*FIELDS, ROW])


def _bad_rows(path: Path, rows: Iterable[tuple[int, str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame([(path.name, *row) for row in rows], schema=_BAD, orient="row")


def _check_names(frame: pl.DataFrame, layout: Layout, path: Path) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Split off rows without a name they need, and empty cells of wide files (nobody answered there)."""
    wrong = [
        frame.filter(pl.col(name).is_null()).select(
            pl.lit(path.name).alias("file"),
            pl.col(ROW),
            pl.lit(name).alias("column"),
            pl.lit("").alias("value"),
            pl.lit(f"no {name} given").alias("problem"),
        )
        for name in (*_NAMES, *(("value",) if layout.kind == "long" else ()))
    ]
    named = frame.filter(pl.all_horizontal(pl.col(n).is_not_null() for n in _NAMES))
    good = named.filter(pl.col("value").is_not_null())
    n_empty = named.height - good.height if layout.kind != "long" else 0
    return good, pl.concat(wrong), n_empty


_TIMES = ("%Y-%m-%dT%H:%M:%S%.f", "%m/%d/%YT%H:%M:%S", "%Y-%m-%d")


def parsed_time() -> pl.Expr:
    """`given_at` as a moment in UTC (a time without zone is taken as such); unreadable times are null."""
    text = pl.col("given_at").str.replace("Z$", "+00:00").str.replace(" ", "T", literal=True)
    zoned = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us", strict=False)
    plain = (text.str.to_datetime(f, time_unit="us", strict=False) for f in _TIMES)
    return pl.coalesce(zoned.dt.convert_time_zone("UTC").dt.replace_time_zone(None), *plain)


def _compact(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
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
        pl.col("shown_position").cast(pl.Int32, strict=False),
        pl.lit(path.name, dtype=pl.String).cast(pl.Categorical).alias("file"),
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
        treatment, good, problem = treat(criterion, rows, scale, screens=screens)
        treatments[criterion] = treatment
        kept.append(rows.filter(good))
        shown = pl.coalesce(
            pl.col("text").cast(pl.String), pl.col("value").cast(pl.String).str.replace(r"\.0$", "")
        )
        wrong.append(_marked(rows.filter(~good), "value", shown, pl.lit(problem)))
    empty = pl.DataFrame(schema=_BAD)
    return (
        (pl.concat(kept).sort(ROW, maintain_order=True) if kept else table.clear()),
        treatments,
        pl.concat([empty, *wrong]),
    )


def _marked(rows: pl.DataFrame, column: str, value: pl.Expr, problem: pl.Expr) -> pl.DataFrame:
    return rows.select(
        pl.col("file"),
        pl.col(ROW),
        pl.lit(column).alias("column"),
        value.alias("value"),
        problem.alias("problem"),
    ).cast(_BAD)  # type: ignore[arg-type]


def _drop_earlier(table: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    if table["given_at"].null_count() == 0:
        table = table.sort("given_at", maintain_order=True)
    latest = table.unique(subset=list(KEYS), keep="last", maintain_order=True).sort(ROW, maintain_order=True)
    return latest, table.height - latest.height


def _encoding_notes(source: TableSource) -> list[str]:
    encoding, notes = source.encoding, []
    if encoding.name != "utf-8":
        notes.append(f"{source.path.name} is encoded as {encoding.name}")
    if encoding.recoded_lines:
        notes.append(
            f"{source.path.name}: {encoding.recoded_lines} lines were not UTF-8 and were read as Windows-1252"
        )
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
    count = "1 row" if bad.height == 1 else f"{bad.height:,} rows"
    return DataError(
        f"{', '.join(map(str, files))}: {count} of {n_rows:,} cannot be used",
        "mend them, or add --skip-bad to leave them out (they are counted and written to bad-rows.csv)",
        _listed(bad),
    )
