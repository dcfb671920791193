"""What all figures are drawn on: a canvas in pixels, text set by hand, room for names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palaver.reports.names import clean, columns
from palaver.reports.svg import INK

WIDTH = 420
TEXT = 12.5
SMALL = 11.0
_ASCENT = 0.36


def room(names: Iterable[str]) -> float:
    """Pixels for the longest of the names, as they are set to the left of the axes."""
    widest = max((columns(name) for name in names), default=0)
    return min(0.42 * WIDTH, widest * TEXT * 0.56 + 14)


def full_names(shorts: dict[str, str]) -> dict[str, str]:
    return {short: clean(name) for name, short in shorts.items()}


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
    axes.annotate(
        text,
        (0, y),
        xycoords=("axes fraction", "data"),
        xytext=(x, -_ASCENT * size if rise is None else rise),
        textcoords="offset pixels",
        va="baseline",
        fontsize=size,
        color=color,
        parse_math=False,
        annotation_clip=False,
        **style,
    )
