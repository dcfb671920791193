"""How a file's columns become rows of the long format: one `Layout` for each shape of rating files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from palaver.readers.rating_pairs import outcomes
from palaver.text_columns import ROW

_MOST_NAMED = 12
"""Columns that a note names; the others are counted."""


@dataclass(frozen=True)
class Cell:
    """What a column of a form asks about."""

    item: str
    system: str
    criterion: str


@dataclass(frozen=True)
class Layout:
    """How a file's columns become the long format."""

    kind: str
    columns: Mapping[str, str]
    """Field -> column, for the fields that are one column."""
    criteria: Mapping[str, tuple[str, ...]]
    """Criterion -> its column, its numbered columns on a screen, or those that say who won."""
    systems: tuple[str, ...] = ()
    """The numbered system columns of a screen."""
    cells: Mapping[str, Cell] = field(default_factory=dict)
    """Column of a form -> what it asks about."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Column that is not read -> why."""
    by_model: bool = False
    """Whether a language model judged, as FastChat writes it: its name comes with that of its prompt, and -1
    is a judgement that could not be read."""

    @property
    def reads(self) -> set[str]:
        """The columns that are read."""
        by_criterion = (column for columns in self.criteria.values() for column in columns)
        return {*self.columns.values(), *by_criterion, *self.systems, *self.cells}

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
        if self.kind in ("criteria", "pairs") and field == "value":
            return criterion.replace({name: columns[0] for name, columns in self.criteria.items() if columns})
        if self.kind == "forms" and field == "value":
            asked = {f"{c.item}\n{c.system}\n{c.criterion}": column for column, c in self.cells.items()}
            names = [pl.col(name).cast(pl.String) for name in ("item", "system")]
            return pl.concat_str(*names, criterion, separator="\n").replace(asked)
        return pl.lit(self.columns.get(field, field))

    def describe(self) -> str:
        """What was read as what."""
        renamed = [f"{column!r} as {f}" for f, column in self.columns.items() if column != f]
        note = f"; read {', '.join(renamed)}" if renamed else ""
        criteria = ", ".join(self.criteria)
        if self.kind in ("forms", "pairs") and "rater" not in self.columns:
            note += "; each row is a rater of its own, as no column names one"
        cells = f"{len(self.cells)} columns of the pattern 'item [system]'"
        return {
            "long": f"one judgement a row{note}",
            "screens": f"one screen a row, {len(self.systems)} outputs each ({criteria}){note}",
            "criteria": f"one output a row, one column per criterion ({criteria}){note}",
            "pairs": f"one comparison of two systems a row ({criteria}){note}",
            "forms": f"one rater a row, {cells} ({criteria}){note}",
        }[self.kind]

    def notes(self) -> Iterator[str]:
        """The columns that were not read, one line for each reason."""
        by_reason: dict[str, list[str]] = {}
        for column, reason in self.left.items():
            by_reason.setdefault(reason, []).append(column)
        for reason, columns in by_reason.items():
            named = ", ".join(map(repr, columns[:_MOST_NAMED]))
            more = f" and {len(columns) - _MOST_NAMED:,} more" if len(columns) > _MOST_NAMED else ""
            which = "the column" if len(columns) == 1 else "the columns"
            yield f"left {which} {named}{more}: {reason}"

    def to_long(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with one judgement a row, in the order they were made."""
        shared = {field: pl.col(column) for field, column in self.columns.items()}
        if self.kind == "long":
            return frame.select(ROW, **shared)
        row = pl.format("row {}", pl.col(ROW))
        if self.kind == "forms":
            shared = {"rater": row, **shared}
        elif self.kind == "pairs":
            shared = {"item": row, "rater": row, **shared}
        if self.by_model:
            shared["rater"] = shared["rater"].str.split("|").list.first()
            shared["kind"] = pl.lit("llm")
        parts = [frame.select(ROW, **{**judgement, **shared}) for judgement in self._judgements()]
        return pl.concat(parts).sort(ROW, maintain_order=True)

    def _judgements(self) -> Iterator[dict[str, pl.Expr]]:
        """Fields of each judgement that is in a row, besides those that the row's judgements share."""
        if self.kind == "forms":
            for column, cell in self.cells.items():
                about = {f: pl.lit(getattr(cell, f)) for f in ("item", "system", "criterion")}
                yield {**about, "value": pl.col(column)}
        elif self.kind == "pairs":
            for criterion, columns in self.criteria.items():
                games = list(outcomes(self.columns["system"], self.columns["against"], columns))
                for number, outcome in enumerate(games):
                    repeat = {"repeat": pl.lit(str(number))} if len(games) > 1 else {}
                    yield {"criterion": pl.lit(criterion), "value": outcome, **repeat}
        else:
            for position in range(max(1, len(self.systems))):
                output = {}
                if self.systems:
                    output["system"] = pl.col(self.systems[position])
                    output["shown_position"] = pl.lit(str(position))
                for criterion, columns in self.criteria.items():
                    value = pl.col(columns[position])
                    if self.by_model:
                        value = pl.when(~value.is_in(["-1", "-1.0"])).then(value)
                    yield {"criterion": pl.lit(criterion), "value": value, **output}
