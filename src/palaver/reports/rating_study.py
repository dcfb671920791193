"""How people rate, in the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Console

from palaver.comparator.rating_study import RatingStudy
from palaver.reports import lines, numbers


def print_rating_study(
    study: RatingStudy, left_out: Mapping[str, int], notes: Sequence[str], console: Console
) -> None:
    """The distribution of the ratings and, where dialogues were compared, the disagreement."""
    d = study.distribution
    low, high = d.scale
    who = f", {numbers.some(study.n_raters, 'rater')}" if study.n_raters else ""
    lines.heading(console, f"{numbers.some(d.n, 'rating')} from {low:g} to {high:g}{who}")
    table = lines.table(("rating",), ("dialogues", "share"))
    for i, (n, share) in enumerate(zip(d.counts, d.fractions, strict=True)):
        level = f"{d.edges[i]:g} to {d.edges[i + 1]:g}" if d.binned else f"{d.edges[i]:g}"
        table.add_row(level, numbers.count(n), numbers.percent(share))
    lines.print_table(console, table, indent=2)
    shape = "J-shaped: most are the highest there is" if d.j_shaped else "not J-shaped"
    lines.indented(console, f"{shape}; mean {d.mean:.2f}, standard deviation {d.sd:.2f}")
    lines.indented(console, f"{numbers.percent(d.ties)} of all pairs of dialogues have the same rating")
    if not math.isnan(study.level_share):
        between = numbers.percent(study.level_share)
        lines.indented(console, f"{between} of the variance lies between raters or their sittings")
    if study.disagreement:
        lines.heading(console, "Comparisons that disagree with the ratings")
        table = lines.table(("ratings apart",), ("pairs", "disagree", "share", "95%"))
        for row in study.disagreement:
            span = f"over {row.over:g}, up to {row.up_to:g}" if row.over else f"up to {row.up_to:g}"
            cells = ("–", "–")
            if row.n:
                cells = (numbers.percent(row.share), numbers.interval(row.low, row.high, 2))
            table.add_row(span, numbers.count(row.n), numbers.count(row.n_disagree), *cells)
        lines.print_table(console, table, indent=2)
    lines.left_out(console, list(left_out.items()))
    lines.notes(console, [*notes, *study.notes])
