"""The habits of judges of pairs, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.judges.bias import BiasReport, BiasRow
from palaver.reports import lines, numbers
from palaver.reports.names import clean

_STRONG = 0.1


def print_bias(report: BiasReport, console: Console) -> None:
    """A line a judge, then what it comes to in words, then win rates and agreement."""
    lines.heading(console, "What moves the judges", "log-odds with intervals")
    table = lines.table(
        ("judge",),
        ("verdicts", "first wins", "of equals", "place", "same in both orders", "a doubling of length",
         "formatting", "own family"),
    )  # fmt: skip
    for row in report.rows:
        table.add_row(
            Text(clean(row.judge)),
            numbers.count(row.n),
            numbers.percent(row.first_share),
            numbers.percent(row.first_of_equals),
            _effect(row.position, row.position_low, row.position_high),
            numbers.percent(row.consistency),
            _effect(row.length, row.length_low, row.length_high),
            _effect(row.formatting, row.formatting_low, row.formatting_high),
            _effect(row.own, row.own_low, row.own_high),
        )
    lines.print_table(console, table)
    for row in report.rows:
        for sentence in sentences(row):
            lines.line(console, clean(f"{row.judge}: {sentence}"))
    lines.heading(console, "How often each system wins", "a naive count, both orders, the place taken out")
    table = lines.table(("judge", "system"), ("one order", "both orders", "without place"))
    for rate in report.win_rates:
        values = (rate.one_order, rate.both_orders, rate.without_place)
        table.add_row(
            Text(clean(rate.judge)), Text(clean(rate.system)), *(numbers.percent(v) for v in values)
        )
    lines.print_table(console, table)
    if report.pairs:
        lines.heading(console, "Do judges agree with each other?", "both orders joined")
        table = lines.table(("judge", "judge"), ("same verdict", "kappa", "comparisons"))
        for pair in report.pairs:
            table.add_row(
                Text(clean(pair.a)), Text(clean(pair.b)), numbers.percent(pair.same),
                numbers.number(pair.kappa), numbers.count(pair.n),
            )  # fmt: skip
        lines.print_table(console, table)
    lines.notes(console, report.notes)


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
