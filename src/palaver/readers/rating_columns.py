"""Which column is which: the long format, the RankME release's wide format, and one column per criterion.

long      one judgement a row: `item, system, rater, criterion, value`
screens   one screen a row: `team1..3`, `quality1..3` (the RankME release)
criteria  one judged output a row, one column per criterion: `team`, `naturalness`, `quality`
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from palaver.errors import DataError, nearest
from palaver.readers.shapes import other_file
from palaver.tables import ROW

REQUIRED = ("item", "system", "rater", "criterion", "value")
WIDE = ("item", "system", "rater", "against", "output", "study", "given_at", "seconds", "shown_position")
"""The fields that a wide file may have."""

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(
        ("study", "item", "system", "against", "output", "rater", "criterion", "value"), pl.String
    ),
    "given_at": pl.Datetime("us"),
    "seconds": pl.Float64,
    "shown_position": pl.Int32,
    **dict.fromkeys(("kind", "signature", "context"), pl.String),
    **dict.fromkeys(("turn", "repeat"), pl.Int32),
    "version": pl.String,
    "probability": pl.Float64,
}
"""The columns of the long format and their types, as they are written."""
FIELDS = (*REQUIRED, *(name for name in SCHEMA if name not in REQUIRED))

ALIASES = {
    "item": ("item_id", "mr_id", "segment", "segment_id", "doc_id", "mr"),
    "system": ("team", "model", "system_id"),
    "rater": ("rater_id", "worker", "worker_id", "_worker_id", "annotator", "annotator_id"),
    "criterion": ("dimension", "aspect"),
    "value": ("rating", "score"),
    "given_at": ("_created_at", "created_at", "timestamp"),
}
"""Other names people use, tried in this order when the field's own name is absent."""

SHORT = {"inf": "informativeness", "nat": "naturalness", "qual": "quality", "check_those_that_apply": "check"}
"""The RankME release's abbreviations."""

_OF_ONE_OUTPUT = ("system", "criterion", "value", "against", "output", "shown_position")
_NUMBERED = re.compile(r"^(.*\D)(\d+)$")
_NOT_CRITERIA = re.compile(r"^_|(^|_)id$|^(mr|ref|primary|text|context|output|reference|study)\d*$")


