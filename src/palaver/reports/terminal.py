"""An analysis in the terminal: the answer first, then how far to trust it.

Everything is printed as `Text`, never as markup, so a name like `[bold]x` shows as it is. Rankings wrap
and are never cut; in a pipe or a file the same lines come without colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from palaver.reports import lines, numbers, wording
from palaver.reports.names import clean, shorten
from palaver.studies.results import AgreementRow, Analysis, RaterRow

MOST_RATERS = 15
WORST_RATERS = 10
_NAME = 22
_LABEL = 29
"""Columns for `  bootstrap over items, 95%  ` in front of what the method says."""


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Print everything a reader needs before opening the report."""
    _print_head(analysis, console)
    _print_answer(analysis, console)
    _print_agreement(analysis, console)
    _print_correlation(analysis, console)
    _print_tests(analysis, console)
    _print_raters(analysis, console)
    _print_left_out(analysis, console)
    lines.line(console, clean(str(analysis.run)), "dim")


def _print_head(analysis: Analysis, console: Console) -> None:
    facts = (
        numbers.some(len(wording.systems_of(analysis)), "system"),
        numbers.some(len(analysis.criteria), "criterion", "criteria"),
        numbers.some(len(analysis.raters), "rater"),
        numbers.some(analysis.reading.n_ratings, "rating"),
    )
    lines.title(console, analysis.title, facts)


def _print_answer(analysis: Analysis, console: Console) -> None:
    lines.heading(console, "Ranking", "best first; a group ends where all above beat all below")
    criteria = wording.criteria_of(analysis)
    if not criteria:
        lines.indented(console, "There are no ratings, so there is no answer.")
    summaries = {summary.criterion: summary for summary in analysis.criteria}
    for criterion in criteria:
        name = Text(clean(criterion), style="bold cyan")
        said = wording.circumstances(summaries.get(criterion))
        console.print(name + Text(f"  {said}", style="dim") if said else name)
        rows = wording.rankings_of(analysis, criterion)
        for row in rows:
            style = "bold" if row is rows[0] and row.groups else ""
            _named(console, wording.ranking_basis(row), wording.ranking_text(row), style)
        within = wording.beaten_within(rows[0]) if rows else 0
        if within:
            _named(console, "", f"{numbers.some(within, 'pair')} within a group: one beats the other")
        if not rows:
            lines.indented(console, "not ranked", "dim")
        headline = wording.headline_of(analysis, criterion)
        if headline is not None:
            _named(console, "agreement", wording.agreement_sentence(headline))
        warning = wording.disagreement(rows)
        if warning:
            lines.indented(console, f"Caution: {warning}", "yellow")


def _print_agreement(analysis: Analysis, console: Console) -> None:
    if not analysis.agreement:
        return
    interval = f"{numbers.percent(analysis.confidence)} interval"
    lines.heading(console, "Agreement", "measures to quote first, then all others")
    headlines = [row for row in analysis.agreement if row.headline]
    table = lines.table(("criterion", "measure"), ("value", interval, "p", "items", "raters"))
    for row in headlines:
        cells = (numbers.statistic(row.value), numbers.interval(row.low, row.high) or numbers.DASH)
        sizes = (numbers.p_value(row.p), numbers.count(row.n_items), numbers.count(row.n_raters))
        table.add_row(
            lines.short_name(row.criterion), Text(wording.measure_name(row)), *map(Text, (*cells, *sizes))
        )
    if headlines:
        console.print(table)
    for criterion in wording.criteria_of(analysis):
        rows = [row for row in analysis.agreement if row.criterion == criterion and not row.headline]
        if rows:
            _packed(console, f"{shorten(criterion, _NAME)}:", [*_compact(rows)])
    for note in dict.fromkeys(note for row in analysis.agreement for note in row.notes):
        lines.indented(console, clean(note), "dim")


def _compact(rows: Sequence[AgreementRow]) -> Iterator[str]:
    """Each coefficient with its interval; those that are undefined for one reason together."""
    undefined: dict[str, list[str]] = {}
    for row in rows:
        if math.isfinite(row.value):
            interval = numbers.interval(row.low, row.high)
            yield f"{wording.measure_name(row)} {numbers.statistic(row.value)} {interval}".rstrip()
        else:
            undefined.setdefault(row.reason, []).append(wording.measure_name(row))
    for reason, measures in undefined.items():
        yield f"{', '.join(measures)} {wording.value_or_reason(math.nan, clean(reason) if reason else '')}"


