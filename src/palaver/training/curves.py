"""Learning curves as a picture: perplexity on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from palaver.drawing import Canvas, round_log_values, round_values, standalone

_INK, _LINE = "#1c1e20", "#d4d7da"
_SIZE = 12.0
_MARGIN = 0.045
"""Of the plot on each side of what it shows."""
_ASTRAY = 1e100
"""A perplexity beyond this says only that something went wrong, and its axis would have no end."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """One line of the picture and its name in the key; `shape` is its marks', "" for none."""

    name: str
    points: Sequence[Point]
    colour: str
    shape: str = ""
    opacity: float = 1.0


def draw_perplexity(curves: Sequence[Curve], x: str, y: str, *, most: float = math.inf) -> str:
    """An SVG file of the curves, with what the axes show; what lies above `most` is cut off."""
    chart = Canvas(614, 346, left=64, right=12, top=8, bottom=46)
    points = [point for curve in curves for point in curve.points if _can_be_drawn(point)]
    if not points:
        points = [(0.0, 1.0), (1.0, 10.0)]
    chart.set_x(*_wider(min(x for x, _ in points), max(x for x, _ in points)))
    low, high = _wider(math.log(min(y for _, y in points)), math.log(max(y for _, y in points)))
    chart.set_y(math.exp(low), min(math.exp(high), most), log=True)
    for value in round_log_values(chart.y.low, chart.y.high):
        chart.horizontal(value, _LINE, 1)
        middle = chart.y(value) + 0.36 * _SIZE
        chart.text(chart.left - 7, middle, f"{value:,g}", size=_SIZE, colour=_INK, anchor="end")
    for value in round_values(chart.x.low, chart.x.high, most=9):
        chart.vertical(value, _LINE, 1)
        place = chart.x(value), chart.bottom + 17
        chart.text(*place, f"{value:,g}", size=_SIZE, colour=_INK, anchor="middle")
    for curve in curves:
        shown = [point for point in curve.points if _can_be_drawn(point)]
        _draw(chart, curve, _cut(shown, chart.y.high))
    chart.set_x(chart.left, chart.right)  # the key is set in pixels
    chart.set_y(chart.bottom, chart.top)
    for k, curve in enumerate(curves):
        middle, end = chart.top + 14 + 18 * k, chart.right - 46
        chart.text(end, middle + 0.36 * _SIZE, curve.name, size=_SIZE, colour=_INK, anchor="end")
        _draw(chart, curve, [(end + 8, middle), (end + 38, middle)])
    across, down = (chart.left + chart.right) / 2, (chart.top + chart.bottom) / 2
    chart.text(across, chart.height - 8, x, size=_SIZE, colour=_INK, anchor="middle")
    chart.text(13, down, y, size=_SIZE, colour=_INK, anchor="middle", turned=True)
    return standalone(chart.svg(f"{y}: {', '.join(curve.name for curve in curves)}"))


def _draw(chart: Canvas, curve: Curve, points: Sequence[Point]) -> None:
    chart.line(points, curve.colour, 1.8 if curve.shape else 1.2, opacity=curve.opacity)
    if curve.shape:
        for point in points:
            chart.mark(*point, curve.colour, 5, shape=curve.shape)


def _can_be_drawn(point: Point) -> bool:
    return math.isfinite(point[0]) and 0 < point[1] < _ASTRAY


def _wider(low: float, high: float) -> tuple[float, float]:
    room = _MARGIN * (high - low) or 0.5
    return low - room, high + room


def _cut(points: Sequence[Point], most: float) -> list[Point]:
    """The line below `most`, up to the places where it crosses it; nan where it is interrupted."""
    line: list[Point] = []
    for i, (x, y) in enumerate(points):
        if i and (y > most) != (points[i - 1][1] > most):
            x0, y0 = points[i - 1]
            share = math.log(most / y0) / math.log(y / y0)  # the axis is logarithmic
            line.append((x0 + share * (x - x0), most))
        line.append((x, y) if y <= most else (math.nan, math.nan))
    return line