@dataclass(frozen=True)
class Layout:
    """How a file's columns become the long format."""

    kind: str
    columns: Mapping[str, str]
    """Field -> column, for the fields that are one column."""
    criteria: Mapping[str, tuple[str, ...]]
    """Criterion -> its column, or its numbered columns on a screen."""
    systems: tuple[str, ...] = ()
    """The numbered system columns of a screen."""
    ignored: tuple[str, ...] = ()
    """Columns that look like criteria but are none of the study's."""

    def column_of(self, field: str) -> pl.Expr:
        """The name that a field's column has in the file, for rows of the long format."""
        criterion, position = pl.col("criterion").cast(pl.String), pl.col("shown_position").cast(pl.String)
        if self.kind == "screens" and field == "system":
            return position.replace({str(k): column for k, column in enumerate(self.systems)})
        if self.kind == "screens" and field == "value":
            cells = {
                f"{k} {name}": column
                for name, columns in self.criteria.items()
                for k, column in enumerate(columns)
            }
            return pl.format("{} {}", position, criterion).replace(cells)
        if self.kind == "criteria" and field == "value":
            return criterion.replace({name: columns[0] for name, columns in self.criteria.items()})
        return pl.lit(self.columns.get(field, field))

    def describe(self) -> str:
        renamed = [f"{c!r} as {f}" for f, c in self.columns.items() if c != f]
        note = f"; read {', '.join(renamed)}" if renamed else ""
        note += f"; not asked for by the study: {', '.join(self.ignored)}" if self.ignored else ""
        return {
            "long": f"one judgement a row{note}",
            "screens": f"one screen a row, {len(self.systems)} outputs each{note}",
            "criteria": f"one output a row, one column per criterion{note}",
        }[self.kind]

    def to_long(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with one judgement a row, in the order they were made."""
        shared = [pl.col(c).alias(f) for f, c in self.columns.items()]
        if self.kind == "long":
            return frame.select(*shared, ROW)
        parts = []
        for position in range(max(1, len(self.systems))):
            output = []
            if self.systems:
                place = pl.lit(str(position)).alias("shown_position")
                output = [pl.col(self.systems[position]).alias("system"), place]
            for criterion, columns in self.criteria.items():
                value = pl.col(columns[position]).alias("value")
                parts.append(frame.select(*shared, *output, pl.lit(criterion).alias("criterion"), value, ROW))
        return pl.concat(parts).sort(ROW, maintain_order=True)


def find_layout(
    columns: Sequence[str],
    path: Path,
    *,
    renamed: Mapping[str, str] | None = None,
    sample: pl.DataFrame | None = None,
    criteria: Sequence[str] | None = None,
) -> Layout:
    """Recognise the layout. `renamed` maps fields to columns as the user says; `sample` is a few rows.

    Of a wide file only the columns named by `criteria` count, unless none of them is.
    """
    fields = dict(renamed or {})
    for field, column in fields.items():
        if field not in FIELDS:
            raise DataError(
                f"there is no field {field!r}{nearest(field, FIELDS)}", f"known: {', '.join(FIELDS)}"
            )
        if column not in columns:
            raise DataError(f"{path} has no column {column!r}{nearest(column, columns)}")
    for field in FIELDS:
        names = (field, *ALIASES.get(field, ()))
        known = next((c for c in names if c in columns and c not in fields.values()), None)
        if field not in fields and known is not None:
            fields[field] = known
    numbered = _numbered(columns)
    screen = next((s for s in ("system", "team", "model") if len(numbered.get(s, ())) > 1), None)
    wide = {field: column for field, column in fields.items() if field in WIDE or field in (renamed or {})}
    if screen is not None and "value" not in fields:
        return _only(criteria, _screens(wide, numbered, screen, columns, path))
    if "criterion" not in fields and "value" not in fields and "system" in fields:
        judged = _criterion_columns(columns, set(wide.values()), sample)
        if judged:
            _demand(("item", "system", "rater"), wide, columns, path)
            return _only(criteria, Layout("criteria", wide, judged))
    _demand(REQUIRED, fields, columns, path)
    return Layout("long", fields, {})


def _only(criteria: Sequence[str] | None, layout: Layout) -> Layout:
    """`layout` with the criteria of the study; with all it has if none is, so that the mistake shows."""
    asked = {name: by for name, by in layout.criteria.items() if criteria is None or name in criteria}
    ignored = tuple(name for name in layout.criteria if name not in asked)
    return replace(layout, criteria=asked, ignored=ignored) if asked and ignored else layout


def _numbered(columns: Sequence[str]) -> dict[str, list[str]]:
    """`quality1, quality2, quality3` under `quality`, when the numbers run from 1 (or 0) without a gap."""
    stems: dict[str, dict[int, str]] = {}
    for column in columns:
        if match := _NUMBERED.match(column):
            stems.setdefault(match[1].rstrip("_"), {})[int(match[2])] = column
    return {
        stem: [by[n] for n in sorted(by)]
        for stem, by in stems.items()
        if min(by) in (0, 1) and len(by) == max(by) - min(by) + 1
    }


def _screens(
    wide: Mapping[str, str], numbered: dict[str, list[str]], screen: str, columns: Sequence[str], path: Path
) -> Layout:
    systems = numbered[screen]
    criteria = {
        SHORT.get(stem, stem): tuple(by)
        for stem, by in numbered.items()
        if stem != screen and not _NOT_CRITERIA.match(stem) and len(by) == len(systems)
    }
    if not criteria:
        raise DataError(
            f"{path} has several systems on a screen ({', '.join(systems)}) but no criterion to go with them",
            f"expected columns such as quality1 … quality{len(systems)}",
        )
    fields = {f: c for f, c in wide.items() if f not in _OF_ONE_OUTPUT}
    _demand(("item", "rater"), fields, columns, path)
    return Layout("screens", fields, criteria, tuple(systems))


def _criterion_columns(
    columns: Sequence[str], taken: set[str], sample: pl.DataFrame | None
) -> dict[str, tuple[str, ...]]:
    """Columns of numbers, and check boxes by their name, that are neither fields nor ids."""
    criteria: dict[str, tuple[str, ...]] = {}
    for column in columns:
        if column in taken or _NOT_CRITERIA.search(column):
            continue
        numeric = False
        if sample is not None and column in sample.columns:
            values = sample[column].drop_nulls()
            numeric = (
                values.len() > 0 and values.cast(pl.Float64, strict=False).null_count() < values.len() / 2
            )
        if numeric or column.startswith("check"):
            criteria[SHORT.get(column, column)] = (column,)
    return criteria


def _demand(required: Sequence[str], fields: Mapping[str, str], columns: Sequence[str], path: Path) -> None:
    missing = [f for f in required if f not in fields]
    if not missing:
        return
    problems = []
    for field in missing:
        close = nearest(field, [c for c in columns if c not in fields.values()])
        problems.append(f"no column {field!r}{close.replace('did you mean', 'is it')}")
    word = "a column is" if len(missing) == 1 else f"{len(missing)} columns are"
    raise DataError(
        f"{path}: {word} missing. Expected {', '.join(REQUIRED)}; found {', '.join(columns) or 'none'}",
        other_file(columns) or f"rename the column, or say which one it is: --column {missing[0]}=NAME",
        problems,
    )
