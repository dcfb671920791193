"""The ranking of an evaluation as LaTeX: booktabs tables to paste into a paper."""

from __future__ import annotations

import re
from collections.abc import Sequence

from palaver.evaluation.results import AgreementWithPeople, ExperimentResult, Verdict
from palaver.evaluation.verdict_view import VerdictView
from palaver.reports import numbers
from palaver.reports.names import clean

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%",
    "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "−": "$-$", "–": r"\textendash{}",
    "…": r"\ldots{}",
}  # fmt: skip
_TRANSLATION = str.maketrans(_SPECIAL)


def render_latex(evaluation: ExperimentResult) -> str:
    """Who ranks the systems how, and how far the judges agree with people."""
    rankings = [verdict for verdict in evaluation.verdicts if verdict.ranking and verdict.ranking.groups]
    lines = [
        f"% {clean(str(evaluation.run))}",
        r"% \usepackage[T1]{fontenc} and \usepackage{booktabs}",
        "% Names in other scripts than the Latin one need XeLaTeX or LuaLaTeX.",
        *_ranking_table(evaluation, rankings),
    ]
    if evaluation.agreement:
        lines += ["", *_agreement_table(evaluation.agreement, evaluation.confidence)]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return re.sub("-(?=-)", "-{}", clean(text).translate(_TRANSLATION))  # two hyphens would be a dash


def _ranking_table(evaluation: ExperimentResult, rankings: Sequence[Verdict]) -> list[str]:
    confidence = numbers.percent(evaluation.confidence)
    told = f"{evaluation.answer} Systems of one place are not told apart at {confidence} confidence."
    if evaluation.is_simulated:
        told += " The people are simulated."
    heads = ["Judge", "Place", "System", "Score", f"{confidence} interval"]
    return _table("lllrr", "tab:ranking", told, heads, [_ranking_rows(verdict) for verdict in rankings])


def _ranking_rows(verdict: Verdict) -> list[list[str]]:
    """One row a system, best first; the judge stands in the first row, and the first place is bold."""
    assert verdict.ranking is not None
    view = VerdictView(verdict)
    title = escape(verdict.title) + (f" ({view.note})" if view.note else "")
    rows: list[list[str]] = []
    for score in verdict.ranking.scores:
        system, value = escape(score.system), escape(numbers.number(score.score, view.digits))
        if score.system in verdict.best:
            system, value = rf"\textbf{{{system}}}", rf"\textbf{{{value}}}"
        place = escape(view.places.get(score.system) or numbers.DASH)
        rows.append(["" if rows else title, place, system, value, escape(view.interval(score))])
    return rows


def _agreement_table(agreement: Sequence[AgreementWithPeople], confidence: float) -> list[str]:
    """How far each judge agrees with people."""
    groups: dict[str, list[list[str]]] = {}
    for row in agreement:
        rows = groups.setdefault(row.criterion, [])
        rows.append([
            "" if rows else escape(row.criterion), escape(row.judge), escape(numbers.number(row.spearman)),
            escape(numbers.interval(row.low, row.high) or numbers.DASH),
            escape(numbers.number(row.one_person)), escape(numbers.percent(row.pairs_right)),
        ])  # fmt: skip
    told = (
        "How far judges agree with people: Spearman’s correlation over single responses, beside that of one "
        "person with the others, and how often a judge prefers the same of two systems."
    )
    heads = ["Criterion", "Judge", "Spearman", f"{numbers.percent(confidence)} interval", "One person",
             "Pairs right"]  # fmt: skip
    return _table("llrrrr", "tab:agreement", told, heads, list(groups.values()))


def _table(
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
