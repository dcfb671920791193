"""Trait fidelity in the terminal: the matrix of correlations, then each trait against its own request."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from palaver.corpora.personalities import TRAITS
from palaver.personality.fidelity import Fidelity
from palaver.reports import lines, names, numbers


def print_fidelity(result: Fidelity, console: Console) -> None:
    """The result in words first, then what it rests on."""
    facts = (
        f"{numbers.count(result.n_requests)} requested personalities",
        numbers.some(result.n_responses, "response"),
        f"measured by {names.clean(result.recogniser)}",
    )
    lines.title(console, result.title, facts)
    lines.indented(console, result.text, "bold" if any(row.answers for row in result.diagonal) else "")
    _print_matrix(result, console)
    _print_diagonal(result, console)
    lines.left_out(console, result.left_out)
    lines.notes(console, result.notes)
    lines.run_record(console, result.run)


def _print_matrix(result: Fidelity, console: Console) -> None:
    lines.heading(console, "Correlations", "rows: requested; columns: measured; the diagonal should be high")
    cells = {(cell.requested, cell.measured): cell for cell in result.matrix}
    table = lines.table(("requested",), TRAITS)
    for asked in TRAITS:
        row = []
        for shown in TRAITS:
            cell = cells[asked, shown]
            span = f"[{numbers.number(cell.low)}, {numbers.number(cell.high)}]"
            style = "bold" if asked == shown else ""
            row.append(Text(f"{numbers.number(cell.r)} {span}", style=style))
        table.add_row(asked, *row)
    lines.print_table(console, table)


def _print_diagonal(result: Fidelity, console: Console) -> None:
    about = "p against requests dealt out anew, corrected for five traits (Holm)"
    lines.heading(console, "Each trait and its own request", about)
    heads = ("r", "interval", "slope", "p", "p (Holm)", "largest other")
    table = lines.table(("trait",), heads)
    for row in result.diagonal:
        table.add_row(
            row.trait,
            numbers.number(row.r),
            f"[{numbers.number(row.low)}, {numbers.number(row.high)}]",
            numbers.number(row.slope, 3),
            numbers.p_value(row.p),
            numbers.p_value(row.p_holm),
            numbers.number(row.largest_other),
        )
    lines.print_table(console, table)
