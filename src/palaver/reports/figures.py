"""The figures of the report. Text carries the meaning; colour (Okabe & Ito 2008) only repeats it.

All are drawn about 400 pixels wide, so that they are readable on a phone without zooming, and grow on a
wider page. Sizes are pixels: at 72 dots per inch a point is a pixel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray
from rich.cells import cell_len

from palaver.reports.canvas import SMALL, WIDTH, canvas, room, write, write_below
from palaver.reports.names import short_names, shorten
from palaver.reports.numbers import count, number
from palaver.reports.svg import ACCENT, BAND, LINE, MUTED, inline_svg
from palaver.reports.wording import method_title, rank_labels, ranking_text
from palaver.studies.results import CriterionSummary, Distribution, IntervalRow, RankingRow, RaterMatrix

BLUE = (0x00 / 255, 0x72 / 255, 0xB2 / 255)
ORANGE = (0xD5 / 255, 0x5E / 255, 0x00 / 255)
_NAME = 22
_MOST_LABELLED = 30


def rank_plot(row: RankingRow, prefix: str) -> str:
    """Systems best first, score with interval; a shaded or plain band for each group."""
    shorts = short_names((s.system for s in row.scores), _NAME)
    n = len(row.scores)
    step = 24 if n <= 20 else 17
    left, right, bottom = room(shorts.values()), 50, 40
    figure, axes = canvas(left, right, 4, bottom, step * n)
    axes.set_ylim(n - 0.5, -0.5)
    _bands(axes, row, left, right)
    _value_axis(axes, [x for s in row.scores for x in (s.score, s.low, s.high)])
    for y, s in enumerate(row.scores):
        write(axes, -8, y, shorts[s.system], ha="right")
        if not math.isfinite(s.score):
            write(axes, 8, y, "undefined", color=MUTED, style="italic")
            continue
        if math.isfinite(s.low) and math.isfinite(s.high):
            axes.plot([s.low, s.high], [y, y], color=ACCENT, linewidth=2.2, solid_capstyle="round")
        axes.plot([s.score], [y], "o", color=ACCENT, markersize=7)
    unit = axes.set_xlabel(shorten(row.unit, 60), fontsize=SMALL, color=MUTED, labelpad=5)
    unit.set_parse_math(False)
    label = f"Rank plot of {row.criterion} by {method_title(row.method)}: {ranking_text(row)}"
    return inline_svg(figure, prefix=prefix, label=label, shorts=shorts)


def difference_plot(rows: Sequence[IntervalRow], prefix: str) -> str:
    """Each pair's difference: a thick interval clustered by dialogue and rater, a thin one of rows alone."""
    several = len({row.criterion for row in rows}) > 1
    names = [
        f"{row.criterion}: {row.system} – {row.against}" if several else f"{row.system} – {row.against}"
        for row in rows
    ]
    shorts = short_names(dict.fromkeys(names), _NAME)
    left, right, bottom = room(shorts.values()), 20, 40
    figure, axes = canvas(left, right, 4, bottom, 24 * len(rows))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    _value_axis(axes, [x for row in rows for x in (row.low, row.high, *_equality(row))])
    for y, (row, name) in enumerate(zip(rows, names, strict=True)):
        write(axes, -8, y, shorts[name], ha="right")
        reach = 1.96 * row.se_rows
        axes.plot([row.low, row.high], [y, y], color=ACCENT, linewidth=2.2, solid_capstyle="round")
        axes.plot([row.value - reach, row.value + reach], [y + 0.25] * 2, color=MUTED, linewidth=1)
        axes.plot([row.value], [y], "o", color=ACCENT, markersize=7)
    for place in {x for row in rows for x in _equality(row)}:
        axes.axvline(place, color=MUTED, linewidth=1, linestyle=":")
    text = "difference; thin: as if rows were independent"
    axes.set_xlabel(text, fontsize=SMALL, color=MUTED, labelpad=5)
    spoken = "; ".join(
        f"{row.criterion}, {row.system} against {row.against}: {number(row.value)} "
        f"({number(row.low)} to {number(row.high)})"
        for row in rows
    )
    return inline_svg(figure, prefix=prefix, label=f"Differences of systems: {spoken}", shorts=shorts)


def _equality(row: IntervalRow) -> tuple[float, ...]:
    """Where the two systems would be equal."""
    return (0.5,) if row.is_share else (0.0,)


def _bands(axes: Axes, row: RankingRow, left: float, right: float) -> None:
    """Groups stand together in `scores`; the band runs behind the names too."""
    place = {system: k for k, group in enumerate(row.groups) for system in group}
    labels = rank_labels(row)
    plot = WIDTH - left - right
    ends = (-left / plot, 1 + right / plot)
    rows = [place.get(s.system, -1) for s in row.scores]
    start = 0
    for y in range(1, len(rows) + 1):
        if y < len(rows) and rows[y] == rows[start]:
            continue
        if rows[start] % 2 == 0:
            axes.axhspan(
                start - 0.5, y - 0.5, *ends, facecolor=BAND, edgecolor="none", clip_on=False, zorder=0
            )
        if start:
            axes.axhline(start - 0.5, *ends, color=LINE, linewidth=1, clip_on=False, zorder=1)
        if rows[start] >= 0:
            middle = (start + y - 1) / 2
            write(axes, plot + right - 6, middle, labels[rows[start]], ha="right", weight="bold")
        start = y


