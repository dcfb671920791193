"""The figures of the report. Text carries the meaning; colour (Okabe & Ito 2008) only repeats it.

All are drawn about 400 pixels wide, so that they are readable on a phone without zooming, and grow on a
wider page. Sizes are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from palaver.drawing import DOTTED, Canvas, round_values
from palaver.reports.canvas import (
    ACCENT,
    BAND,
    LINE,
    MUTED,
    SMALL,
    WIDTH,
    canvas,
    draw_value,
    inline_svg,
    room,
    title_below,
    write,
    write_below,
)
from palaver.reports.names import short_names, shorten
from palaver.reports.numbers import count, number
from palaver.reports.wording import method_title, rank_labels, ranking_text
from palaver.studies.results import CriterionSummary, Distribution, IntervalRow, RankingRow, RaterMatrix

BLUE = "#0072b2"
ORANGE = "#d55e00"
_NAME = 22
_MOST_LABELLED = 30


def rank_plot(row: RankingRow, prefix: str) -> str:
    """Systems best first, score with interval; a shaded or plain band for each group."""
    shorts = short_names((s.system for s in row.scores), _NAME)
    n = len(row.scores)
    step = 24 if n <= 20 else 17
    left, right, bottom = room(shorts.values()), 50, 40
    chart = canvas(left, right, 4, bottom, step * n)
    chart.set_y(n - 0.5, -0.5)
    _bands(chart, row)
    _value_axis(chart, [x for s in row.scores for x in (s.score, s.low, s.high)], shorten(row.unit, 60))
    for y, s in enumerate(row.scores):
        write(chart, -8, y, shorts[s.system], anchor="end", name=s.system)
        if not math.isfinite(s.score):
            write(chart, 8, y, "undefined", colour=MUTED, style="italic")
            continue
        if math.isfinite(s.low) and math.isfinite(s.high):
            chart.line([(s.low, y), (s.high, y)], ACCENT, 2.2, cap="round")
        chart.mark(s.score, y, ACCENT, 8)
    label = f"Rank plot of {row.criterion} by {method_title(row.method)}: {ranking_text(row)}"
    return inline_svg(chart, prefix=prefix, label=label)


def difference_plot(rows: Sequence[IntervalRow], prefix: str) -> str:
    """Each pair's difference: a thick interval clustered by dialogue and rater, a thin one of rows alone."""
    by_criterion: dict[str, list[IntervalRow]] = {}
    for row in rows:
        by_criterion.setdefault(row.criterion, []).append(row)
    rows = [row for own in by_criterion.values() for row in own]
    lines: list[IntervalRow | str] = []
    for criterion, own in by_criterion.items():
        lines += [criterion, *own] if len(by_criterion) > 1 else own
    pairs = _pair_names(rows)
    shorts = short_names(by_criterion, _NAME)
    left, right, bottom = room([*pairs, *shorts.values()]), 20, 40
    chart = canvas(left, right, 4, bottom, 24 * len(lines))
    chart.set_y(len(lines) - 0.5, -0.5)
    values = [x for row in rows for x in (row.low, row.high, *_equality(row))]
    _value_axis(chart, values, "difference; thin: as if rows were independent")
    short_pairs = iter(pairs)
    for y, line in enumerate(lines):
        if isinstance(line, str):
            write(chart, -8, y, shorts[line], anchor="end", weight="bold", name=line)
            continue
        row = line
        write(chart, -8, y, next(short_pairs), anchor="end", name=f"{row.system} – {row.against}")
        reach = 1.96 * row.se_rows
        ends = (max(row.value - reach, chart.x.low), min(row.value + reach, chart.x.high))
        chart.line([(row.low, y), (row.high, y)], ACCENT, 2.2, cap="round")
        chart.line([(end, y + 0.25) for end in ends], MUTED, 1)
        chart.mark(row.value, y, ACCENT, 8)
    for place in sorted({x for row in rows for x in _equality(row)}):
        chart.vertical(place, MUTED, 1, dash=DOTTED)
    spoken = "; ".join(
        f"{row.criterion}, {row.system} against {row.against}: {number(row.value)} "
        f"({number(row.low)} to {number(row.high)})"
        for row in rows
    )
    return inline_svg(chart, prefix=prefix, label=f"Differences of systems: {spoken}")


