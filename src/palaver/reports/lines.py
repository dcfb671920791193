"""What results in the terminal are made of: headings, lines, tables.

A terminal gets tables that fit it: cells fold, and where not even that is possible each row becomes a few
lines. A pipe or a file gets everything whole: one line a row, plain columns, nothing wrapped or cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from palaver.reports.names import clean, shorten
from palaver.reports.numbers import count
from palaver.schema import RunRecord

_NARROWEST = 10
"""A column of words is not folded into fewer characters than this."""
_GAP = "  "


def heading(console: Console, title: str, remark: str = "") -> None:
    console.print()
    text = Text.assemble((title, "bold underline"), (f"  {remark}" if remark else "", "dim"))
    indented(console, text, indent=0)


def line(console: Console, text: str | Text, style: str = "") -> None:
    """One line of its own; the terminal may break it, but a file or a pipe gets it whole."""
    console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def indented(
    console: Console, text: str | Text, style: str = "", *, indent: int = 2, first: Text | None = None
) -> None:
    """`text` wrapped with a margin; `first` stands in the margin of its first line."""
    whole = Text(text, style=style) if isinstance(text, str) else text
    margin = Text(" " * indent)
    if not console.is_terminal:
        line(console, (first or margin) + whole)
        return
    whole.overflow = "fold"
    for k, part in enumerate(whole.wrap(console, max(20, console.width - indent))):
        part.rstrip()
        line(console, (first if first and k == 0 else margin) + part)


def title(console: Console, name: str, facts: Iterable[str]) -> None:
    """The title of a report, and below it what it is about in a few counts."""
    line(console, clean(name), "bold")
    line(console, " · ".join(facts), "dim")


def left_out(console: Console, reasons: Sequence[tuple[str, int]], remark: str = "") -> None:
    """What was not used, with the reason for each; nothing where all was used."""
    if reasons:
        heading(console, "Left out", remark)
    for reason, n in reasons:
        indented(console, f"{count(n)}  {clean(reason)}", "yellow")


def notes(console: Console, texts: Sequence[str]) -> None:
    """Notes under a heading, each once; nothing where there are none."""
    if texts:
        heading(console, "Notes")
    for text in dict.fromkeys(texts):
        indented(console, f"- {clean(text)}")


def run_record(console: Console, run: RunRecord) -> None:
    """The last line: what the figures were made from."""
    console.print()
    line(console, clean(str(run)), "dim")


def table(left: Iterable[str], right: Iterable[str], *, title: str = "", rule: bool = True) -> Table:
    """Columns of words, which may fold, and columns of numbers, which may not; `print_table` prints it."""
    empty = Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD if rule else None,
        padding=(0, 1),
        pad_edge=False,
        show_edge=False,
        header_style="dim",
    )
    for name in left:
        empty.add_column(Text(name), overflow="fold")
    for name in right:
        empty.add_column(Text(name), justify="right", no_wrap=True)
    return empty


def print_table(console: Console, table: Table, *, indent: int = 0) -> None:
    """Print a table so that nothing of it is lost, whatever it is printed on."""
    if console.is_terminal and _fits(table, console.width - indent):
        console.print(Padding.indent(table, indent) if indent else table)
        return
    heads = [_on_one_line(column.header) for column in table.columns]
    columns = [[_on_one_line(cell) for cell in column.cells] for column in table.columns]
    if table.title:
        line(console, _on_one_line(table.title), "bold")
    rows = list(zip(*columns, strict=True))
    if console.is_terminal:
        for row in rows:
            _stack(console, heads, row, indent)
        return
    widths = [max(map(cell_len, (head, *cells))) for head, cells in zip(heads, columns, strict=True)]
    numeric = [column.justify == "right" for column in table.columns]
    if any(heads):
        rows = [tuple(heads), *rows]
    for row in rows:
        padded = [_pad(*cell) for cell in zip(row, widths, numeric, strict=True)]
        line(console, (" " * indent + _GAP.join(padded)).rstrip())


def _plain(cell: RenderableType) -> str:
    """The text of a cell; a bare string may have markup, as rich reads it."""
    text = cell if isinstance(cell, Text) else Text.from_markup(str(cell))
    return text.plain


def _on_one_line(cell: RenderableType) -> str:
    return " ".join(_plain(cell).split("\n"))


def _pad(text: str, width: int, numeric: bool) -> str:
    return " " * (width - cell_len(text)) + text if numeric else set_cell_size(text, width)


def _fits(table: Table, width: int) -> bool:
    """Whether the table can be printed in `width` when its columns of words fold."""
    needed = 3 * (len(table.columns) - 1)
    for column in table.columns:
        parts = [part for cell in (column.header, *column.cells) for part in _plain(cell).split("\n")]
        widest = max(map(cell_len, parts))
        needed += widest if column.no_wrap else min(widest, _NARROWEST)
    return needed <= width


def _stack(console: Console, heads: Sequence[str], row: Sequence[str], indent: int) -> None:
    """A row as a few lines: its first cell, then the others with their names."""
    indented(console, row[0], "bold", indent=indent)
    named = [
        f"{head} {cell}" if head else cell for head, cell in zip(heads[1:], row[1:], strict=True) if cell
    ]
    if named:
        indented(console, " · ".join(named), indent=indent + 2)


def name_cell(name: str) -> Text:
    """A name from the data as a cell, whole."""
    return Text(clean(name))


def shorten_on_terminal(console: Console, text: str, width: int) -> str:
    """Long text from the data in at most `width` characters on a terminal; a pipe gets it whole."""
    return shorten(text, width) if console.is_terminal else clean(text)
