"""`report.html`: one file that asks for nothing else, reads without scripts, prints, and suits a phone.

Everything from the data passes through Jinja's autoescape (or ElementTree, inside figures); anchors and
ids are numbers, never names. A content security policy forbids whatever might slip through.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from palaver.errors import check_kind
from palaver.reports import methods, page, trust_words, wording
from palaver.reports.texts import texts_of
from palaver.studies.results import (
    AgreementRow,
    Analysis,
    CriterionSummary,
    RankingRow,
    RaterMatrix,
    SystemScore,
)

Draw = Callable[[Callable[[Any, str], str], Any], Markup]

MOST_IN_TABLE = 12
"""Square matrices up to this size are tables with their numbers; larger ones are figures."""
MOST_ON_CARD = 8
"""Systems that the first page names for each criterion."""
MOST_RATERS = 30
"""Heatmaps show no more raters than can be told apart."""


@dataclass(frozen=True, slots=True)
class RankingView:
    """One ranking as the page shows it."""

    row: RankingRow
    groups: list[tuple[str, tuple[str, ...]]]
    digits: int
    plot: Markup
    heatmap: Markup

    @property
    def place(self) -> dict[str, str]:
        return wording.places(self.row)

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(wording.score_reasons([self.row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionView:
    """Everything about one criterion, with its figures."""

    name: str
    anchor: str
    summary: CriterionSummary | None
    rankings: list[RankingView]
    headline: AgreementRow | None
    warning: str
    matrix: RaterMatrix | None
    system_bars: Markup
    rater_strips: Markup
    darkest: float
    """The share that the darkest cell of `rater_strips` stands for."""
    rater_heatmap: Markup

    @property
    def card(self) -> tuple[tuple[SystemScore, ...], int]:
        """The first systems of the first ranking, and how many are left for the section below."""
        scores = self.rankings[0].row.scores if self.rankings else ()
        return scores[:MOST_ON_CARD], max(0, len(scores) - MOST_ON_CARD)

    @property
    def gauge(self) -> dict[str, Any] | None:
        """Positions in per cent for the little scale under the headline; nothing without a convention."""
        row = self.headline
        convention = wording.convention_for(row.measure) if row is not None else None
        if row is None or convention is None or row.value != row.value:
            return None
        low, value, high = (
            100 * min(max(x if x == x else row.value, 0.0), 1.0) for x in (row.low, row.value, row.high)
        )
        cuts = [cut for cut in convention.cuts if 0 < cut < 1]
        return {"low": low, "value": value, "width": high - low, "cuts": cuts}


def write_report(analysis: Analysis, path: str | os.PathLike[str]) -> Path:
    """Write the whole report to one HTML file and return its path.

    The file appears whole or not at all. Folders that are missing are made.
    """
    check_kind(analysis, Analysis, "analysis")
    page.check_target(Path(path))  # before the work, not after it
    return page.write_page(render_report(analysis), Path(path))


def render_report(analysis: Analysis) -> str:
    """The report as HTML text; the same analysis gives the same text."""
    ids = itertools.count(1)

    def draw(figure: Callable[[Any, str], str], data: Any) -> Markup:
        """A figure with an id of its own."""
        return Markup(figure(data, f"f{next(ids)}"))

    criteria = enumerate(wording.criteria_of(analysis), 1)
    return page.render(
        "report.html.j2",
        analysis.run,
        wording=wording,
        trust_words=trust_words,
        analysis=analysis,
        criteria=[_view(analysis, name, f"c{k}", draw) for k, name in criteria],
        systems=wording.systems_of(analysis),
        raters=sorted(analysis.raters, key=lambda r: -len(r.flags)),
        methods=methods.methods_used(analysis),
        conventions=wording.conventions_used(analysis),
        intervals=_intervals(analysis),
        differences=[trust_words.first_ahead(row) for row in analysis.intervals if row.against],
        difference_plots=list(_difference_plots(analysis, draw)),
        correlation=_correlation(analysis),
        texts=texts_of(analysis),
    )


def _view(analysis: Analysis, name: str, anchor: str, draw: Draw) -> CriterionView:
    from palaver.reports import figures

    rows = wording.rankings_of(analysis, name)
    rankings = [_ranking_view(row, draw) for row in rows]
    summary = next((c for c in analysis.criteria if c.criterion == name), None)
    bars = strips = heatmap = Markup()
    darkest = 0.0
    if summary is not None:
        summary = dataclasses.replace(summary, raters=summary.raters[:MOST_RATERS])
        if summary.bins and summary.systems and not summary.choices:  # choices have a table of their own
            bars = draw(figures.system_bars, summary)
        if summary.bins and summary.raters:
            strips, darkest = draw(figures.rater_strips, summary), figures.darkest_share(summary)
    matrix = next((_first_raters(m) for m in analysis.rater_matrices if m.criterion == name), None)
    if matrix is not None and len(matrix.raters) > 1:
        heatmap = draw(figures.rater_heatmap, matrix)
    return CriterionView(
        name=name,
        anchor=anchor,
        summary=summary,
        rankings=rankings,
        headline=wording.headline_of(analysis, name),
        warning=wording.disagreement(rows),
        matrix=matrix,
        system_bars=bars,
        rater_strips=strips,
        darkest=darkest,
        rater_heatmap=heatmap,
    )


def _difference_plots(analysis: Analysis, draw: Draw) -> Iterator[tuple[str, Markup]]:
    """One figure a criterion: their scales may differ."""
    rows = [trust_words.first_ahead(row) for row in analysis.intervals if row.against and not row.reason]
    for criterion in dict.fromkeys(row.criterion for row in rows):
        from palaver.reports import figures

        of_criterion = [row for row in rows if row.criterion == criterion]
        yield criterion, draw(figures.difference_plot, of_criterion[:MOST_RATERS])


def _first_raters(matrix: RaterMatrix) -> RaterMatrix:
    values = tuple(row[:MOST_RATERS] for row in matrix.values[:MOST_RATERS])
    return dataclasses.replace(matrix, raters=matrix.raters[:MOST_RATERS], values=values)


def _ranking_view(row: RankingRow, draw: Draw) -> RankingView:
    from palaver.reports import figures

    groups = list(zip(wording.rank_labels(row), row.groups, strict=True))
    plot = draw(figures.rank_plot, row) if row.scores else Markup()
    heatmap = draw(figures.ahead_heatmap, row) if len(row.better) > MOST_IN_TABLE else Markup()
    return RankingView(row, groups, wording.score_digits(row), plot, heatmap)


def _intervals(analysis: Analysis) -> list[tuple[str, list[str]]]:
    """How intervals were found -> the measures whose intervals were found so."""
    measures_by_way: dict[str, dict[str, None]] = {}
    for row in analysis.agreement:
        if row.interval:
            measures_by_way.setdefault(row.interval, {})[row.measure] = None
    return [(how, list(measures)) for how, measures in measures_by_way.items()]


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
