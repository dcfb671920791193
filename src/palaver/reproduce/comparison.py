"""Published cells beside ours, for any paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

TOLERANCE = 0.02
Groups = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCell:
    """One published number and ours."""

    table: str
    row: str
    column: str
    paper: float
    paper_star: bool
    """Whether the paper marks it as significant (p < 0.05)."""
    ours: float
    p: float
    convention: str
    """How ours was computed."""
    known: bool
    """Whether it is known to match; if it stops doing so, something broke."""
    why: str = ""
    """Why it differs, where it does."""

    @property
    def matches(self) -> bool:
        return not math.isnan(self.ours) and abs(self.ours - self.paper) <= TOLERANCE + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCell:
    """One published ranking and ours; the order inside a group does not matter."""

    table: str
    row: str
    paper: Groups
    paper_label: str
    ours: Groups
    ours_label: str
    convention: str
    known: bool
    why: str = ""

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
        return tuple(cell for cell in self.cells if cell.known and not cell.matches)

    def of(self, table: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.table == table)


def print_comparison(found: Comparison, console: Console) -> None:
    """Every table with a mark per cell, the reasons for what differs, and the count."""
    console.print(found.paper, style="bold", highlight=False, markup=False)
    for name in dict.fromkeys(cell.table for cell in found.cells):
        cells = found.of(name)
        if isinstance(cells[0], NumberCell):
            _print_numbers(name, [c for c in cells if isinstance(c, NumberCell)], console)
        else:
            _print_groups(name, [c for c in cells if isinstance(c, GroupCell)], console)
        for cell in cells:
            if not cell.matches:
                place = f"{cell.row}, {cell.column}" if isinstance(cell, NumberCell) else cell.row
                why = cell.why or "not explained"
                console.print(f"  differs: {place}: {why}", style="yellow", highlight=False, markup=False)
    for remark in found.remarks:
        console.print(remark, highlight=False, markup=False)
    for cell in found.lost:
        place = f"{cell.row}, {cell.column}" if isinstance(cell, NumberCell) else cell.row
        text = f"LOST: {cell.table}: {place} matched before and no longer does"
        console.print(text, style="bold red", markup=False)
    console.print(found.signature, style="dim", highlight=False, markup=False)


def _count(cells: Sequence[Cell]) -> str:
    return f"{sum(cell.matches for cell in cells)} of {len(cells)} match"


def _print_numbers(name: str, cells: Sequence[NumberCell], console: Console) -> None:
    table = _table(f"{name}: {_count(cells)} within {TOLERANCE} (* p < 0.05)")
    table.add_column("", no_wrap=True)
    table.add_column("set-up", no_wrap=True)
    for heading in ("paper ", "ours "):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("", "how"):
        table.add_column(heading, no_wrap=True)
    for cell in cells:
        table.add_row(
            escape(cell.row),
            cell.column.removeprefix("Setup "),
            f"{cell.paper:.2f}{'*' if cell.paper_star else ' '}",
            "– " if math.isnan(cell.ours) else f"{cell.ours:.3f}{'*' if cell.p < 0.05 else ' '}",
            "=" if cell.matches else "≠",
            cell.convention,
        )
    console.print(table)


def _print_groups(name: str, cells: Sequence[GroupCell], console: Console) -> None:
    table = _table(f"{name}: {_count(cells)} (the order inside a group does not matter)")
    for heading in ("", "paper", "ours", "", "how"):
        table.add_column(heading)
    for cell in cells:
        mark = "=" if cell.matches else "≠"
        table.add_row(*map(escape, (cell.row, cell.paper_label, cell.ours_label, mark, cell.convention)))
    console.print(table)


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
