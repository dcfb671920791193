"""`palaver study compare-agreement`: do raters agree more in one design than in another?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.files import check_readable
from palaver.readers.rating_options import RatingOptions
from palaver.reports import lines, numbers
from palaver.reports.names import clean
from palaver.statistics.normalise import NORMALISATIONS
from palaver.studies.agreement_comparison import AgreementComparison
from palaver.studies.agreement_comparison import compare_agreement as run_comparison
from palaver.studies.ratings import read_rating_table

_NORMALISATIONS = ("auto", *NORMALISATIONS)


def compare_agreement(
    a: Annotated[Path, typer.Argument(help="Ratings of one design, as `analyse` takes them.")],
    b: Annotated[Path, typer.Argument(help="Ratings of the other design.")],
    normalise: Annotated[
        str,
        typer.Option(
            help="How ratings become scores; auto: log for magnitudes, raw otherwise.",
            **options.choices(_NORMALISATIONS),
        ),
    ] = "auto",
    normalise_b: Annotated[
        str | None,
        typer.Option(
            help="How those of B do. [default: as --normalise says]", **options.choices(_NORMALISATIONS)
        ),
    ] = None,
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = None,
    seed: options.Seed = 0,
    file_options: options.RatingFile = RatingOptions(),
    as_json: options.Json = False,
) -> None:
    """Do raters agree more in one design than in another?

    For each criterion of both files: the ICC of A and of B, their difference, a bootstrap interval over items
    and a two-sided p-value. Items are matched by name; those of both files are drawn together.

    Example: palaver study compare-agreement sliders.csv likert.csv

    Another scale in each: palaver study compare-agreement magnitudes.csv likert.csv --normalise log
    --normalise-b raw
    """
    tables = []
    for path in (a, b):
        check_readable(path)
        tables.append(read_rating_table(path, file_options))
    comparison = run_comparison(
        *tables,
        normalise=normalise,
        normalise_b=normalise_b,
        confidence=confidence,
        n_replicates=replicates or 10_000,
        seed=seed,
    )
    if as_json:
        print_json(comparison)
    else:
        _print(comparison, Console())


def _print(comparison: AgreementComparison, console: Console) -> None:
    lines.title(console, "Agreement of two designs", (f"A: {comparison.a}", f"B: {comparison.b}"))
    interval = f"{numbers.percent(comparison.confidence)} interval"
    table = lines.table(("criterion", "measure"), ("A", "B", "A − B", interval, "p", "p (Holm)"))
    for row in comparison.differences:
        cells = (row.a, row.b, row.difference)
        table.add_row(
            lines.name_cell(row.criterion),
            Text(row.form, style="bold" if row.headline else ""),
            *(numbers.statistic(cell) for cell in cells),
            Text(numbers.interval(row.low, row.high) or numbers.DASH),
            numbers.p_value(row.p),
            numbers.p_value(row.p_holm),
        )
    lines.print_table(console, table)
    for row in comparison.differences:
        if row.headline:
            sizes = f"{row.n_items_a:,} and {row.n_items_b:,} items, {row.n_shared:,} of both"
            raters = f"{row.n_raters_a:,} and {row.n_raters_b:,} raters"
            scores = f"scores {row.scores_a} and {row.scores_b}"
            lines.indented(console, f"{clean(row.criterion)}: {sizes}; {raters}; {scores}", "dim")
        for note in row.notes:
            lines.indented(console, f"{clean(row.criterion)}: {clean(note)}", "yellow")
        if row.reason and math.isnan(row.p):
            lines.indented(console, f"{clean(row.criterion)}: {row.form}: {clean(row.reason)}", "yellow")
    criteria = {row.criterion for row in comparison.differences}
    if len(criteria) > 1:
        lines.indented(console, f"p (Holm): adjusted for {len(criteria)} criteria", "dim")
    lines.indented(console, "raters are taken as given: others may agree more or less", "dim")
    lines.notes(console, comparison.notes)
    lines.line(console, clean(str(comparison.run)), "dim")
