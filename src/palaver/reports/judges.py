"""What judges gave, and how they rank systems, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from palaver.judges.llm import LlmRatings
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


def print_tally(results: Sequence[LlmRatings], console: Console) -> None:
    """What became of the questions that language models were asked, and what it cost."""
    heads = (
        "asked",
        "answered",
        "unparsed",
        "refused",
        "failed",
        "from cache",
        "checks met",
        "tokens",
        "cost",
    )
    table = lines.table(("judge",), heads)
    for result in results:
        tally = result.tally
        table.add_row(
            Text(clean(result.judge)),
            *(numbers.count(n) for n in (tally.asked, tally.answered, tally.unparsed, tally.refused)),
            numbers.count(tally.failed),
            numbers.count(tally.from_cache),
            f"{tally.checks_met} of {tally.checks}" if tally.checks else "",
            numbers.count(tally.tokens_in + tally.tokens_out),
            numbers.number(tally.cost, 4) if tally.cost else "",
        )
    lines.print_table(console, table)
    lines.notes(console, [f"{result.judge}: {note}" for result in results for note in result.notes])


def print_ranking(analysis: Analysis, console: Console) -> None:
    """Best system first, with intervals, and the places that the ratings can tell apart."""
    terminal.print_ranking(analysis, console)
    lines.notes(console, [*analysis.reading.notes, *analysis.notes])
    lines.run_record(console, analysis.run)
