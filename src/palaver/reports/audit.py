"""What an audit found: accuracy by kind of pairs, in the terminal and as a page."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import shorten

from rich.console import Console
from rich.text import Text

from palaver.judges.audit import BASELINES, NO_OPINION, AuditPair, AuditResult, KindResult, read_audit_pairs
from palaver.reports import lines, numbers
from palaver.reports.compare import Grid, Section, compare_page
from palaver.reports.names import clean

_HEADS = ("right", "95%", "pairs", *BASELINES)


def print_audit(result: AuditResult, console: Console) -> None:
    """Accuracy by kind, worst first, with what trivial rules reach."""
    lines.heading(console, f"Audit of {clean(result.judge)}", f"{result.part} part of the pairs")
    table = lines.table(("kind", "the dialogues differ"), _HEADS)
    for row in _rows(result):
        table.add_row(Text(row.kind), Text(row.differ), *_cells(row))
    lines.print_table(console, table)
    lines.notes(console, result.notes)
    lines.run_record(console, result.run)


def audit_page(result: AuditResult) -> str:
    """The same as a page; for the open part with every pair that it got wrong."""
    rows = [(row.kind, row.differ, *_cells(row)) for row in _rows(result)]
    grid = Grid(f"The {result.part} part of the pairs.", ["Kind", "The dialogues differ"], _HEADS, rows)
    sections = [Section("answer", "The answer", tables=[grid])]
    texts = {pair.id: _difference(pair) for pair in read_audit_pairs()}
    wrong = [
        (pair.id, pair.better, numbers.number(pair.probability), texts[pair.id])
        for pair in result.pairs
        if pair.right < 1
    ]
    if wrong:
        text = (
            "The probability is that a is better. The whole dialogues are in the package: "
            "judges/audit_pairs.jsonl."
        )
        heads = ["Pair", "Better"]
        grid = Grid("Pairs that it got wrong.", heads, ["Probability of a"], wrong, "Where they differ first")
        sections.append(Section("wrong", "Where it is wrong", text, tables=[grid]))
    overall = result.overall
    lead = (
        f"{result.judge} is right about {numbers.percent(overall.accuracy)} of {overall.n} pairs "
        f"(95%: {numbers.percent(overall.low)} to {numbers.percent(overall.high)}); "
        f"without any opinion it would be right about {numbers.percent(overall.baselines[NO_OPINION])}."
    )
    facts = (f"judge {result.judge}", f"{overall.n} pairs", f"{result.part} part")
    return compare_page(
        "What does the judge notice?", facts, lead, sections, result.notes, ["audit"], result.run
    )


def _difference(pair: AuditPair) -> str:
    """The first turn that the two dialogues do not share."""
    for a, b in zip_longest(pair.a.turns, pair.b.turns):
        if a != b:
            said_a, said_b = (shorten(turn.text if turn else "", 160, placeholder=" …") for turn in (a, b))
            return f"a: {said_a or 'nothing'} — b: {said_b or 'nothing'}"
    return ""


def _rows(result: AuditResult) -> list[KindResult]:
    return [*sorted(result.kinds, key=lambda row: row.accuracy), result.overall]


def _cells(row: KindResult) -> tuple[str, ...]:
    return (
        numbers.number(row.accuracy),
        numbers.interval(row.low, row.high),
        numbers.count(row.n),
        *(numbers.number(row.baselines[name]) for name in BASELINES),
    )
