"""The report of an evaluation: one HTML page that asks for nothing else, or Markdown. It computes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from palaver.evaluation.forms import FILES, Form
from palaver.evaluation.latex import render_latex
from palaver.evaluation.results import ExperimentResult
from palaver.evaluation.verdict_view import VerdictView
from palaver.files import write_atomically
from palaver.reports import numbers, page, wording
from palaver.reports.methods import Method, methods_of
from palaver.reports.names import clean
from palaver.reports.trust_words import first_ahead
from palaver.studies.results import IntervalRow

_MOST_PLOTS = 6


@dataclass(frozen=True)
class BesideReference:
    """How sure each judge is that a system is better than the reference."""

    systems: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float]]]


def write_report(evaluation: ExperimentResult, folder: Path, form: Form) -> Path:
    """Write the report into `folder`; results.json is there already."""
    path = folder / FILES[form]
    if form == "html":
        return page.write_page(render_page(evaluation), path)
    if form != "json":
        with write_atomically(path) as file:
            file.write(render_markdown(evaluation) if form == "md" else render_latex(evaluation))
    return path


def render_page(evaluation: ExperimentResult) -> str:
    """The page as HTML text; the same evaluation gives the same text."""
    views = [VerdictView(verdict) for verdict in evaluation.verdicts]
    who = "simulated people" if evaluation.is_simulated else "people"
    return page.render(
        "evaluation.html.j2",
        evaluation.run,
        e=evaluation,
        wording=wording,
        views=views,
        systems=_systems_in_order(evaluation),
        facts=list(_facts(evaluation)),
        who=who,
        by_whom=who if evaluation.n_raters else "the mean of the judges",
        plots=list(_plots(evaluation)),
        beside_reference=_beside_reference(evaluation),
        differences=_differences(evaluation),
        people_sentence=_people_sentence(evaluation),
        place_of={row.system: number for number, row in enumerate(evaluation.systems)},
        paragraph=methods_paragraph(evaluation),
        methods=list(_methods(evaluation)),
    )


def _facts(evaluation: ExperimentResult) -> Iterator[str]:
    yield numbers.some(len(evaluation.systems), "system")
    yield numbers.some(max((row.n_contexts for row in evaluation.systems), default=0), "context")
    yield numbers.some(evaluation.n_responses, "response")
    yield numbers.some(len(evaluation.judges), "judge")
    if evaluation.n_raters:
        raters = numbers.some(evaluation.n_raters, "person", "people")
        yield f"{raters}, simulated" if evaluation.is_simulated else raters


def _plots(evaluation: ExperimentResult) -> Iterator[tuple[Markup, str]]:
    """The verdict that decides, the judges, then people's other criteria as far as there is room.

    They stand in the order of the table, people first.
    """
    ranked = [verdict for verdict in evaluation.verdicts if verdict.best]
    if not ranked:
        return
    deciding, others = ranked[:1], ranked[1:]
    by_need = [*deciding, *sorted(others, key=lambda verdict: verdict.is_by_people)]
    titles = {verdict.title for verdict in by_need[:_MOST_PLOTS]}
    from palaver.reports import figures

    for number, verdict in enumerate((row for row in ranked if row.title in titles), start=1):
        assert verdict.ranking is not None
        yield Markup(figures.rank_plot(verdict.ranking, f"f{number}")), verdict.title


def _beside_reference(evaluation: ExperimentResult) -> BesideReference | None:
    reference = evaluation.reference
    others = [row.system for row in evaluation.systems if row.system != reference]
    if reference is None or not others:
        return None
    rows = []
    for verdict in evaluation.verdicts:
        ranking = verdict.ranking
        if ranking is None or not ranking.better:
            continue
        place = {score.system: number for number, score in enumerate(ranking.scores)}
        if reference not in place:
            continue
        shares = [
            ranking.better[place[system]][place[reference]] if system in place else math.nan
            for system in others
        ]
        rows.append((verdict.title, shares))
    return BesideReference(others, rows) if rows else None


def _systems_in_order(evaluation: ExperimentResult) -> list[str]:
    """As the verdict that decides has them, then the others."""
    deciding = next((verdict.ranking for verdict in evaluation.verdicts if verdict.best), None)
    ranked = [score.system for score in deciding.scores] if deciding is not None else []
    return list(dict.fromkeys([*ranked, *(row.system for row in evaluation.systems)]))


def _differences(evaluation: ExperimentResult) -> list[IntervalRow]:
    """People's differences on the criterion that decides, the better system first."""
    deciding = next((verdict for verdict in evaluation.verdicts if verdict.is_by_people), None)
    rows = [row for row in evaluation.differences if deciding and row.criterion == deciding.criterion]
    return [first_ahead(row) for row in rows]


