"""Booktabs tables to paste into a paper, and those of an analysis."""

from __future__ import annotations

import re
from collections.abc import Sequence

from palaver.reports import numbers, wording
from palaver.reports.names import clean
from palaver.studies.results import Analysis, RankingRow

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "–": r"\textendash{}",
    "…": r"\ldots{}",
}  # fmt: skip
_TRANSLATION = str.maketrans(_SPECIAL)


PREAMBLE = (
    r"% \usepackage[T1]{fontenc} and \usepackage{booktabs}",
    "% Names in other scripts than the Latin one need XeLaTeX or LuaLaTeX.",
)


def render_latex(analysis: Analysis) -> str:
    """Each system's mean on each criterion, and how far raters agree."""
    lines = [f"% {clean(str(analysis.run))}", *PREAMBLE]
    rankings = [row for row in analysis.ranking if row.method == "bootstrap" and row.groups]
    if rankings:
        confidence = numbers.percent(analysis.confidence)
        told = f"Systems on each criterion. Those of one place are not told apart at {confidence} confidence."
        heads = ["Criterion", "Place", "System", "Score", f"{confidence} interval", "Ratings"]
        lines += latex_table("lllrrr", "tab:ranking", told, heads, [_ranking_rows(row) for row in rankings])
    if agreement := _agreement_rows(analysis):
        told = f"How far raters agree. {numbers.count(analysis.reading.n_ratings)} ratings."
        heads = ["Criterion", "Measure", "Value", "Interval", "Items", "Raters"]
        lines += ["", *latex_table("llrrrr", "tab:agreement", told, heads, [agreement])]
    return "\n".join(lines) + "\n"


def _ranking_rows(row: RankingRow) -> list[list[str]]:
    """One row a system, best first; the criterion stands in the first row."""
    places, digits = wording.places(row), wording.score_digits(row)
    cells = [
        (
            places.get(score.system, numbers.DASH),
            score.system,
            numbers.number(score.score, digits),
            wording.score_interval(score, digits),
            numbers.count(score.n),
        )
        for score in row.scores
    ]
    rows = [["", *map(escape, line)] for line in cells]
    rows[0][0] = escape(row.criterion)
    return rows


def _agreement_rows(analysis: Analysis) -> list[list[str]]:
    """The measure to quote of each criterion."""
    return [
        [
            escape(row.criterion),
            escape(wording.measure_name(row)),
            escape(numbers.number(row.value)),
            escape(numbers.interval(row.low, row.high) or numbers.DASH),
            numbers.count(row.n_items),
            numbers.count(row.n_raters),
        ]
        for row in analysis.agreement
        if row.headline
    ]


def escape(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return re.sub("-(?=-)", "-{}", clean(text).translate(_TRANSLATION))  # two hyphens would be a dash


def latex_table(
    columns: str, label: str, caption: str, heads: Sequence[str], groups: Sequence[Sequence[Sequence[str]]]
) -> list[str]:
    """A floating table; a little space between groups of rows, whose cells are LaTeX already."""
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(caption)}}}",
        rf"\label{{{label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        f"{' & '.join(map(escape, heads))} \\\\",
        r"\midrule",
    ]
    for number, rows in enumerate(groups):
        if number:
            lines.append(r"\addlinespace")
        for row in rows:
            line = " & ".join(row)
            guard = "{}" if line.startswith(("[", "*")) else ""  # or the end of the row before would take it
            lines.append(f"{guard}{line} \\\\")
    return [*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
