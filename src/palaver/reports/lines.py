"""What reports in the terminal are made of: headings, lines, tables; a pipe gets lines whole."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.reports.names import shorten

_NAME = 22


def heading(console: Console, title: str, remark: str = "") -> None:
    console.print()
    console.print(Text.assemble((title, "bold underline"), (f"  {remark}" if remark else "", "dim")))


def line(console: Console, text: Text) -> None:
    """One line of its own; the terminal may break it, but a file or a pipe gets it whole."""
    console.print(text, soft_wrap=True)


def indented(console: Console, text: Text, indent: int = 2, first: Text | None = None) -> None:
    """`text` wrapped with a margin; `first` stands in the margin of its first line."""
    margin = Text(" " * indent)
    text.overflow = "fold"
    for k, part in enumerate(text.wrap(console, max(20, console.width - indent))):
        part.rstrip()
        line(console, (first if first and k == 0 else margin) + part)


def table(left: Iterable[str], right: Iterable[str]) -> Table:
    """Columns of words, which may wrap, and columns of numbers, which may not."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name in left:
        made.add_column(Text(name), overflow="fold")
    for name in right:
        made.add_column(Text(name), justify="right", no_wrap=True)
    return made


def short_name(name: str) -> Text:
    """A name from the data, no longer than a column should be."""
    return Text(shorten(name, _NAME))
