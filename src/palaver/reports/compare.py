"""What the comparator found, shown in the terminal (its pages: `compare_pages`)."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from palaver.comparator.cleaning import Cleaning
from palaver.comparator.file_scores import Summary
from palaver.files import write_atomically
from palaver.reports import lines, names, numbers, page
from palaver.schema import RunRecord
from palaver.studies.results import plain

_SHOWN = 12
STYLES = {"keep": "", "suspicious": "yellow", "drop": "red"}


def print_scores(summary: Summary, console: Console) -> None:
    """How many and how fast, and the worst dialogues with the turn that costs most."""
    lines.heading(console, "Worst dialogues", "a score of 0 is average; differences of scores are log-odds")
    table = lines.table(("dialogue", "the turn that costs most"), ("score", "95%"))
    for row in summary.lowest:
        worst = row.get("worst_turn")
        said = f"{worst['turn']}: {names.shorten(names.clean(worst['text']), 60)}" if worst else "–"
        between = numbers.interval(row["low"], row["high"]) if row["low"] is not None else "–"
        table.add_row(lines.short_name(row["id"]), Text(said), numbers.number(row["score"]), between)
    console.print(table)
    lines.left_out(console, list(summary.dropped.items()))
    rate = f"{summary.per_second:,.0f}" if summary.per_second >= 10 else f"{summary.per_second:.1f}"
    speed = f"{numbers.some(summary.n, 'dialogue')} in {numbers.seconds(summary.seconds)}: {rate} a second"
    spread = f"scores {numbers.number(summary.mean)} ± {numbers.number(summary.sd)}"
    console.print()
    lines.line(console, f"{speed}; {spread}", "dim")


def print_cleaned(cleaning: Cleaning, console: Console) -> None:
    """Verdicts, reasons, and the raters who are trusted least."""
    lines.heading(console, "Ratings", f"{len(cleaning.ratings):,} by {len(cleaning.raters):,} raters")
    table = lines.table(("verdict",), ("ratings", "share", "raters"))
    for verdict, n in cleaning.counts.items():
        raters = sum(rater.verdict == verdict for rater in cleaning.raters)
        cells = (numbers.count(n), numbers.percent(n / len(cleaning.ratings)), numbers.count(raters))
        table.add_row(Text(verdict, style=STYLES[verdict]), *cells)
    console.print(table)
    if cleaning.reasons:
        lines.heading(console, "Reasons", "a rating may have several")
        for reason, n in cleaning.reasons.items():
            lines.indented(console, f"{numbers.count(n):>7}  {names.clean(reason)}")
    doubted = [rater for rater in cleaning.raters if rater.verdict != "keep"][:_SHOWN]
    if doubted:
        scale = "trust 1: as the common rater, 0: rates past the dialogues"
        lines.heading(console, "Least trusted raters", scale)
        table = lines.table(("rater", "verdict", "why"), ("ratings", "trust"))
        for rater in doubted:
            table.add_row(
                lines.short_name(rater.rater),
                Text(rater.verdict, style=STYLES[rater.verdict]),
                Text("; ".join(rater.reasons)),
                numbers.count(rater.n),
                numbers.number(rater.trust),
            )
        console.print(table)
    share = numbers.percent(cleaning.accuracy)
    basis = "judged by a model that saw none of the rater’s own ratings: it agrees with"
    console.print()
    lines.line(console, f"{basis} {share} of comparisons within a sitting", "dim")
    for note in cleaning.notes:
        lines.line(console, names.clean(note), "yellow")


def write_cleaned(cleaning: Cleaning, folder: Path, run: RunRecord) -> Path:
    """`ratings.jsonl` (every rating), `raters.jsonl` and `report.html` with the picture."""
    from palaver.reports.compare_pages import clean_page

    for name, rows in (("ratings", cleaning.ratings), ("raters", cleaning.raters)):
        with write_atomically(folder / f"{name}.jsonl") as file:
            for row in rows:
                file.write(json.dumps(plain(row), ensure_ascii=False) + "\n")
    return page.write_page(clean_page(cleaning, run), folder / "report.html")
