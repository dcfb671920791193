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
    for name, text in _without_score(result).items():
        lines.line(console, f"{name}: responses without a score: {text}", "yellow")
    lines.notes(console, [*result.notes, *_reasons(result)])
    lines.heading(console, "Signatures")
    for signature in dict.fromkeys(row.signature for row in result.scores):
        lines.indented(console, clean(signature), "dim")


def _without_score(result: FileScores) -> dict[str, str]:
    """Of each metric that left responses out: how many of which system."""
    counts: dict[str, list[str]] = {}
    for row in result.scores:
        if row.n_undefined:
            counts.setdefault(row.name, []).append(f"{row.n_undefined:,} of {clean(row.system)}")
    return {name: ", ".join(of_systems) for name, of_systems in counts.items()}


def _reasons(result: FileScores) -> list[str]:
    """Why figures or intervals are missing or without width; the systems are named where it is not all."""
    of_metrics: dict[str, dict[str, None]] = {}
    for metric in dict.fromkeys(row.name for row in result.scores):
        rows = [row for row in result.scores if row.name == metric]
        for reason in dict.fromkeys(row.reason for row in rows if row.reason):
            systems = [clean(row.system) for row in rows if row.reason == reason]
            named = f"{metric} of {' and '.join(systems)}" if len(systems) < len(rows) else metric
            of_metrics.setdefault(reason, {})[named] = None
    return [f"{', '.join(names)}: {reason}" for reason, names in of_metrics.items()]
