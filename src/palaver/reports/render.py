"""`report.html`: one file that asks for nothing else, reads without scripts, prints, and suits a phone.

Everything from the data passes through Jinja's autoescape (or ElementTree, inside figures); anchors and
ids are numbers, never names. A content security policy forbids whatever might slip through.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from palaver.reports import methods, names, numbers, page, wording
from palaver.studies.results import AgreementRow, Analysis, CriterionSummary, RankingRow, RaterMatrix

Progress = Callable[[int, int], None]

MOST_IN_TABLE = 12
"""Square matrices up to this size are tables with their numbers; larger ones are figures."""
MOST_ON_CARD = 8
"""Systems that the first page names for each criterion."""
MOST_RATERS = 30
"""Heatmaps show no more raters than can be told apart."""


@dataclass(slots=True)
class RankingView:
    """One ranking as the page shows it."""

    row: RankingRow
    groups: list[tuple[str, tuple[str, ...]]]
    digits: int
    plot: Markup = field(default_factory=Markup)
    heatmap: Markup = field(default_factory=Markup)

    @property
    def title(self) -> str:
        return wording.method_title(self.row.method)

    @property
    def place(self) -> dict[str, str]:
        return {system: label for label, group in self.groups for system in group}


@dataclass(slots=True)
class CriterionView:
    """Everything about one criterion, with its figures once they are drawn."""

    name: str
    anchor: str
    summary: CriterionSummary | None
    rankings: list[RankingView]
    headline: AgreementRow | None
    warning: str
    matrix: RaterMatrix | None
    system_bars: Markup = field(default_factory=Markup)
    rater_strips: Markup = field(default_factory=Markup)
    darkest: float = 0.0
    rater_heatmap: Markup = field(default_factory=Markup)

    @property
    def card(self) -> tuple[list[tuple[str, tuple[str, ...]]], int]:
        """The first groups of the first ranking, and how many systems are left for the section below."""
        shown: list[tuple[str, tuple[str, ...]]] = []
        room = MOST_ON_CARD
        for label, group in self.rankings[0].groups if self.rankings else []:
            if room > 0:
                shown.append((label, group[:room]))
            room -= len(group)
        return shown, max(0, -room)


def write_report(
    analysis: Analysis, path: str | os.PathLike[str], *, progress: Progress | None = None
) -> Path:
    """Write the whole report to one HTML file and return its path; `progress(done, figures)`.

    The file appears whole or not at all. Folders that are missing are made.
    """
    page.check_target(Path(path))  # before the work, not after it
    return page.write_page(render_report(analysis, progress=progress), Path(path))


def render_report(analysis: Analysis, *, progress: Progress | None = None) -> str:
    """The report as HTML text; the same analysis gives the same text."""
    views = [_view(analysis, name, f"c{k}") for k, name in enumerate(wording.criteria_of(analysis), 1)]
    _draw(views, progress)
    template = _environment(analysis).get_template("report.html.j2")
    return template.render(
        analysis=analysis,
        run=analysis.run,
        criteria=views,
        systems=wording.systems_of(analysis),
        raters=sorted(analysis.raters, key=lambda r: -len(r.flags)),
        methods=methods.methods_used(analysis),
        conventions=wording.conventions_used(analysis),
        intervals=_intervals(analysis),
        correlation=_correlation(analysis),
    )


def _view(analysis: Analysis, name: str, anchor: str) -> CriterionView:
    rows = wording.rankings_of(analysis, name)
    return CriterionView(
        name=name,
        anchor=anchor,
        summary=next((_fewer(c) for c in analysis.criteria if c.criterion == name), None),
        rankings=[_ranking_view(row) for row in rows],
        headline=wording.headline_of(analysis, name),
        warning=wording.disagreement(rows),
        matrix=next((_fewer_pairs(m) for m in analysis.rater_matrices if m.criterion == name), None),
    )


def _fewer(summary: CriterionSummary) -> CriterionSummary:
    return dataclasses.replace(summary, raters=summary.raters[:MOST_RATERS])


def _fewer_pairs(matrix: RaterMatrix) -> RaterMatrix:
    return dataclasses.replace(
        matrix,
        raters=matrix.raters[:MOST_RATERS],
        values=tuple(row[:MOST_RATERS] for row in matrix.values[:MOST_RATERS]),
    )


def _ranking_view(row: RankingRow) -> RankingView:
    widths = [s.high - s.low for s in row.scores]
    digits = numbers.decimals(widths if any(w > 0 for w in widths) else [s.score for s in row.scores])
    return RankingView(
        row=row, groups=list(zip(wording.rank_labels(row), row.groups, strict=True)), digits=digits
    )


def _draw(views: list[CriterionView], progress: Progress | None) -> None:
    """Draw every figure there is data for, each with ids of its own."""
    jobs = [job for view in views for job in _jobs(view)]
    for done, job in enumerate(jobs, 1):
        job(f"f{done}")
        if progress is not None:
            progress(done, len(jobs))


def _jobs(view: CriterionView) -> Iterator[Callable[[str], None]]:
    # matplotlib takes a third of a second to import; only a report that is drawn pays for it.
    from palaver.reports import figures

    def drawer(owner: Any, slot: str, draw: Callable[[Any, str], str], data: Any) -> Callable[[str], None]:
        return lambda prefix: setattr(owner, slot, Markup(draw(data, prefix)))

    def strips(summary: CriterionSummary, prefix: str) -> str:
        svg, view.darkest = figures.rater_strips(summary, prefix)
        return svg

    for ranking in view.rankings:
        if ranking.row.scores:
            yield drawer(ranking, "plot", figures.rank_plot, ranking.row)
        if len(ranking.row.better) > MOST_IN_TABLE:
            yield drawer(ranking, "heatmap", figures.ahead_heatmap, ranking.row)
    summary = view.summary
    if summary is not None and summary.bins:
        if summary.systems and not summary.choices:  # choices have a table of their own
            yield drawer(view, "system_bars", figures.system_bars, summary)
        if summary.raters:
            yield drawer(view, "rater_strips", strips, summary)
    if view.matrix is not None and len(view.matrix.raters) > 1:
        yield drawer(view, "rater_heatmap", figures.rater_heatmap, view.matrix)


def _intervals(analysis: Analysis) -> list[tuple[str, list[str]]]:
    """How intervals were found -> the measures whose intervals were found so."""
    found: dict[str, dict[str, None]] = {}
    for row in analysis.agreement:
        if row.interval:
            found.setdefault(row.interval, {})[row.measure] = None
    return [(how, list(measures)) for how, measures in found.items()]


def _correlation(analysis: Analysis) -> list[dict[str, Any]]:
    """A square of values for each (method, over) among the rows; empty cells where no row says."""
    squares = []
    for method, over in dict.fromkeys((row.method, row.over) for row in analysis.correlation):
        rows = [row for row in analysis.correlation if (row.method, row.over) == (method, over)]
        criteria = list(dict.fromkeys(name for row in rows for name in (row.a, row.b)))
        values = {pair: row.value for row in rows for pair in ((row.a, row.b), (row.b, row.a))}
        if 2 < len(criteria) <= MOST_IN_TABLE:
            squares.append({"method": method, "over": over, "criteria": criteria, "values": values})
    return squares


def _environment(analysis: Analysis) -> Environment:
    made = page.environment(analysis.run.signature)
    made.filters.update(
        statistic=numbers.statistic,
        share=numbers.share,
        short=lambda text: names.shorten(text, 60),
        first_upper=lambda text: text[:1].upper() + text[1:],
    )
    made.globals.update(
        measure_name=wording.measure_name,
        merged=wording.merged,
        value_or_reason=wording.value_or_reason,
        in_words=wording.in_words,
        in_words_by=wording.in_words_by,
        ranking_text=wording.ranking_text,
        ranking_basis=wording.ranking_basis,
        beaten_within=wording.beaten_within,
        circumstances=wording.circumstances,
        convention_for=wording.convention_for,
        gauge=_gauge,
        most_in_table=MOST_IN_TABLE,
        isfinite=lambda value: value == value and abs(value) != float("inf"),
    )
    return made


def _gauge(row: AgreementRow) -> dict[str, Any] | None:
    """Positions in per cent for the little scale under a coefficient; nothing without a convention."""
    convention = wording.convention_for(row.measure)
    if convention is None or row.value != row.value:
        return None
    low, value, high = (
        100 * min(max(x if x == x else row.value, 0.0), 1.0) for x in (row.low, row.value, row.high)
    )
    cuts = [cut for cut in convention.cuts if 0 < cut < 1]
    return {"low": low, "value": value, "width": high - low, "cuts": cuts}
