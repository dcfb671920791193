"""Metrics of systems in the terminal: figures with intervals, then pairs of systems."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.metrics.file_scores import FileScores
from palaver.reports import lines, numbers
from palaver.reports.names import clean


def print_scores(result: FileScores, console: Console) -> None:
    """Each metric of each system, each pair, what was left out, and the signatures."""
    table = lines.table(("metric", "system", "better"), ("value", "interval", "responses"))
    for row in result.scores:
        table.add_row(
            *(Text(clean(text)) for text in (row.name, row.system, row.better)),
            numbers.number(row.value, 3),
            Text(numbers.interval(row.low, row.high, 3)),
            numbers.count(row.n),
        )
    lines.print_table(console, table)
    if result.differences:
        lines.heading(console, "Pairs of systems", "paired bootstrap; p corrected by Holm within a metric")
        pairs = lines.table(
            ("metric", "system", "minus"), ("difference", "interval", "p", "p (Holm)", "items")
        )
        for pair in result.differences:
            pairs.add_row(
                *(Text(clean(text)) for text in (pair.metric, pair.system, pair.other)),
                numbers.number(pair.difference, 3),
                Text(numbers.interval(pair.low, pair.high, 3)),
                numbers.p_value(pair.p),
                numbers.p_value(pair.p_holm),
                numbers.count(pair.n),
            )
        lines.print_table(console, pairs)
    for reason, count in result.left_out.items():
        lines.line(console, f"left out {count:,}: {clean(reason)}", "yellow")
    undefined = {(row.name, row.n_undefined) for row in result.scores if row.n_undefined}
    for name, count in sorted(undefined):
        lines.line(console, f"{name}: {count:,} of a system's responses have no score", "yellow")
    reasons: dict[str, list[str]] = {}
    for row in result.scores:
        if row.reason and row.name not in reasons.setdefault(row.reason, []):
            reasons[row.reason].append(row.name)
    notes = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    lines.notes(console, [*result.notes, *notes])
    lines.heading(console, "Signatures")
    for signature in dict.fromkeys(row.signature for row in result.scores):
        lines.indented(console, clean(signature), "dim")
