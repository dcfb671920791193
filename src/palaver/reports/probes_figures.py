"""The picture of a set: where the cosines of its three kinds of pairs lie, for each encoder."""

from __future__ import annotations

import math

from palaver.probes.recipe import SETS
from palaver.probes.results import ProbeResult
from palaver.reports.canvas import SMALL, WIDTH, canvas, draw_value, inline_svg, room, write
from palaver.reports.names import short_names
from palaver.reports.numbers import number

KINDS = (
    ("plus", "S and S+", "#0072b2"),
    ("star", "S and S*", "#d55e00"),
    ("between", "S+ and S*", "#7f7f7f"),
)
_GAP = 13
"""Pixels between the three lines of an encoder."""


def cosine_spreads(result: ProbeResult, name: str, prefix: str) -> str:
    """A thin line for 90 per cent of the triplets, a thick one for the middle half, a dot for the mean."""
    shorts = short_names((row.name for row in result.encoders), 22)
    scores = [result.score(row.name, name) for row in result.encoders]
    values = [
        q for s in scores for kind, _, _ in KINDS for q in getattr(s, kind).quantiles if math.isfinite(q)
    ]
    low, high = (min(values), 1.0) if values else (0.0, 1.0)
    low -= 0.04 * (high - low) or 0.01
    left, height = room(shorts.values()), (3 * _GAP + 12) * len(scores)
    chart = canvas(left, 16, 24, 22, height)
    chart.set_x(low, high + 0.02 * (high - low))
    chart.set_y(len(scores) - 0.5, -0.5)
    for k in range(5):
        x = low + k * (high - low) / 4
        draw_value(chart, x, number(x, 2 if high - low > 0.1 else 3))
    step = _GAP / (3 * _GAP + 12)
    for y, (row, score) in enumerate(zip(result.encoders, scores, strict=True)):
        write(chart, -8, y, shorts[row.name], anchor="end", size=SMALL, name=row.name)
        for n, (kind, _, colour) in enumerate(KINDS):
            spread = getattr(score, kind)
            at = y + (n - 1) * step
            q5, q25, _, q75, q95 = spread.quantiles
            chart.line([(q5, at), (q95, at)], colour, 1)
            chart.line([(q25, at), (q75, at)], colour, 4)
            chart.mark(spread.mean, at, colour, 7)
    for n, (_, label, colour) in enumerate(KINDS):
        write(chart, n * (WIDTH - left) / 3.2, -0.5, f"● {label}", size=SMALL, colour=colour, rise=8)
    said = "; ".join(
        f"{s.encoder}: {', '.join(f'{label} {number(getattr(s, kind).mean)}' for kind, label, _ in KINDS)}"
        for s in scores
    )
    label = f"Cosines in {SETS[name].title}, means: {said}"
    return inline_svg(chart, prefix=prefix, label=label)
