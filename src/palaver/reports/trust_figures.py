"""Pictures of `palaver trust`: what a study costs and how sure it would be."""

from __future__ import annotations

from palaver.drawing import DASHED, PALETTE
from palaver.reports.canvas import MUTED, SMALL, canvas, frame, inline_svg, titles, write
from palaver.reports.numbers import number
from palaver.studies.trust import TrustReport

_MARKS = ("circle", "square", "diamond")


def plan_plot(report: TrustReport, prefix: str) -> str:
    """Cost against reach: a curve and a mark for each plan; a dashed line at the reach that was wanted."""
    chart = canvas(54, 14, 16 + 16 * len(report.curves), 44, 240)
    chosen = {row.plan: row for row in report.rows if not row.reason}
    most = 1.6 * max(row.cost for row in chosen.values())
    top = 2.2 * max(row.reach for row in chosen.values())
    frame(chart, (0.0, most), (0.0, top))
    wanted = report.run.config.get("reach")
    if isinstance(wanted, int | float) and 0 <= wanted <= top:
        chart.horizontal(wanted, MUTED, 1, dash=DASHED)
    for k, (name, points) in enumerate(report.curves.items()):
        colour = PALETTE[k % len(PALETTE)]
        seen = [(cost, reach) for cost, reach in points if cost <= most and reach <= top]
        chart.line(seen, colour, 1.8)
        row = chosen[name]
        chart.mark(row.cost, row.reach, colour, 9, shape=_MARKS[k % 3])
        text = f"{name}: {row.dialogues} dialogues, cost {number(row.cost)}"
        write(chart, 0, top, text, size=SMALL, colour=colour, rise=8 + 16 * (len(report.curves) - 1 - k))
    titles(chart, "cost", "a difference is known to ±")
    said = "; ".join(
        f"{name}: cost {number(row.cost)} for ±{number(row.reach)}" for name, row in chosen.items()
    )
    return inline_svg(chart, prefix=prefix, label=f"Cost and certainty of the plans: {said}")