def _print_correlation(analysis: Analysis, console: Console) -> None:
    if not analysis.correlation:
        return
    lines.heading(console, "Correlation of the criteria")
    interval = f"{numbers.percent(analysis.confidence)} interval"
    table = lines.table(("criteria",), ("value", interval, "p", "n"))
    basis = ""
    for row in analysis.correlation:
        own_basis = f"{clean(row.method)} over {clean(row.over)}"
        if own_basis != basis:
            basis = own_basis
            table.add_row(Text(basis, style="dim"))
        pair = Text(f"{shorten(row.a, 16)} – {shorten(row.b, 16)}")
        span = numbers.interval(row.low, row.high) or numbers.DASH
        cells = (numbers.statistic(row.value), span, numbers.p_value(row.p), numbers.count(row.n))
        table.add_row(pair, *map(Text, cells))
    console.print(table)
    for row in analysis.correlation:
        if not math.isfinite(row.value) and row.reason:
            lines.indented(console, f"{clean(row.a)} – {clean(row.b)}: undefined: {clean(row.reason)}")


def _print_tests(analysis: Analysis, console: Console) -> None:
    if not analysis.tests:
        return
    lines.heading(console, "Tests")
    for row in analysis.tests:
        lines.indented(console, f"{clean(row.criterion)}: {clean(row.question)}")
        lines.indented(console, wording.test_result(row), indent=4)


def _print_raters(analysis: Analysis, console: Console) -> None:
    if not analysis.raters:
        return
    shown = _worst(analysis.raters)
    hidden = len(analysis.raters) - len(shown)
    flagged = numbers.count(sum(bool(row.flags) for row in analysis.raters))
    lines.heading(console, "Raters", f"{flagged} of {numbers.count(len(analysis.raters))} flagged")
    table = lines.table(("rater", "flags"), ("ratings", "time", "spread", "same", "agreement"))
    for row in shown:
        table.add_row(
            lines.short_name(row.rater),
            Text(", ".join(map(clean, row.flags)) or numbers.DASH, style="yellow" if row.flags else ""),
            numbers.count(row.n_ratings),
            numbers.seconds(row.median_seconds),
            numbers.number(row.spread),
            numbers.percent(row.straight_lining),
            numbers.statistic(row.agreement),
        )
    console.print(table)
    legend = "spread: 1 = as everybody; same: share of the most frequent value; agreement: with the others"
    lines.indented(console, legend, "dim")
    if hidden:
        lines.indented(console, f"{numbers.some(hidden, 'more rater')} in the report", "dim")


def _worst(raters: Sequence[RaterRow]) -> list[RaterRow]:
    """All of them, or those with most flags; among equals the ones who agree least with the others."""
    if len(raters) <= MOST_RATERS:
        return list(raters)

    def trouble(row: RaterRow) -> tuple[int, float]:
        return -len(row.flags), row.agreement if math.isfinite(row.agreement) else math.inf

    return sorted(raters, key=trouble)[:WORST_RATERS]


def _print_left_out(analysis: Analysis, console: Console) -> None:
    reading = analysis.reading
    total = sum(n for _, n in reading.dropped)
    lines.left_out(console, reading.dropped, numbers.some(total, "rating"))
    lines.notes(console, [*reading.notes, *analysis.notes])
    console.print()


def _named(console: Console, name: str, text: str, style: str = "") -> None:
    """A name in a column of its own, then `text`; a pipe gets one line, which can be searched."""
    label = Text(f"  {name} ".ljust(_LABEL), style="dim")
    if console.is_terminal:
        lines.indented(console, text, style, indent=_LABEL, first=label)
    else:
        lines.line(console, label + Text(text, style=style))


def _packed(console: Console, name: str, parts: Sequence[str]) -> None:
    """`parts` side by side, as many in a line as go there without breaking one."""
    rows = [name]
    for part in parts:
        joint = " " if rows == [name] else " · "
        if cell_len(rows[-1] + joint + part) + 4 <= console.width:
            rows[-1] += joint + part
        else:
            rows.append(part)
    for k, row in enumerate(rows):
        lines.indented(console, row, indent=4, first=Text("  ") if k == 0 else None)
