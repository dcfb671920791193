"""Results as tables: one line to print, a table in a notebook, a frame for polars or pandas."""

from __future__ import annotations

import dataclasses
import html
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from palaver.errors import UserError, in_python, nearest, require

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 20
"""Rows that a notebook shows; a frame has them all."""
DASH = "–"
"""What is undefined."""
MINUS = "−"
_LARGE = 1e7
"""From here on a number of fixed decimals is written with an exponent."""
_MOST_NAMES = 4
_MOST_LETTERS = 120


class Tabular(ABC):
    """A result that says its headline and its tables once; all else follows from these."""

    __slots__ = ()

    @abstractmethod
    def _headline(self) -> str:
        """What is printed, in a few words."""

    @abstractmethod
    def _tables(self) -> Mapping[str, Any]:
        """Name -> columns (name -> values) or a polars frame. The first is the one that people ask for."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({' '.join(self._headline().split())})"

    def __str__(self) -> str:
        return repr(self)

    def to_polars(self, table: str = "") -> pl.DataFrame:
        """The result as a polars frame; `table` names another table than the first."""
        import polars as pl

        tables = self._tables()
        name = table or next(iter(tables))
        if name not in tables:
            raise UserError(
                f"{type(self).__name__} has no table {name!r}{nearest(name, list(tables))}",
                f"known: {', '.join(tables)}",
            )
        columns = tables[name]
        return columns if isinstance(columns, pl.DataFrame) else pl.DataFrame(columns)

    def to_pandas(self, table: str = "") -> Any:
        """The same as a pandas frame. Needs the extra `pandas`."""
        for package in ("pandas", "pyarrow"):  # polars gives frames to pandas through Arrow
            require(package, "pandas")
        return self.to_polars(table).to_pandas()

    def _repr_html_(self) -> str:
        return self._html()

    def _html(self, table: str = "") -> str:
        """A table as notebooks show it: at most `MOST_ROWS` rows, and no column that is empty."""
        frame = self.to_polars(table)
        shown = frame.head(MOST_ROWS)
        names = [name for name in frame.columns if not _is_empty(shown[name])]
        caption = html.escape(f"{type(self).__name__}: {in_python(self._headline())}")
        lines = [f"<table><caption>{caption}</caption>"]
        lines.append(f"<thead><tr>{_cells('th', names)}</tr></thead><tbody>")
        for row in shown.select(names).iter_rows():
            lines.append(f"<tr>{_cells('td', row)}</tr>")
        lines.append("</tbody>")
        if frame.height > shown.height:
            more = f"… and {frame.height - shown.height:,} more rows"
            lines.append(f'<tfoot><tr><td colspan="{len(names)}">{more}</td></tr></tfoot>')
        return "\n".join([*lines, "</table>"])


def columns_of(
    kind: type[Any], records: Sequence[Any], *, leave_out: Collection[str] = ()
) -> dict[str, list[Any]]:
    """The fields of dataclass records as columns, which are there without records, too."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in leave_out]
    return {name: [getattr(record, name) for record in records] for name in names}


def few(names: Collection[str]) -> str:
    """`a, b, c`, or of many the first few and how many there are besides."""
    listed = list(names)
    if len(listed) <= _MOST_NAMES:
        return ", ".join(listed)
    return f"{', '.join(listed[: _MOST_NAMES - 1])} and {len(listed) - _MOST_NAMES + 1:,} more"


def show_value(value: object) -> str:
    """A value of a cell as people read it: numbers with three or four digits, nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return show_number(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, list | tuple):
        return ", ".join(map(show_value, value))
    return str(value)


def show_number(value: float) -> str:
    """`0.123`, `12.3`, `12,346`; an undefined one is a dash."""
    if math.isnan(value):
        return DASH
    size = abs(value)
    if math.isinf(value) or 0 < size < 0.0005:
        return _with_minus(f"{value:.2g}")
    if size >= 1000:
        return _with_minus(f"{value:,.0f}")
    return show_fixed(value, 3 if size < 10 else 2 if size < 100 else 1)


def show_fixed(value: float, digits: int = 2) -> str:
    """A number with a fixed count of decimals and a real minus sign; a dash when it is not finite.

    >>> show_fixed(-0.004), show_fixed(1234.5, 1), show_fixed(float("nan"))
    ('0.00', '1,234.5', '–')
    """
    if not math.isfinite(value):
        return DASH
    if abs(value) >= _LARGE:
        return f"{value:.{max(digits, 2)}e}".replace("-", MINUS)
    text = f"{value:,.{digits}f}"
    return _with_minus(text) if text.strip("-0.,") else text.lstrip("-")  # what rounds to 0 has no sign


def _with_minus(text: str) -> str:
    return MINUS + text[1:] if text.startswith("-") else text


def show_signed(value: float, digits: int = 2) -> str:
    """The same with a plus sign for what is above nothing."""
    text = show_fixed(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def show_interval(low: float, high: float, digits: int = 2) -> str:
    """`[0.12, 0.34]`."""
    return f"[{show_fixed(low, digits)}, {show_fixed(high, digits)}]"


def _is_empty(column: pl.Series) -> bool:
    if not len(column):
        return False
    return all(value in (None, "", []) for value in column.to_list())


def _cells(tag: str, values: Sequence[object]) -> str:
    cells = []
    for value in values:
        text = show_value(value)
        if len(text) > _MOST_LETTERS:
            text = text[: _MOST_LETTERS - 1] + "…"
        cells.append(f"<{tag}>{html.escape(text)}</{tag}>")
    return "".join(cells)
