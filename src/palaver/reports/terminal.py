"""An analysis in the terminal: the answer first, then how far to trust it.

Everything is printed as `Text`, never as markup, so a name like `[bold]x` shows as it is. Names fold and are
never cut. A terminal gets the raters and correlations that matter most; a pipe or a file gets all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from palaver.reports import lines, numbers, trust_words, wording
from palaver.reports.names import clean
from palaver.reports.texts import texts_of
from palaver.studies.results import AgreementRow, Analysis, CriterionSummary, RankingRow, RaterRow

MOST_RATERS = 15
WORST_RATERS = 10
MOST_CORRELATIONS = 10
MOST_INFLUENCE = 3
MOST_DIFFERENCES = 10
MOST_TEXTS = 5
"""Raters and items of a criterion."""
_LABEL = 22
"""Columns for `  Bradley–Terry, 95%  ` in front of what the method says."""


def print_analysis(analysis: Analysis, console: Console) -> None:
    """Print everything a reader needs before opening the report."""
    _print_head(analysis, console)
    print_ranking(analysis, console)
    _print_trust(analysis, console)
    _print_agreement(analysis, console)
    _print_influence(analysis, console)
    _print_correlation(analysis, console)
    _print_tests(analysis, console)
    _print_raters(analysis, console)
    _print_texts(analysis, console)
    _print_conditions(analysis, console)
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


def print_ranking(analysis: Analysis, console: Console) -> None:
    """For each criterion every system's place and mean, the other methods' order, and the agreement."""
    lines.heading(console, "Ranking", "best first; a group ends where all above beat all below")
    criteria = wording.criteria_of(analysis)
    if not criteria:
        lines.indented(console, "There are no ratings, so there is no answer.")
    summaries = {summary.criterion: summary for summary in analysis.criteria}
    for criterion in criteria:
        rows = wording.rankings_of(analysis, criterion)
        means = next((row for row in rows if row.method == "bootstrap" and row.scores), None)
        _print_criterion(console, criterion, summaries.get(criterion), means)
        for row in rows:
            if row is not means or not row.groups:
                _named(console, wording.ranking_basis(row), wording.ranking_text(row))
        if not rows:
            lines.indented(console, "not ranked", "dim")
        within = wording.beaten_within(rows[0]) if rows else 0
        if within:
            lines.indented(console, f"{numbers.some(within, 'pair')} within a group: one beats the other")
        for reason in wording.score_reasons(rows):
            lines.indented(console, reason, "yellow")
        headline = wording.headline_of(analysis, criterion)
        if headline is not None:
            _named(console, "agreement", wording.agreement_sentence(headline))
        unsure = trust_words.unsure_orders(analysis, criterion)
        if unsure:
            lines.indented(console, f"Caution: {unsure}", "yellow")
        warning = wording.disagreement(rows)
        if warning:
            lines.indented(console, f"Caution: {warning}", "yellow")


def _print_criterion(
    console: Console, criterion: str, summary: CriterionSummary | None, means: RankingRow | None
) -> None:
    """The criterion's name, what its scores are, and each system's place and mean."""
    console.print()
    remarks = [wording.circumstances(summary)]
    if means is not None:
        remarks = [clean(means.unit), wording.ranking_basis(means), *remarks]
    remark = "; ".join(filter(None, remarks))
    name = Text(clean(criterion), style="bold cyan")
    lines.indented(console, name + Text(f"  {remark}", style="dim") if remark else name, indent=0)
    if means is None:
        return
    place, digits = wording.places(means), wording.score_digits(means)
    interval = f"{numbers.percent(means.confidence)} interval"
    table = lines.table(("place", "system"), (wording.score_name(means), interval, "ratings"), rule=False)
    for score in means.scores:
        table.add_row(
            place.get(score.system, numbers.DASH),
            lines.name_cell(score.system),
            numbers.number(score.score, digits),
            Text(wording.score_interval(score, digits)),
            numbers.count(score.n),
        )
    lines.print_table(console, table, indent=2)


def _print_trust(analysis: Analysis, console: Console) -> None:
    """Differences with intervals that are clustered by dialogue and rater."""
    rows = [row for row in analysis.intervals if row.against]
    if not rows:
        return
    remark = "intervals clustered by dialogue and rater; p corrected for all pairs of a criterion (Holm)"
    lines.heading(console, "How far to trust this", remark)
    interval = f"{numbers.percent(analysis.confidence)} interval"
    names, figures = ("criterion", "ahead", "behind"), ("difference", interval, "p", "rows alone")
    table = lines.table(names, figures)
    shown = rows[:MOST_DIFFERENCES] if console.is_terminal else rows
    for row in map(trust_words.first_ahead, shown):
        value, low, high = (numbers.number(x) for x in (row.value, row.low, row.high))
        cells = (
            value,
            f"{low} to {high}" if not row.reason else numbers.DASH,
            numbers.p_value(row.adjusted_p),
        )
        named = (row.criterion, row.system, row.against)
        table.add_row(*map(lines.name_cell, named), *map(Text, cells), Text(trust_words.widening(row)))
    lines.print_table(console, table)
    if trust_words.share_remark(shown):
        lines.indented(console, trust_words.share_remark(shown), "dim")
    if len(rows) > len(shown):
        lines.indented(console, f"and {len(rows) - len(shown)} more pairs: the report has them", "dim")


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
            lines.name_cell(row.criterion), Text(wording.measure_name(row)), *map(Text, (*cells, *sizes))
        )
    if headlines:
        lines.print_table(console, table)
    for reason in wording.headline_reasons(analysis):
        lines.indented(console, reason)
    for criterion in wording.criteria_of(analysis):
        rows = [row for row in analysis.agreement if row.criterion == criterion and not row.headline]
        if rows:
            _packed(console, f"{clean(criterion)}:", [*_compact(rows)])
    for note in wording.agreement_notes(analysis):
        lines.indented(console, note, "dim")


def _print_influence(analysis: Analysis, console: Console) -> None:
    if not analysis.influence:
        return
    lines.heading(
        console, "Influence", "the agreement to quote without one rater or item; largest change first"
    )
    table = lines.table(("criterion", "without", "name"), ("ratings", "all", "without", "change"))
    for (criterion, left_out), rows in wording.influence_by_kind(analysis).items():
        for row in rows[:MOST_INFLUENCE] if console.is_terminal else rows:
            table.add_row(
                lines.name_cell(criterion),
                left_out,
                lines.name_cell(row.name),
                numbers.count(row.n_ratings),
                *map(Text, wording.influence_numbers(row)),
            )
    lines.print_table(console, table)


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
    for basis, rows in wording.correlations_by_basis(analysis).items():
        shown = rows[:MOST_CORRELATIONS] if console.is_terminal else rows
        lines.line(console, basis, "cyan")
        table = lines.table(("criteria",), ("value", interval, "p", "n"))
        for row in shown:
            span = numbers.interval(row.low, row.high) or numbers.DASH
            cells = (numbers.statistic(row.value), span, numbers.p_value(row.p), numbers.count(row.n))
            table.add_row(Text(f"{clean(row.a)} – {clean(row.b)}"), *map(Text, cells))
        lines.print_table(console, table)
        for row in shown:
            if not math.isfinite(row.value) and row.reason:
                lines.indented(console, f"{clean(row.a)} – {clean(row.b)}: undefined: {clean(row.reason)}")
        hidden = len(rows) - len(shown)
        if hidden:
            more = f"{numbers.some(hidden, 'more pair')} in the report and in results.json"
            lines.indented(console, more, "dim")


def _print_tests(analysis: Analysis, console: Console) -> None:
    if not analysis.tests:
        return
    lines.heading(console, "Tests")
    for row in analysis.tests:
        lines.indented(console, f"{clean(row.criterion)}: {clean(row.question)}")
        lines.indented(console, wording.test_result(row), indent=4)
        for note in row.notes:
            lines.indented(console, clean(note), "dim", indent=4)


def _print_raters(analysis: Analysis, console: Console) -> None:
    if not analysis.raters:
        return
    shown = _worst(analysis.raters) if console.is_terminal else analysis.raters
    hidden = len(analysis.raters) - len(shown)
    flagged = numbers.count(sum(bool(row.flags) for row in analysis.raters))
    lines.heading(console, "Raters", f"{flagged} of {numbers.count(len(analysis.raters))} flagged")
    table = lines.table(("rater", "flags"), ("ratings", "time", "spread", "same", "agreement"))
    for row in shown:
        table.add_row(
            lines.name_cell(row.rater),
            Text(", ".join(map(clean, row.flags)) or numbers.DASH, style="yellow" if row.flags else ""),
            numbers.count(row.n_ratings),
            numbers.seconds(row.median_seconds),
            numbers.number(row.spread),
            numbers.percent(row.straight_lining),
            numbers.statistic(row.agreement),
        )
    lines.print_table(console, table)
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


def _print_texts(analysis: Analysis, console: Console) -> None:
    """How many wrote something, and the first of what they wrote; a pipe gets all of it."""
    for texts in texts_of(analysis, most=len(analysis.texts)):
        wrote = f"{numbers.some(texts.n, 'answer')} of {numbers.some(texts.n_raters, 'rater')}"
        lines.heading(console, f"{clean(texts.criterion)}, in their words", wrote)
        shown = texts.listed[:MOST_TEXTS] if console.is_terminal else texts.listed
        table = lines.table(("item", "system", "rater", "answer"), ())
        for row in shown:
            item = row.item if row.turn is None else f"{row.item} #{row.turn}"
            text = lines.shorten_on_terminal(console, clean(row.text), 60)
            table.add_row(
                lines.name_cell(item), lines.name_cell(row.system), lines.name_cell(row.rater), Text(text)
            )
        lines.print_table(console, table)
        if len(shown) < texts.n:
            lines.indented(
                console, f"{numbers.some(texts.n - len(shown), 'more answer')} in the report", "dim"
            )


def _print_conditions(analysis: Analysis, console: Console) -> None:
    rows = analysis.reading.conditions
    if not rows:
        return
    lines.heading(console, "Asked only if", "what was not asked is not missing")
    table = lines.table(("criterion", "asked if"), ("asked", "answered", "missing", "not asked"))
    for row in rows:
        counts = (row.n_asked, row.n_answered, row.n_missing, row.n_not_asked)
        table.add_row(lines.name_cell(row.criterion), Text(clean(row.shown_if)), *map(numbers.count, counts))
    lines.print_table(console, table)


def _print_left_out(analysis: Analysis, console: Console) -> None:
    reading = analysis.reading
    total = sum(n for _, n in reading.dropped)
    lines.left_out(console, reading.dropped, numbers.some(total, "rating"))
    lines.notes(console, [*reading.notes, *analysis.notes])
    console.print()


def _named(console: Console, name: str, text: str) -> None:
    """A name in a column of its own, then `text`; a pipe gets one line, which can be searched."""
    label = Text(f"  {name} ".ljust(_LABEL), style="dim")
    lines.indented(console, text, indent=_LABEL, first=label)


def _packed(console: Console, name: str, parts: Sequence[str]) -> None:
    """`parts` side by side, as many in a line as go there without breaking one; in a pipe all."""
    rows = [name]
    for part in parts:
        joint = " " if rows == [name] else " · "
        if not console.is_terminal or cell_len(rows[-1] + joint + part) + 4 <= console.width:
            rows[-1] += joint + part
        else:
            rows.append(part)
    for k, row in enumerate(rows):
        lines.indented(console, row, indent=4, first=Text("  ") if k == 0 else None)
