"""What judges gave, and how they rank systems, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.judges.panel import JudgeResult
from palaver.reports import lines, numbers, terminal
from palaver.reports.names import clean
from palaver.studies.results import Analysis


def print_judgements(result: JudgeResult, console: Console) -> None:
    """Each system's mean by judge and criterion; then what was left out and why."""
    better = {c.name: c.better for judge in result.judges for c in judge.criteria}
    table = lines.table(("judge", "criterion", "system", "better"), ("mean", "ratings"))
    for row in result.summary().iter_rows(named=True):
        table.add_row(
            *(Text(clean(row[name])) for name in ("rater", "criterion", "system")),
            Text(better.get(row["criterion"], "")),
            numbers.number(row["mean"], 3),
            numbers.count(row["n"]),
        )
    lines.print_table(console, table)
    for reason, count in result.left_out.items():
        lines.line(console, f"left out {count:,}: {clean(reason)}", "yellow")
    for note in result.notes:
        lines.line(console, clean(note), "yellow")


def print_ranking(analysis: Analysis, console: Console) -> None:
    """Best system first, with intervals, and the places that the ratings can tell apart."""
    terminal.print_ranking(analysis, console)
    lines.notes(console, [*analysis.reading.notes, *analysis.notes])
    console.print()
    lines.line(console, clean(str(analysis.run)), "dim")