def _pair_names(rows: Sequence[IntervalRow]) -> list[str]:
    """Both systems of each row in at most `_NAME` characters: neither is cut for the other's sake alone."""
    systems = list(dict.fromkeys(name for row in rows for name in (row.system, row.against)))
    names: list[str] = []
    for width in range(_NAME, (_NAME - 3) // 2 - 1, -1):
        shorts = short_names(systems, width)
        names = [f"{shorts[row.system]} – {shorts[row.against]}" for row in rows]
        if max(map(cell_len, names), default=0) <= _NAME:
            break
    return names


def _equality(row: IntervalRow) -> tuple[float, ...]:
    """Where the two systems would be equal."""
    return (0.5,) if row.is_share else (0.0,)


def _bands(chart: Canvas, row: RankingRow) -> None:
    """Groups stand together in `scores`; the band runs behind the names too."""
    place = {system: k for k, group in enumerate(row.groups) for system in group}
    labels = rank_labels(row)
    rows = [place.get(s.system, -1) for s in row.scores]
    start = 0
    for y in range(1, len(rows) + 1):
        if y < len(rows) and rows[y] == rows[start]:
            continue
        if rows[start] % 2 == 0:
            chart.band(start - 0.5, y - 0.5, BAND)
        if start:
            chart.horizontal(start - 0.5, LINE, 1, whole=True)
        if rows[start] >= 0:
            middle = (start + y - 1) / 2
            end = chart.width - chart.left - 6
            write(chart, end, middle, labels[rows[start]], anchor="end", weight="bold")
        start = y


def _value_axis(chart: Canvas, values: Sequence[float], unit: str) -> None:
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return
    low, high = min(finite), max(finite)
    pad = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    chart.set_x(low - pad, high + pad)
    ticks = round_values(low - pad, high + pad)
    digits = next((d for d in range(6) if np.allclose(ticks, np.round(ticks, d), rtol=0, atol=1e-9)), 6)
    for value in ticks:
        draw_value(chart, value, number(value, digits))
    title_below(chart, unit, drop=22, colour=MUTED)


def ahead_heatmap(row: RankingRow, prefix: str) -> str:
    """Share of replicates in which the row's system is ahead of the column's, for many systems."""
    label = (
        f"Heatmap for {row.criterion}: in which share of the replicates each system is ahead of each other"
    )
    return _square(row.better, [s.system for s in row.scores], prefix, label)


def rater_heatmap(matrix: RaterMatrix, prefix: str) -> str:
    """Pearson correlation of every two raters; minus marks what is below zero, a dot what is undefined."""
    label = f"Heatmap of the agreement of every two raters on {matrix.criterion}"
    return _square(matrix.values, matrix.raters, prefix, label)


def _square(rows: Sequence[Sequence[float]], names: Sequence[str], prefix: str, label: str) -> str:
    values, n = np.array(rows, dtype=float), len(names)
    shorts = short_names(names, _NAME)
    left = room(shorts.values()) + 20
    side = WIDTH - left - 4
    chart = canvas(left, 4, 18, 4, side)
    chart.set_y(n - 0.5, -0.5)
    np.fill_diagonal(values, np.nan)
    chart.cells(values.tolist(), BLUE, ORANGE, LINE)
    size = min(SMALL, max(8.0, 0.95 * side / n))
    for k, (name, short) in enumerate(shorts.items()):
        numbered = k == 0 or (k + 1) % 5 == 0
        if numbered or n <= _MOST_LABELLED:  # beyond that names would stand upon each other
            write(chart, -26, k, short, anchor="end", size=size, name=name)
            write(chart, -5, k, str(k + 1), anchor="end", size=size, colour=MUTED)
        if numbered:
            place = (k + 0.5) * side / n
            write(chart, place, -0.5, str(k + 1), anchor="middle", size=size, colour=MUTED, rise=5)
    marks = [(i, j, "−") for i, j in np.argwhere(values < 0)] + [
        (i, j, "·") for i, j in np.argwhere(np.isnan(values)) if i != j
    ]
    if n <= _MOST_LABELLED:
        for i, j, mark in marks:
            write(chart, (j + 0.5) * side / n, float(i), mark, anchor="middle", size=size)
    return inline_svg(chart, prefix=prefix, label=label)


def system_bars(summary: CriterionSummary, prefix: str) -> str:
    """One row of bars for each system over the same bins; heights are shares of the system's ratings."""
    shares = _shares(summary.systems)
    names = short_names((d.name for d in summary.systems), _NAME)
    n, n_bins = shares.shape
    step = 40 if n <= 12 else 26
    left, right = room(names.values()), 52
    bottom, upright = _bin_room(summary.bins, WIDTH - left - right)
    chart = canvas(left, right, 8, bottom, step * n)
    chart.set_x(-0.5, n_bins - 0.5)
    chart.set_y(n, 0)  # row y stands on the line y + 1
    heights = 0.86 * shares / (shares.max() or 1.0)
    bars = [
        (x - 0.42, y + 1, x + 0.42, y + 1 - height)
        for (y, x), height in np.ndenumerate(heights)
        if height > 0
    ]
    chart.boxes(bars, ACCENT)
    for y, d in enumerate(summary.systems):
        chart.horizontal(y + 1, LINE, 1)
        write(chart, -8, y + 1, names[d.name], anchor="end", rise=8, name=d.name)
        end, total = WIDTH - left - 2, count(sum(d.counts))
        write(chart, end, y + 1, total, anchor="end", size=SMALL, colour=MUTED, rise=8)
    _bin_labels(chart, summary.bins, upright)
    label = f"Ratings of {summary.criterion} for each system: bars over the values {', '.join(summary.bins)}"
    return inline_svg(chart, prefix=prefix, label=label)


def darkest_share(summary: CriterionSummary) -> float:
    """The share of a rater's ratings that the darkest cell of `rater_strips` stands for."""
    return float(_shares(summary.raters).max()) or 1.0


def rater_strips(summary: CriterionSummary, prefix: str) -> str:
    """Raters x bins as a heatmap of each rater's shares."""
    raters = summary.raters
    names = short_names((d.name for d in raters), _NAME)
    n = len(raters)
    step = 17
    left = room(names.values())
    bottom, upright = _bin_room(summary.bins, WIDTH - left - 4)
    chart = canvas(left, 4, 4, bottom, step * n)
    chart.set_x(-0.5, len(summary.bins) - 0.5)
    chart.set_y(n - 0.5, -0.5)
    chart.cells((_shares(raters) / darkest_share(summary)).tolist(), BLUE, ORANGE, LINE)
    for y, d in enumerate(raters):
        write(chart, -6, y, names[d.name], anchor="end", size=SMALL, name=d.name)
    _bin_labels(chart, summary.bins, upright)
    label = f"Heatmap of how each of {n} raters used the values of {summary.criterion}"
    return inline_svg(chart, prefix=prefix, label=label)


def _shares(distributions: Sequence[Distribution]) -> NDArray[np.float64]:
    counts = np.array([d.counts for d in distributions], dtype=float)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _bin_room(bins: Sequence[str], width: float) -> tuple[float, bool]:
    """Room below for the labels of the bins, and whether they are upright, which is only where they fit."""
    widest = max(map(cell_len, short_names(bins, 14).values()), default=1) * SMALL * 0.62
    if widest + 4 <= width / max(len(bins), 1):
        return 24.0, True
    return widest + 14, False


def _bin_labels(chart: Canvas, bins: Sequence[str], upright: bool) -> None:
    shorts = short_names(bins, 14)
    for x, label in enumerate(bins):
        write_below(chart, x, shorts[label], turned=not upright, name=label)
