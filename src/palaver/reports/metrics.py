"""Metrics of systems in the terminal: figures with intervals, then pairs of systems."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.metrics.differences import ALPHA, MOST_EXACT
from palaver.metrics.file_scores import FileScores
from palaver.reports import lines, numbers
from palaver.reports.names import clean
from palaver.tabular import few

MOST_PAIRS = 60
"""Pairs that a terminal lists one by one."""


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
    _print_pairs(result, console)
    for reason, count in result.left_out.items():
        lines.line(console, f"left out {count:,}: {clean(reason)}", "yellow")
    for name, text in _without_score(result).items():
        lines.line(console, f"{name}: responses without a score: {text}", "yellow")
    lines.notes(console, [*result.notes, *_reasons(result), *_reasons_of_pairs(result)])
    lines.heading(console, "Signatures")
    for signature in dict.fromkeys(row.signature for row in result.scores):
        lines.indented(console, clean(signature), "dim")


def _print_pairs(result: FileScores, console: Console) -> None:
    """Every pair; on a terminal many of them as one line a metric."""
    if not result.differences:
        return
    exact = any(pair.test == "exact" for pair in result.differences)
    which = f"paired bootstrap, exact up to {MOST_EXACT} items that differ" if exact else "paired bootstrap"
    lines.heading(console, "Pairs of systems", f"{which}; p corrected by Holm within a metric")
    if console.is_terminal and len(result.differences) > MOST_PAIRS:
        _print_clear_pairs(result, console)
        return
    table = lines.table(("metric", "system", "minus"), ("difference", "interval", "p", "p (Holm)", "items"))
    for pair in result.differences:
        table.add_row(
            *(Text(clean(text)) for text in (pair.metric, pair.system, pair.other)),
            numbers.number(pair.difference, 3),
            Text(numbers.interval(pair.low, pair.high, 3)),
            numbers.p_value(pair.p),
            numbers.p_value(pair.p_holm),
            numbers.count(pair.n),
        )
    lines.print_table(console, table)


def _print_clear_pairs(result: FileScores, console: Console) -> None:
    """Of each metric: how many pairs are apart, the best system, and those that may be as good."""
    table = lines.table(("metric", "clearly apart", "best", "not clearly behind it"), ())
    better = {row.name: row.better for row in result.scores}
    for metric in dict.fromkeys(pair.metric for pair in result.differences):
        pairs = [pair for pair in result.differences if pair.metric == metric]
        apart = {frozenset((pair.system, pair.other)) for pair in pairs if pair.p_holm < ALPHA}
        best, beside = numbers.DASH, numbers.DASH
        values = {row.system: row.value for row in result.scores if row.name == metric and row.n}
        if better[metric] != "neither" and values:
            best = (max if better[metric] == "higher" else min)(values, key=values.__getitem__)
            level = [name for name in values if name != best and {name, best} not in apart]
            listed = ", ".join(map(clean, level)) or numbers.DASH
            beside = "all others" if len(level) == len(values) - 1 > 1 else listed
        table.add_row(metric, f"{len(apart)} of {len(pairs)}", Text(clean(best)), Text(beside))
    lines.print_table(console, table)
    n_pairs = numbers.some(len(result.differences), "pair")
    lines.indented(
        console,
        f"clearly apart: p (Holm) below {ALPHA:g}; palaver metrics --json, or a pipe, has all {n_pairs}",
        "dim",
    )


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


def _reasons_of_pairs(result: FileScores) -> list[str]:
    """The same of differences and their tests; the pairs are named where it is not all."""
    of_metrics: dict[str, list[str]] = {}
    for metric in dict.fromkeys(pair.metric for pair in result.differences):
        pairs = [pair for pair in result.differences if pair.metric == metric]
        for reason in dict.fromkeys(pair.reason for pair in pairs if pair.reason):
            names = [f"{clean(p.system)} minus {clean(p.other)}" for p in pairs if p.reason == reason]
            named = metric if len(names) == len(pairs) else f"{metric} ({few(names)})"
            of_metrics.setdefault(reason, []).append(named)
    return [f"differences by {', '.join(names)}: {reason}" for reason, names in of_metrics.items()]
