"""The ranking of an evaluation as LaTeX: booktabs tables to paste into a paper."""

from __future__ import annotations

from collections.abc import Sequence

from palaver.evaluation.results import AgreementWithPeople, ExperimentResult, Verdict
from palaver.evaluation.verdict_view import VerdictView
from palaver.reports import numbers
from palaver.reports.latex import PREAMBLE, escape, latex_table
from palaver.reports.names import clean


def render_latex(evaluation: ExperimentResult) -> str:
    """Who ranks the systems how, and how far the judges agree with people."""
    rankings = [verdict for verdict in evaluation.verdicts if verdict.ranking and verdict.ranking.groups]
    lines = [
        f"% {clean(str(evaluation.run))}",
        *PREAMBLE,
        *_ranking_table(evaluation, rankings),
    ]
    if evaluation.agreement:
        lines += ["", *_agreement_table(evaluation.agreement, evaluation.confidence)]
    return "\n".join(lines) + "\n"


def _ranking_table(evaluation: ExperimentResult, rankings: Sequence[Verdict]) -> list[str]:
    confidence = numbers.percent(evaluation.confidence)
    told = f"{evaluation.answer} Systems of one place are not told apart at {confidence} confidence."
    if evaluation.is_simulated:
        told += " The people are simulated."
    heads = ["Judge", "Place", "System", "Score", f"{confidence} interval"]
    return latex_table("lllrr", "tab:ranking", told, heads, [_ranking_rows(verdict) for verdict in rankings])


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
    return latex_table("llrrrr", "tab:agreement", told, heads, list(groups.values()))
