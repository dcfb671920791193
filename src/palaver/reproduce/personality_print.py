"""The tables of the reproduction in the terminal: the paper's numbers, ours, and what ours rest on."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from palaver.personality.verdict import VALIDITY
from palaver.reproduce.personality import PROMPT, Published, Reproduction


def print_reproduction(found: Reproduction, console: Console) -> None:
    """Every table, then the verdicts in words."""
    console.print(
        "Automatic Evaluation of Neural Personality-based Chatbots (Xing & Fernández 2018)\n"
        "± σ over the characters",
        style="bold",
        highlight=False,
    )
    for name in dict.fromkeys(row.table for row in found.rows):
        table = Table(
            title=name,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            show_edge=False,
        )
        table.add_column("", no_wrap=True)
        for who in ("paper\n", "ours\n"):
            for heading in ("prec.", "recall", "F1"):
                table.add_column(f"{who}{heading}", justify="right", no_wrap=True)
        rows = [row for row in found.rows if row.table == name]
        for row in rows:
            table.add_row(escape(row.label), *_cells(row.paper), *_cells(row.ours))
        console.print(table)
        for label, note in {row.label.strip(): row.note for row in rows if row.note}.items():
            console.print(f"  {label}: {note}", style="dim", highlight=False, markup=False)
        console.print()
    if found.examples:
        table = Table(
            title=f"Table 3: responses to “{PROMPT}”",
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
        )
        for heading in ("", "paper", "ours"):
            table.add_column(heading)
        for example in found.examples:
            table.add_row(*map(escape, example))
        console.print(table)
    for remark in (*found.remarks, VALIDITY):
        console.print(f"- {remark}", highlight=False, markup=False)
    for text in found.missed:
        console.print(f"MISSED: {text}", style="bold red", markup=False)
    for title, result in found.results.items():
        console.print(f"{title}: {result.run}", style="dim", highlight=False, markup=False)


def _cells(numbers: Published | None) -> list[str]:
    if numbers is None:
        return ["", "", ""]
    precision, p_sigma, recall, r_sigma, f1 = numbers
    pairs = ((precision, p_sigma), (recall, r_sigma))
    shown = [
        "" if v < 0 else f"{v:.2f}" + ("" if s is None else f"±{s:.2f}".replace("0.", ".")) for v, s in pairs
    ]
    return [*shown, f"{f1:.2f}"]