def _value_axis(axes: Axes, values: Sequence[float]) -> None:
    finite = [v for v in values if math.isfinite(v)]
    axes.xaxis.set_visible(bool(finite))
    if not finite:
        return
    low, high = min(finite), max(finite)
    pad = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    axes.set_xlim(low - pad, high + pad)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    ticks = axes.xaxis.get_major_locator().tick_values(low - pad, high + pad)
    digits = next((d for d in range(6) if np.allclose(ticks, np.round(ticks, d), rtol=0, atol=1e-9)), 6)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: number(x, digits)))
    axes.tick_params(axis="x", length=0, pad=6, labelsize=SMALL, labelcolor=MUTED)
    axes.grid(axis="x", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)


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
    figure, axes = canvas(left, 4, 18, 4, side)
    np.fill_diagonal(values, np.nan)
    _cells(axes, values)
    size = min(SMALL, max(8.0, 0.95 * side / n))
    for k, name in enumerate(shorts.values()):
        numbered = k == 0 or (k + 1) % 5 == 0
        if numbered or n <= _MOST_LABELLED:  # beyond that names would stand upon each other
            write(axes, -26, k, name, ha="right", size=size)
            write(axes, -5, k, str(k + 1), ha="right", size=size, color=MUTED)
        if numbered:
            write(axes, (k + 0.5) * side / n, -0.5, str(k + 1), ha="center", size=size, color=MUTED, rise=5)
    marks = [(i, j, "−") for i, j in np.argwhere(values < 0)] + [
        (i, j, "·") for i, j in np.argwhere(np.isnan(values)) if i != j
    ]
    if n <= _MOST_LABELLED:
        for i, j, mark in marks:
            write(axes, (j + 0.5) * side / n, float(i), mark, ha="center", size=size)
    return inline_svg(figure, prefix=prefix, label=label, shorts=shorts)


def _cells(axes: Axes, values: NDArray[np.float64]) -> None:
    """Values in -1..1 as opacity of blue (above zero) or orange, so the page's ground shows through."""
    rgba = np.zeros((*values.shape, 4))
    rgba[..., :3] = np.where((values < 0)[..., None], ORANGE, BLUE)
    rgba[..., 3] = np.nan_to_num(np.minimum(np.abs(values), 1.0)) * 0.9
    axes.imshow(rgba, interpolation="none", aspect="auto", zorder=1)
    for edge in range(values.shape[0] + 1):
        axes.axhline(edge - 0.5, color=LINE, linewidth=0.6, zorder=2)
    for edge in range(values.shape[1] + 1):
        axes.axvline(edge - 0.5, color=LINE, linewidth=0.6, zorder=2)


def system_bars(summary: CriterionSummary, prefix: str) -> str:
    """One row of bars for each system over the same bins; heights are shares of the system's ratings."""
    shares = _shares(summary.systems)
    names = short_names((d.name for d in summary.systems), _NAME)
    n, n_bins = shares.shape
    step = 40 if n <= 12 else 26
    left, right = room(names.values()), 52
    bottom, angle = _bin_room(summary.bins, WIDTH - left - right)
    figure, axes = canvas(left, right, 8, bottom, step * n)
    axes.set_xlim(-0.5, n_bins - 0.5)
    axes.set_ylim(n, 0)
    heights = 0.86 * shares / (shares.max() or 1.0)
    axes.add_patch(PathPatch(_bars(heights), facecolor=ACCENT, edgecolor="none"))
    for y, d in enumerate(summary.systems):
        axes.axhline(y + 1, color=LINE, linewidth=1)
        write(axes, -8, y + 1, names[d.name], ha="right", rise=8)
        write(
            axes, WIDTH - left - 2, y + 1, count(sum(d.counts)), ha="right", size=SMALL, color=MUTED, rise=8
        )
    _bin_labels(axes, summary.bins, n, angle)
    label = f"Ratings of {summary.criterion} for each system: bars over the values {', '.join(summary.bins)}"
    return inline_svg(figure, prefix=prefix, label=label, shorts=names)


def _bars(heights: NDArray[np.float64]) -> Path:
    """All bars as one path: row y stands on the line y + 1."""
    boxes = []
    for (y, x), height in np.ndenumerate(heights):
        if height > 0:
            left, right, base, top = x - 0.42, x + 0.42, y + 1, y + 1 - height
            boxes.append([(left, base), (left, top), (right, top), (right, base), (left, base)])
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    vertices = np.array(boxes, dtype=float).reshape(-1, 2)
    return Path(vertices, np.array(codes * len(boxes), dtype=np.uint8))


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
    bottom, angle = _bin_room(summary.bins, WIDTH - left - 4)
    figure, axes = canvas(left, 4, 4, bottom, step * n)
    _cells(axes, _shares(raters) / darkest_share(summary))
    for y, d in enumerate(raters):
        write(axes, -6, y, names[d.name], ha="right", size=SMALL)
    _bin_labels(axes, summary.bins, n - 0.5, angle)
    label = f"Heatmap of how each of {n} raters used the values of {summary.criterion}"
    return inline_svg(figure, prefix=prefix, label=label, shorts=names)


def _shares(distributions: Sequence[Distribution]) -> NDArray[np.float64]:
    counts = np.array([d.counts for d in distributions], dtype=float)
    return np.asarray(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))


def _bin_room(bins: Sequence[str], width: float) -> tuple[float, int]:
    """Room below for the labels of the bins, and their angle: upright labels only where they fit."""
    widest = max(map(cell_len, short_names(bins, 14).values()), default=1) * SMALL * 0.62
    if widest + 4 <= width / max(len(bins), 1):
        return 24.0, 0
    return widest + 14, 90


def _bin_labels(axes: Axes, bins: Sequence[str], y: float, angle: int) -> None:
    shorts = short_names(bins, 14)
    for x, label in enumerate(bins):
        write_below(axes, x, y, shorts[label], rotation=angle)
