"""Judges beside people: in the terminal and as a page."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from palaver.judges.meta import ONE_PERSON
from palaver.judges.meta_measures import OUTPUTS, SYSTEMS, WITHIN
from palaver.judges.meta_results import MetaEvaluation, MetaRow
from palaver.reports import lines, numbers
from palaver.reports.compare import Grid, Section, compare_page
from palaver.reports.names import clean, shorten

COLUMNS = {
    "Spearman": (OUTPUTS, "spearman"),
    "Pearson": (OUTPUTS, "pearson"),
    "tau-b": (OUTPUTS, "kendall"),
    "within items": (WITHIN, "spearman"),
    "pairs right": (WITHIN, "accuracy"),
    "systems": (SYSTEMS, "spearman"),
    "soft": (SYSTEMS, "soft accuracy"),
}
_HEADS = ("Spearman", "interval", *list(COLUMNS)[1:])
_LEGEND = (
    "Spearman, Pearson, tau-b: all outputs; within items: Spearman with each item's mean taken out; "
    "pairs right: of two systems on one item, ties included, thresholds cross-fitted; "
    "systems: Spearman of their means, with an interval for these systems, not for others; "
    "soft: soft pairwise accuracy"
)
_MOST_SHOWN = 5
_MOST_TESTS = 20
_TEXT = 70
_FEW_SYSTEMS = 5
"""With more, a judge that guesses hardly ever puts all of them in order."""


def print_meta(result: MetaEvaluation, console: Console) -> None:
    """Judges by criterion, closest to people first, beside what one person reaches."""
    for criterion in result.criteria:
        lines.heading(console, f"People's {clean(criterion)}", f"{result.confidence:.0%} intervals")
        table = lines.table(("judge",), _HEADS)
        for name, cells in _table(result, criterion):
            table.add_row(Text(clean(name)), *cells)
        lines.print_table(console, table)
        for text in _sentences(result, criterion):
            lines.line(console, text)
        console.print()
    lines.line(console, _LEGEND, "dim")
    if result.disagreements:
        lines.heading(console, "Where they differ most", "standard deviations, judge minus people")
        largest = sorted(result.disagreements, key=lambda one: -abs(one.gap))[:_MOST_SHOWN]
        has_texts = any(one.response for one in largest)
        heads = ["criterion", "judge", "item", "system", *(["reply"] if has_texts else [])]
        table = lines.table(heads, ("gap",))
        for one in largest:
            named = [one.criterion, one.judge, one.item, one.system]
            if has_texts:
                named.append(shorten(clean(one.response), _TEXT))
            table.add_row(*(Text(clean(cell)) for cell in named), numbers.number(one.gap, 1))
        lines.print_table(console, table)
    lines.notes(console, [*result.reading.notes, *result.notes])
    lines.run_record(console, result.run)


def meta_page(result: MetaEvaluation) -> str:
    """The same as a page, with all tests and the list of disagreements."""
    sections = []
    for number, criterion in enumerate(result.criteria):
        rows = [(name, *cells) for name, cells in _table(result, criterion)]
        caption = "Closest to people first." + (f" {_LEGEND}." if number == 0 else "")
        tables = [Grid(caption, ["Judge"], _HEADS, rows)]
        of_criterion = [t for t in result.tests if t.criterion == criterion]
        shown, title = of_criterion, "Is one judge closer?"
        best = result.best(criterion)
        if best is not None and len(of_criterion) > _MOST_TESTS:
            shown = [t for t in of_criterion if best.judge in (t.a, t.b)]
            title = f"Is {best.judge} closer than the others? All tests are in the JSON of the results."
        tests = [
            (t.a, t.b, t.test, t.measure, numbers.number(t.difference),
             numbers.p_value(t.p), numbers.p_value(t.p_holm))
            for t in shown
        ]  # fmt: skip
        if tests:
            heads = ["Difference", "p", "p (Holm)"]
            tables.append(Grid(title, ["Judge", "Other", "Test", "Of"], heads, tests))
        joined = [
            (row.judge, row.measure, numbers.number(row.people), numbers.number(row.with_judge))
            for row in result.joined
            if row.criterion == criterion
        ]
        if joined:
            heads = ["People", "With the judge"]
            tables.append(
                Grid("Agreement with the judge as one more person.", ["Judge", "Measure"], heads, joined)
            )
        text = " ".join(_sentences(result, criterion))
        sections.append(Section(f"criterion-{number}", f"People's {criterion}", text, tables=tables))
    if result.disagreements:
        gaps = [
            (d.criterion, d.judge, d.item, d.system, d.context, d.response,
             numbers.number(d.people), numbers.number(d.judged), numbers.number(d.gap, 1))
            for d in sorted(result.disagreements, key=lambda one: -abs(one.gap))
        ]  # fmt: skip
        left = ["Criterion", "Judge", "Item", "System", "Last turn", "Reply"]
        grid = Grid(
            "Largest first; the gap is in standard deviations.", left, ["People", "Judge", "Gap"], gaps
        )
        sections.append(Section("disagreements", "Where they differ most", tables=[grid]))
    lead = result._headline() + "."
    n_judges, n_criteria = len(result.judges), len(result.criteria)
    facts = (numbers.some(n_judges, "judge"), numbers.some(n_criteria, "criterion", "criteria"))
    return compare_page(
        "Does the judge agree with people?", facts, lead, sections, result.notes, ["meta"], result.run
    )


def _table(result: MetaEvaluation, criterion: str) -> list[tuple[str, tuple[str, ...]]]:
    ranked = [row.judge for row in result.ranked(criterion)]
    others = [row.judge for row in result.ranked(criterion, SYSTEMS) if row.judge not in ranked]
    table = [(judge, _cells(result.of(criterion, judge))) for judge in [*ranked, *others]]
    person = result.ceiling_of(criterion)
    if person:
        table.append((f"({ONE_PERSON}, beside the others)", _cells(person)))
    return table


def _cells(rows: Mapping[tuple[str, str], MetaRow]) -> tuple[str, ...]:
    first = rows.get(COLUMNS["Spearman"])
    interval = numbers.interval(first.low, first.high) if first is not None else ""
    values = [rows[key].value if key in rows else float("nan") for key in COLUMNS.values()]
    cells = [numbers.number(value) for value in values]
    systems = rows.get(COLUMNS["systems"])
    if systems is not None:
        place = list(COLUMNS).index("systems")
        cells[place] = f"{cells[place]} {numbers.interval(systems.low, systems.high)}".rstrip()
    return (cells[0], interval, *cells[1:])


def _sentences(result: MetaEvaluation, criterion: str) -> list[str]:
    """Which judges the data cannot tell from the best, and why some have no figure."""
    texts = []
    best = result.best(criterion)
    if best is not None and best.value == best.value:
        tests = [
            t for t in result.tests
            if t.criterion == criterion and t.measure == best.measure and best.judge in (t.a, t.b)
        ]  # fmt: skip
        behind = [t.b if t.a == best.judge else t.a for t in tests if t.p_holm <= 1 - result.confidence]
        if tests:
            texts.append(
                f"{best.judge} is closer to people than {len(behind)} of {numbers.some(len(tests), 'other')} "
                f"({best.measure.capitalize()}, permutation test, Holm over all)."
            )
    n_systems = max((row.n for row in result.ranked(criterion, SYSTEMS)), default=0)
    if 1 < n_systems <= _FEW_SYSTEMS:
        texts.append(
            f"There are {n_systems} systems: of judges that guess, one in {math.factorial(n_systems)} puts "
            "all in people's order, so a high figure of systems says little."
        )
    reasons = {f"{row.judge}: {row.reason}" for row in result.ranked(criterion) if row.reason}
    return [*texts, *sorted(reasons)]
