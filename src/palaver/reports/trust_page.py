"""What a `palaver trust` verb found, as an HTML page: the words, a picture, the table."""

from __future__ import annotations

from markupsafe import Markup

from palaver.reports import page
from palaver.reports.methods import methods_of
from palaver.reports.trust import shown_cells, shown_columns
from palaver.reports.trust_words import first_ahead
from palaver.studies.trust import TrustReport

_TITLES = {
    "interval": "How sure are the differences?",
    "ppi": "People and a judge together",
    "alt-test": "May the judge stand in for a person?",
    "sequence": "Is it enough?",
    "plan": "How many people does it take?",
    "calibrate": "May the judge be used?",
}


def trust_page(report: TrustReport) -> str:
    """The whole page as text."""
    words, figures = shown_columns(report)
    rows = [shown_cells(row, (*words, *figures)) for row in report.rows]
    return page.render(
        "trust.html.j2",
        report.run,
        title=_TITLES[report.method],
        sentences=report.words,
        notes=report.notes,
        picture=Markup(_picture(report)),
        heads=[name.replace("_", " ") for name in words],
        figures=[name.replace("_", " ") for name in figures],
        rows=rows,
        sampling=report.sampling,
        methods=methods_of("trust", [report.method]),
    )


def _picture(report: TrustReport) -> str:
    if report.method == "plan" and report.curves:
        from palaver.reports.trust_figures import plan_plot

        return plan_plot(report, "f1")
    if report.method == "interval":
        from palaver.reports.figures import difference_plot

        rows = [first_ahead(row) for row in report.rows if row.against and not row.reason]
        return difference_plot(rows, "f1") if rows else ""
    return ""
