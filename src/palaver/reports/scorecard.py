"""How far a comparator can be believed: its scorecard in the terminal and as a page."""

from __future__ import annotations

from markupsafe import Markup
from rich.console import Console
from rich.text import Text

from palaver.comparator.evaluation import PairResult
from palaver.comparator.scorecard import BASELINES, COLUMNS, Scorecard
from palaver.reports import lines, numbers
from palaver.reports.compare import Grid, Section, compare_page
from palaver.reports.names import clean
from palaver.schema import RunRecord

_MEASURES = ("accuracy", "95%", "κ", "its error", "pairs")


def print_scorecard(card: Scorecard, run: RunRecord, console: Console) -> None:
    """One table for each kind of pairs, with every method that can be measured there."""
    for column in COLUMNS:
        lines.heading(console, column.capitalize())
        rows = _rows(card, column)
        if rows:
            table = lines.table(("method",), _MEASURES)
            for method, cells in rows:
                table.add_row(Text(clean(method)), *cells)
            lines.print_table(console, table, indent=2)
        for reason in _reasons(card, column):
            lines.indented(console, reason, "dim")
    lines.heading(console, "Probabilities")
    lines.indented(console, _honesty(card))
    lines.left_out(console, list(card.left_out.items()))
    lines.notes(console, card.notes)
    lines.run_record(console, run)


def scorecard_page(card: Scorecard, run: RunRecord) -> str:
    """The same as a page, with the curve of the probabilities."""
    from palaver.reports import compare_figures

    sections = []
    for number, column in enumerate(COLUMNS):
        rows = [(method, *cells) for method, cells in _rows(card, column)]
        grid = Grid(f"Agreement with people, {column}.", ["Method"], _MEASURES, rows)
        name = "answer" if number == 0 else f"pairs-{number}"
        text = " ".join(f"{reason}." for reason in _reasons(card, column))
        sections.append(Section(name, column.capitalize(), text, tables=[grid]))
    picture = Markup(compare_figures.reliability_curve(card.calibration, "f2"))
    caption = "Pairs by the probability that the comparator gave; dots on the dashed line are honest."
    sections.append(Section("probabilities", "Probabilities", _honesty(card), [(picture, caption)]))
    result = card.rows[0].results[COLUMNS[0]]
    lead = (
        f"It agrees with {numbers.percent(result.accuracy)} of {numbers.some(result.n, 'comparison')} "
        f"(95%: {numbers.percent(result.low)} to {numbers.percent(result.high)}){_beside(card)}."
    )
    who = numbers.some(card.n_raters, "rater") if card.n_raters else "raters not known"
    facts = (f"comparator {card.comparator}", numbers.some(card.n_pairs, "pair"), who)
    left_out = [f"{numbers.some(n, 'pair')} left out: {reason}" for reason, n in card.left_out.items()]
    notes = [*card.notes, *left_out]
    return compare_page("How far can it be believed?", facts, lead, sections, notes, ["agreement"], run)


def _beside(card: Scorecard) -> str:
    """What the best of the simple things reaches on the same pairs."""
    simple = [row for row in card.rows if row.method in BASELINES and COLUMNS[0] in row.results]
    if not simple:
        return ""
    best = max(simple, key=lambda row: row.results[COLUMNS[0]].accuracy)
    return f"; the best simple rule, {best.method}, with {numbers.percent(best.results[COLUMNS[0]].accuracy)}"


def _rows(card: Scorecard, column: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(row.method, _cells(row.results[column])) for row in card.rows if column in row.results]


def _reasons(card: Scorecard, column: str) -> list[str]:
    """Why methods are missing, each reason once."""
    methods: dict[str, list[str]] = {}
    for row in card.rows:
        if column in row.reasons:
            methods.setdefault(row.reasons[column], []).append(clean(row.method))
    if len(methods) == 1 and not _rows(card, column):
        return list(methods)
    return [f"{', '.join(names)}: {reason}" for reason, names in methods.items()]


def _cells(result: PairResult) -> tuple[str, ...]:
    return (
        numbers.number(result.accuracy, 3),
        numbers.interval(result.low, result.high, 3),
        numbers.number(result.kappa, 3),
        numbers.number(result.kappa_se, 3),
        numbers.count(result.n),
    )


def _honesty(card: Scorecard) -> str:
    ece, brier = numbers.number(card.calibration.ece, 3), numbers.number(card.calibration.brier, 3)
    text = f"calibration error {ece}, Brier score {brier} (0.25 says nothing)"
    if card.nested_calibration is not None:
        nested = numbers.number(card.nested_calibration.ece, 3)
        text += f"; with the unit chosen on other raters: calibration error {nested}"
    return text
