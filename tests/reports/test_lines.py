"""Tables on terminals of any width and in pipes."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from palaver.reports import lines

LONG = "a-checkpoint-with-a-name-of-its-own-that-goes-on-and-on-v17"


def grid() -> Table:
    table = lines.table(("system", "why"), ("mean", "95% interval"), title="Means")
    table.add_row(lines.name_cell("[bold]x"), Text("first"), "4.20", Text("[4.0, 4.4]"))
    table.add_row(lines.name_cell(LONG), Text("two\nlines 系统"), "3.1", Text("–"))
    return table


def printed(width: int, *, terminal: bool, indent: int = 0) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, color_system=None)
    lines.print_table(console, grid(), indent=indent)
    return file.getvalue()


@pytest.mark.parametrize("width", [10, 80, 300])
def test_a_pipe_gets_one_line_a_row_in_plain_columns(width: int) -> None:
    title, head, first, second = printed(width, terminal=False).splitlines()
    assert title == "Means"
    assert head.split() == ["system", "why", "mean", "95%", "interval"]
    assert first.split() == ["[bold]x", "first", "4.20", "[4.0,", "4.4]"]
    assert second.startswith(f"{LONG}  two lines 系统")
    assert len({cell_len(line) for line in (head, first, second)}) == 1  # numbers end together


def test_an_indented_table() -> None:
    plain = printed(80, terminal=False).splitlines()
    assert printed(80, terminal=False, indent=2).splitlines()[1:] == [f"  {line}" for line in plain[1:]]
    assert all(line.startswith("  ") for line in printed(80, terminal=True, indent=2).splitlines())


@pytest.mark.parametrize("width", [120, 80, 60, 40, 30])
def test_a_terminal_folds_and_loses_nothing(width: int) -> None:
    text = printed(width, terminal=True)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text
    together = "".join(text.split())
    for part in ("[bold]x", "4.20", "3.1", "4.4]"):
        assert part in together
    if width <= 40:  # each row is a few lines
        assert LONG in together
        assert "mean 4.20" in text


def test_long_text_is_cut_on_a_terminal_only() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True)
    assert "…" in lines.shorten_on_terminal(terminal, LONG, 20)
    assert lines.shorten_on_terminal(Console(file=io.StringIO()), LONG, 20) == LONG
