"""What reports in the terminal are made of: headings, lines, tables; a pipe gets lines whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.reports.names import clean, shorten
from palaver.reports.numbers import count

_NAME = 22


def heading(console: Console, title: str, remark: str = "") -> None:
    console.print()
    console.print(Text.assemble((title, "bold underline"), (f"  {remark}" if remark else "", "dim")))


def line(console: Console, text: str | Text, style: str = "") -> None:
    """One line of its own; the terminal may break it, but a file or a pipe gets it whole."""
    console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def indented(
    console: Console, text: str | Text, style: str = "", *, indent: int = 2, first: Text | None = None
) -> None:
    """`text` wrapped with a margin; `first` stands in the margin of its first line."""
    whole = Text(text, style=style) if isinstance(text, str) else text
    whole.overflow = "fold"
    margin = Text(" " * indent)
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
    """Notes under a heading; nothing where there are none."""
    if texts:
        heading(console, "Notes")
    for text in texts:
        indented(console, f"- {clean(text)}")


def table(left: Iterable[str], right: Iterable[str]) -> Table:
    """Columns of words, which may wrap, and columns of numbers, which may not."""
    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name in left:
        empty.add_column(Text(name), overflow="fold")
    for name in right:
        empty.add_column(Text(name), justify="right", no_wrap=True)
    return empty


def short_name(name: str, width: int = _NAME) -> Text:
    """A name from the data, no longer than a column should be."""
    return Text(shorten(name, width))
