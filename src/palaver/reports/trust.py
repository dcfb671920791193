"""What a `palaver trust` verb found, in the terminal: plain words first, then the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from palaver.reports import lines
from palaver.reports.names import clean
from palaver.reports.numbers import p_value
from palaver.studies.trust import TrustReport
from palaver.tabular import show_value

_P_VALUES = ("p", "adjusted_p")
_HIDDEN = ("notes", "confidence", "reason", "is_share")


def print_trust(report: TrustReport, console: Console) -> None:
    """The answer in words, every row, and what to know about it."""
    lines.heading(console, f"trust {report.method}")
    for sentence in report.words:
        lines.indented(console, clean(sentence))
    if report.rows:
        console.print()
        lines.print_table(console, _table(report))
    for row in report.rows:
        if getattr(row, "reason", ""):
            lines.indented(console, clean(f"{_name(row)}: {row.reason}"), "yellow")
    lines.notes(console, report.notes)
    lines.line(console, clean(str(report.run)), "dim")


def shown_columns(report: TrustReport) -> tuple[list[str], list[str]]:
    """The columns that say anything: those of words, then those of figures."""
    fields = [f for f in dataclasses.fields(report.row_type) if f.name not in _HIDDEN]
    telling = [f for f in fields if _tells(report, f.name)]
    words = [f.name for f in telling if f.type in ("str", str)]
    return words, [f.name for f in telling if f.name not in words]


def shown_cells(row: Any, columns: Sequence[str]) -> list[str]:
    """The values of a row as people read them."""
    values = {name: getattr(row, name) for name in columns}
    return [p_value(value) if name in _P_VALUES else show_value(value) for name, value in values.items()]


def _table(report: TrustReport) -> Any:
    words, figures = shown_columns(report)
    table = lines.table(*([name.replace("_", " ") for name in names] for names in (words, figures)))
    for row in report.rows:
        cells = shown_cells(row, (*words, *figures))
        table.add_row(*(lines.name_cell(cell) if cell else "" for cell in cells))
    return table


def _tells(report: TrustReport, name: str) -> bool:
    """Whether a column says anything."""
    return any(show_value(getattr(row, name)) not in ("", "–") for row in report.rows)


def _name(row: Any) -> str:
    parts = [getattr(row, name, "") for name in ("criterion", "judge", "system", "against")]
    return " ".join(part for part in parts if part)
