"""Pictures of `palaver trust`: what a study costs and how sure it would be."""

from __future__ import annotations

from palaver.reports.canvas import DASHED, PALETTE, SMALL, canvas, frame, titles, write
from palaver.reports.numbers import number
from palaver.reports.svg import MUTED, inline_svg
from palaver.studies.trust import TrustReport

_MARKS = ("o", "s", "D")


def plan_plot(report: TrustReport, prefix: str) -> str:
    """Cost against reach: a curve and a mark for each plan; a dashed line at the reach that was wanted."""
    figure, axes = canvas(54, 14, 16 + 16 * len(report.curves), 44, 240)
    chosen = {row.plan: row for row in report.rows if not row.reason}
    most = 1.6 * max(row.cost for row in chosen.values())
    top = 2.2 * max(row.reach for row in chosen.values())
    frame(axes, (0.0, most), (0.0, top))
    wanted = report.run.config.get("reach")
    if isinstance(wanted, int | float):
        axes.axhline(wanted, color=MUTED, linewidth=1, linestyle=DASHED, zorder=1)
    for k, (name, points) in enumerate(report.curves.items()):
        colour = PALETTE[k % len(PALETTE)]
        seen = [(cost, reach) for cost, reach in points if cost <= most and reach <= top]
        axes.plot([cost for cost, _ in seen], [reach for _, reach in seen], color=colour, linewidth=1.8)
        row = chosen[name]
        axes.plot([row.cost], [row.reach], _MARKS[k % 3], color=colour, markersize=8, clip_on=False)
        text = f"{name}: {row.dialogues} dialogues, cost {number(row.cost)}"
        write(axes, 0, top, text, size=SMALL, color=colour, rise=8 + 16 * (len(report.curves) - 1 - k))
    titles(axes, "cost", "a difference is known to ±")
    said = "; ".join(
        f"{name}: cost {number(row.cost)} for ±{number(row.reach)}" for name, row in chosen.items()
    )
    return inline_svg(figure, prefix=prefix, label=f"Cost and certainty of the plans: {said}")
