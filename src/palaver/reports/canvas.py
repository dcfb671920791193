"""What all figures are drawn on: a canvas in pixels, text set by hand, room for names, axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.cells import cell_len

from palaver.reports.svg import INK, LINE, MUTED

WIDTH = 420
TEXT = 12.5
SMALL = 11.0
DASHED = (0, (4, 3))
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe & Ito (2008), without yellow, which is too light for lines."""
_AS_IT_IS: dict[str, Any] = {"textcoords": "offset pixels", "parse_math": False, "annotation_clip": False}
_ASCENT = 0.36
"""Half the height of a digit in units of the font size."""


def room(names: Iterable[str]) -> float:
    """Pixels for the longest of the names, as they are set to the left of the axes."""
    widest = max(map(cell_len, names), default=0)
    return min(0.42 * WIDTH, widest * TEXT * 0.56 + 14)


def canvas(left: float, right: float, top: float, bottom: float, height: float) -> tuple[Figure, Axes]:
    """A figure of WIDTH pixels whose axes are `height` pixels high, with the given margins and no frame."""
    total = top + height + bottom
    figure = Figure(figsize=(WIDTH / 72, total / 72), dpi=72)
    axes = figure.add_axes(
        (left / WIDTH, bottom / total, (WIDTH - left - right) / WIDTH, height / total), frameon=False
    )
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    return figure, axes


def write(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    *,
    size: float = TEXT,
    color: str = INK,
    rise: float | None = None,
    **style: Any,
) -> None:
    """`text` at `x` pixels from the left of the axes, in the middle of row `y` (or `rise` pixels above it).

    The baseline is set by hand: centring by matplotlib would use the metrics of a font the page lacks.
    """
    offset = (x, -_ASCENT * size if rise is None else rise)
    style |= {"xycoords": ("axes fraction", "data"), "va": "baseline", "fontsize": size, "color": color}
    axes.annotate(text, (0, y), xytext=offset, **_AS_IT_IS, **style)


def write_below(
    axes: Axes, x: float, y: float, text: str, *, drop: float = 6, color: str = MUTED, **style: Any
) -> None:
    """`text` in small letters, centred, `drop` pixels below the point (x, y) of the data."""
    style |= {"ha": "center", "va": "top", "fontsize": SMALL, "color": color}
    axes.annotate(text, (x, y), xytext=(0, -drop), **_AS_IT_IS, **style)


def draw_value(axes: Axes, x: float, text: str) -> None:
    """A line from top to bottom at `x`, its value written below the axes."""
    axes.axvline(x, color=LINE, linewidth=0.8, zorder=0)
    write_below(axes, x, axes.get_ylim()[0], text)


def spread_labels(values: Sequence[float], gap: float, high: float) -> list[float]:
    """Places for labels near `values`, in their order, `gap` apart from each other, none above `high`."""
    order = np.argsort(values, kind="stable")
    places = [values[i] for i in order]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    places[-1] = min(places[-1], high)
    for i in range(len(places) - 2, -1, -1):
        places[i] = min(places[i], places[i + 1] - gap)
    by_value = dict(zip(order, places, strict=True))
    return [by_value[i] for i in range(len(places))]


def frame(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Limits, and lines with their numbers at round values."""
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    for value in MaxNLocator(5).tick_values(*y):
        if y[0] <= value <= y[1]:
            axes.axhline(value, color=LINE, linewidth=0.7, zorder=0)
            write(axes, -6, value, f"{value:g}", ha="right", size=SMALL, color=MUTED)
    for value in MaxNLocator(5).tick_values(*x):
        if x[0] <= value <= x[1]:
            write_below(axes, value, y[0], f"{value:g}")


def titles(axes: Axes, x: str, y: str) -> None:
    """What the two axes show."""
    write_below(axes, 0.5, 0, x, drop=24, color=INK, xycoords="axes fraction")
    axes.annotate(
        y, (0, 0.5), xycoords="axes fraction", xytext=(-52, 0), textcoords="offset pixels", ha="left",
        va="center", rotation=90, fontsize=SMALL, color=INK, annotation_clip=False,
    )  # fmt: skip
