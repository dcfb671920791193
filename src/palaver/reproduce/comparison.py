"""Published figures beside ours: what the papers have in common."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.reports import lines
from palaver.schema.run import plain

TOLERANCE = 0.02
Groups = tuple[frozenset[str], ...]


def load_figures(paper: str) -> dict[str, Any]:
    """The published figures of a paper, from the file beside this one."""
    return tomllib.loads((Path(__file__).parent / f"{paper}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    table: str
    row: str
    convention: str
    """How ours was computed."""
    why: str = ""
    """Why it is known to differ; the others are known to match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """What another convention than that of the table gives for one cell."""

    convention: str
    value: float
    n: int = 0
    """Pairs of numbers that a correlation rests on; 0 where that is not the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCell(_Cell):
    """One published number and ours."""

    column: str
    paper: float
    paper_star: bool
    """Whether the paper marks it as significant (p < 0.05)."""
    ours: float
    p: float
    alternatives: tuple[Alternative, ...] = ()
    """Notes; the count of matches rests on `ours` alone."""

    @property
    def place(self) -> str:
        return f"{self.row}, {self.column}"

    @property
    def matches(self) -> bool:
        return not math.isnan(self.ours) and abs(self.ours - self.paper) <= TOLERANCE + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCell(_Cell):
    """One published ranking and ours; the order inside a group does not matter."""

    paper: Groups
    paper_label: str
    ours: Groups
    ours_label: str

    @property
    def place(self) -> str:
        return self.row

    @property
    def matches(self) -> bool:
        return self.ours == self.paper


Cell = NumberCell | GroupCell


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All cells of a paper."""

    paper: str
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...]
    signature: str

    @property
    def lost(self) -> tuple[Cell, ...]:
        """Cells that matched before and no longer do."""
        return tuple(cell for cell in self.cells if not cell.why and not cell.matches)

    def of(self, table: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.table == table)

    def to_json(self) -> str:
        """All cells with what the paper has, what we have, and whether they match."""
        cells = []
        for cell in self.cells:
            groups = {}
            if isinstance(cell, GroupCell):  # the order inside a group does not matter: that of the names
                groups = {"paper": [*map(sorted, cell.paper)], "ours": [*map(sorted, cell.ours)]}
            cells.append({**plain(cell), **groups, "matches": cell.matches})
        content = {"paper": self.paper, "cells": cells, "remarks": self.remarks, "signature": self.signature}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Every table with a mark per cell, the reasons for what differs, and the count."""
    lines.line(console, comparison.paper, "bold")
    for name in dict.fromkeys(cell.table for cell in comparison.cells):
        cells = comparison.of(name)
        count = f"{name}: {sum(cell.matches for cell in cells)} of {len(cells)} match"
        if isinstance(cells[0], NumberCell):
            table = _number_table(count, [c for c in cells if isinstance(c, NumberCell)])
        else:
            table = _group_table(count, [c for c in cells if isinstance(c, GroupCell)])
        console.print()
        lines.print_table(console, table)
        for cell in cells:
            if not cell.matches:
                why = f"differs: {cell.place}: {cell.why or 'not explained'}"
                lines.indented(console, why, "yellow")
            for other in cell.alternatives if isinstance(cell, NumberCell) else ():
                n = f" (n = {other.n})" if other.n else ""
                value = "undefined" if math.isnan(other.value) else f"{other.value:.2f}"
                lines.indented(console, f"{other.convention}{n}: {value}", "dim", indent=4)
    for remark in comparison.remarks:
        lines.indented(console, remark, indent=0)
    for cell in comparison.lost:
        lost = f"LOST: {cell.table}: {cell.place} matched before and no longer does"
        lines.line(console, lost, "bold red")
    lines.line(console, comparison.signature, "dim")


def _number_table(count: str, cells: Sequence[NumberCell]) -> Table:
    title = f"{count} within {TOLERANCE} (* p < 0.05)"
    table = lines.table(("",), ("set-up", "paper ", "ours ", ""), title=title)
    table.add_column("how")
    for cell in cells:
        table.add_row(
            Text(cell.row),
            cell.column.removeprefix("Setup "),
            f"{cell.paper:.2f}{'*' if cell.paper_star else ' '}",
            "– " if math.isnan(cell.ours) else f"{cell.ours:.3f}{'*' if cell.p < 0.05 else ' '}",
            "=" if cell.matches else "≠",
            Text(cell.convention),
        )
    return table


def _group_table(count: str, cells: Sequence[GroupCell]) -> Table:
    title = f"{count} (the order inside a group does not matter)"
    table = lines.table(("", "paper", "ours", "", "how"), (), title=title)
    for cell in cells:
        mark = "=" if cell.matches else "≠"
        table.add_row(*map(Text, (cell.row, cell.paper_label, cell.ours_label, mark, cell.convention)))
    return table
