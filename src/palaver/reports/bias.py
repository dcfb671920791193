"""The habits of judges of pairs, in the terminal and as a page."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.judges.bias import BiasReport, BiasRow, WinRate
from palaver.reports import lines, numbers
from palaver.reports.compare import Grid, Section, compare_page
from palaver.reports.names import clean

_STRONG = 0.1
_PLACE_HEADS = ("verdicts", "first wins", "of equals", "place", "same in both orders")
_OTHER_HEADS = ("a doubling of length", "formatting", "own family")
_AGREE = "Do judges agree with people and with each other?"
_PLACE_LEGEND = (
    "First wins: of all verdicts, a tie as half. Of equals: the chance of the first of two equal outputs, "
    "one half without bias. Place: the same in log-odds."
)
_OTHER_LEGEND = (
    "Log-odds for a doubling of length and for one more mark of formatting in a hundred words. Own family: "
    "how much more often its outputs win by this judge than by people or, without them, by other judges."
)


def print_bias(report: BiasReport, console: Console) -> None:
    """A line a judge, then what it comes to in words, then win rates and agreement."""
    lines.heading(console, "What moves the judges", "log-odds with intervals")
    table = lines.table(("judge",), (*_PLACE_HEADS, *_OTHER_HEADS))
    for row in report.rows:
        table.add_row(Text(clean(row.judge)), *_place_cells(row), *_other_cells(row))
    lines.print_table(console, table)
    for row in report.rows:
        for sentence in sentences(row):
            lines.line(console, clean(f"{row.judge}: {sentence}"))
    lines.heading(console, "How often each system wins", "a naive count, both orders, the place taken out")
    table = lines.table(("judge", "system"), ("one order", "both orders", "without place"))
    for rate in report.win_rates:
        table.add_row(Text(clean(rate.judge)), Text(clean(rate.system)), *_shares(rate))
    lines.print_table(console, table)
    if report.pairs:
        lines.heading(console, _AGREE, "both orders joined")
        table = lines.table(("judge", "judge"), ("same verdict", "kappa", "comparisons"))
        for pair in report.pairs:
            table.add_row(
                Text(clean(pair.a)), Text(clean(pair.b)), numbers.percent(pair.same),
                numbers.number(pair.kappa), numbers.count(pair.n),
            )  # fmt: skip
        lines.print_table(console, table)
    lines.notes(console, report.notes)


def bias_page(report: BiasReport) -> str:
    """The same as a page."""
    told = [(row.judge, sentence) for row in report.rows for sentence in sentences(row)]
    habits = [
        Grid("What to know before you believe them.", ["Judge"], [], told, "Habit"),
        Grid(
            _PLACE_LEGEND, ["Judge"], _PLACE_HEADS, [(row.judge, *_place_cells(row)) for row in report.rows]
        ),
        Grid(
            _OTHER_LEGEND, ["Judge"], _OTHER_HEADS, [(row.judge, *_other_cells(row)) for row in report.rows]
        ),
    ]
    wins = Grid(
        "A naive count asks each pair once, the systems in alphabetical order.",
        ["Judge", "System"],
        ["One order", "Both orders", "Without place"],
        [(rate.judge, rate.system, *_shares(rate)) for rate in report.win_rates],
    )
    sections = [
        Section("habits", "What moves the judges", tables=habits),
        Section("wins", "How often each system wins", tables=[wins]),
    ]
    if report.pairs:
        rows = [
            (p.a, p.b, numbers.percent(p.same), numbers.number(p.kappa), numbers.count(p.n))
            for p in report.pairs
        ]
        heads = ["Same verdict", "Kappa", "Comparisons"]
        grid = Grid("With both orders joined.", ["Judge", "Other"], heads, rows)
        sections.append(Section("agreement", _AGREE, tables=[grid]))
    facts = (numbers.some(len(report.rows), "judge"), numbers.some(sum(r.n for r in report.rows), "verdict"))
    lead = report._headline() + "."
    return compare_page(
        "What moves the judges besides quality?", facts, lead, sections, report.notes, ["meta"], report.run
    )


def _place_cells(row: BiasRow) -> tuple[str, ...]:
    return (
        numbers.count(row.n),
        numbers.percent(row.first_share),
        numbers.percent(row.first_of_equals),
        _effect(row.position, row.position_low, row.position_high),
        numbers.percent(row.consistency),
    )


def _other_cells(row: BiasRow) -> tuple[str, ...]:
    return (
        _effect(row.length, row.length_low, row.length_high),
        _effect(row.formatting, row.formatting_low, row.formatting_high),
        _effect(row.own, row.own_low, row.own_high),
    )


def _shares(rate: WinRate) -> list[str]:
    return [numbers.percent(share) for share in (rate.one_order, rate.both_orders, rate.without_place)]


def sentences(row: BiasRow) -> list[str]:
    """What a reader must know of a judge before believing it."""
    told = []
    if row.first_share in (0.0, 1.0):
        place = "first" if row.first_share == 1.0 else "second"
        told.append(f"always chooses what stands {place}: its verdicts say nothing about the outputs")
    elif row.position_low > 0 or row.position_high < 0:
        place = "first" if row.position > 0 else "second"
        share = row.first_of_equals if row.position > 0 else 1 - row.first_of_equals
        told.append(f"prefers what stands {place}: of two equal outputs it wins {share:.0%}")
    if row.decided_by_place > _STRONG:
        told.append(f"the place alone decides {row.decided_by_place:.0%} of comparisons; ask in both orders")
    if row.length_low > 0:
        told.append("prefers longer outputs")
    elif row.length_high < 0:
        told.append("prefers shorter outputs")
    if row.own_low > 0:
        told.append(
            f"outputs of its own family win {100 * row.own:.0f} points more often by it than by others"
        )
    return [*told, *row.reasons]


def _effect(value: float, low: float, high: float) -> str:
    return f"{numbers.number(value)} {numbers.interval(low, high)}" if value == value else "–"