def _people_sentence(evaluation: ExperimentResult) -> str:
    """How close the closest judge is to people, on the criterion that decides."""
    best = next((row for row in evaluation.agreement if math.isfinite(row.spearman)), None)
    if best is None:
        return "No judge rated what people rated."
    judge, value = clean(best.judge), numbers.number(best.spearman)
    told = f"On {clean(best.criterion)}, {judge} is closest to people: {value}"
    told += f" {numbers.interval(best.low, best.high)}".rstrip()
    if math.isfinite(best.one_person):
        beside = "less than" if best.spearman < best.one_person else "at least as much as"
        told += f", {beside} one person is to the others ({numbers.number(best.one_person)})"
    if not best.low > 0:
        told += ". It is not shown to agree with people at all"
    return f"{told}."


def _methods(evaluation: ExperimentResult) -> Iterator[Method]:
    used = {verdict.ranking.method for verdict in evaluation.verdicts if verdict.ranking}
    used |= {
        convention.measure
        for row in evaluation.people_agreement
        if (convention := wording.convention_for(row.measure)) is not None
    }
    if evaluation.differences:
        used.add("clusters")
    yield from methods_of("analysis", used)
    if evaluation.agreement:
        yield from methods_of("compare", ["meta"])


def methods_paragraph(evaluation: ExperimentResult) -> str:
    """What was done, ready to paste: systems, contexts, judges with signatures, statistics with citations."""
    n_contexts = max((row.n_contexts for row in evaluation.systems), default=0)
    systems = ", ".join(clean(row.system) for row in evaluation.systems)
    parts = [
        f"{numbers.some(len(evaluation.systems), 'system').capitalize()} ({systems}) answered "
        f"{numbers.some(n_contexts, 'context')} ({numbers.some(evaluation.n_responses, 'response')})."
    ]
    if evaluation.n_raters:
        raters = numbers.some(evaluation.n_raters, "person", "people")
        raters = f"{raters} (simulated)" if evaluation.is_simulated else raters
        criteria = [clean(verdict.criterion) for verdict in evaluation.verdicts if verdict.is_by_people]
        parts.append(f"{raters} rated them on {', '.join(criteria)}.")
        for row in evaluation.people_agreement:
            parts.append(f"Agreement on {clean(row.criterion)}: {wording.agreement_sentence(row)}.")
    if evaluation.judges:
        judges = [f"{clean(row.judge)} [{row.signature}]" for row in evaluation.judges]
        parts.append(f"They were also rated by {'; '.join(judges)}.")
    methods = [f"{method.title} ({method.reference.rstrip('.')})" for method in _methods(evaluation)]
    if methods:
        parts.append(
            f"Methods, at {numbers.percent(evaluation.confidence)} confidence: {'; '.join(methods)}."
        )
    parts.append(f"Computed with {evaluation.run}.")
    return " ".join(parts)


# Markdown ------------------------------------------------------------------------------------------------


def render_markdown(evaluation: ExperimentResult) -> str:
    """The same in short, for an issue or a wiki."""
    lines = [
        f"# {_cell(evaluation.title)}",
        "",
        " · ".join(_facts(evaluation)),
        "",
        f"**{evaluation.answer}**",
        "",
    ]
    for caveat in evaluation.caveats:
        lines += [f"> {caveat}", ""]
    lines += ["| judge | criterion | place | system | score | interval |", "|---|---|---|---|---:|---|"]
    for verdict in evaluation.verdicts:
        view = VerdictView(verdict)
        for score in verdict.ranking.scores if verdict.ranking else ():
            cells = (
                verdict.judge, verdict.criterion, view.places.get(score.system, ""), score.system,
                numbers.number(score.score, view.digits), view.interval(score),
            )  # fmt: skip
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
    lines.append("")
    if evaluation.agreement:
        lines += [
            "## Judges beside people",
            "",
            "| people's criterion | judge | Spearman | interval | pairs right |",
        ]
        lines.append("|---|---|---:|---|---:|")
        for row in evaluation.agreement:
            agreement = (
                row.criterion, row.judge, numbers.number(row.spearman), numbers.interval(row.low, row.high),
                numbers.percent(row.pairs_right),
            )  # fmt: skip
            lines.append(f"| {' | '.join(map(_cell, agreement))} |")
        lines.append("")
    lines += ["## Methods", "", methods_paragraph(evaluation), ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return clean(text).replace("|", "\\|") if text else ""
