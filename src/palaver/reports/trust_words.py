"""How sure a difference between systems is, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from palaver.reports.names import clean
from palaver.reports.numbers import DASH, number, percent, some
from palaver.studies.results import Analysis, IntervalRow


def first_ahead(row: IntervalRow) -> IntervalRow:
    """The comparison told from the side of the system that is ahead."""
    equal = 0.5 if row.is_share else 0.0
    if not row.value < equal:
        return row
    turned = replace(row, system=row.against, against=row.system)
    return replace(turned, value=2 * equal - row.value, low=2 * equal - row.high, high=2 * equal - row.low)


def share_remark(rows: Sequence[IntervalRow]) -> str:
    """What the figure of a pairwise criterion is, where there is one."""
    if not any(row.is_share for row in rows):
        return ""
    return "Of pairs compared the figure is the share won by who is ahead (ties half): 0.50 is equality."


def widening(row: IntervalRow) -> str:
    """How many times as long the interval is as that of independent rows."""
    if not row.se_rows or not math.isfinite(row.se):
        return DASH
    return f"× {number(row.se / row.se_rows, 1)}"


def unsure_orders(analysis: Analysis, criterion: str) -> str:
    """Pairs that the ranking over items separates, and that other raters and dialogues might not."""
    rows = [row for row in analysis.ranking if row.criterion == criterion and row.method == "bootstrap"]
    if not rows or not rows[0].groups:
        return ""
    place = {system: number for number, group in enumerate(rows[0].groups) for system in group}
    compared = [row for row in analysis.intervals if row.criterion == criterion and row.against]
    pairs = [
        f"{clean(row.system)} and {clean(row.against)}"
        for row in map(first_ahead, compared)
        if not row.reason and not row.excludes_equality and place.get(row.system) != place.get(row.against)
    ]
    if not pairs:
        return ""
    named = " or ".join(pairs)
    if len(pairs) > 2:
        named = f"{', '.join(pairs[:2])} or {some(len(pairs) - 2, 'more pair')}"
    told = "The ranking takes raters as they are and every pair alone."
    return f"{told} With other raters, and all pairs counted, {named} may not be told apart."


def trust_sentences(analysis: Analysis) -> list[str]:
    """What the clustered intervals say about each criterion, and what would make them shorter."""
    sentences = []
    for criterion in dict.fromkeys(row.criterion for row in analysis.intervals):
        rows = [row for row in analysis.intervals if row.criterion == criterion and row.against]
        defined = [row for row in rows if not row.reason]
        if not defined:
            continue
        apart = [row for row in defined if row.excludes_equality]
        told = f"{clean(criterion)}: {len(apart)} of {some(len(rows), 'pair')} of systems told apart."
        dialogues = sum(row.dialogue_share for row in defined) / len(defined)
        raters = sum(row.rater_share for row in defined) / len(defined)
        more = f" More dialogues would help most: {percent(dialogues)} of the uncertainty is theirs."
        if raters > dialogues:
            more = f" More raters would help most: {percent(raters)} of the uncertainty is theirs."
        sentences.append(told + (more if len(apart) < len(rows) else ""))
    return sentences
