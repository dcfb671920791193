"""What the figures of reports have in common: the page's colours, room for names, text in rows, axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from palaver.drawing import Canvas, round_values
from palaver.reports.names import clean, shorten

WIDTH = 420
TEXT = 12.5
SMALL = 11.0
INK, MUTED, LINE = "var(--ink)", "var(--muted)", "var(--line)"
BAND, ACCENT = "var(--band)", "var(--accent)"
"""The page says what these are, so figures follow dark mode."""
_MIDDLE = 0.36
"""Half the height of a digit in units of the font size."""
_ASCENT = 0.76
"""The height of a letter with its stem."""


def room(names: Iterable[str]) -> float:
    """Pixels for the longest of the names, as they are set to the left of the plot."""
    widest = max(map(cell_len, names), default=0)
    return min(0.42 * WIDTH, widest * TEXT * 0.56 + 14)


def canvas(left: float, right: float, top: float, bottom: float, height: float) -> Canvas:
    """A canvas of WIDTH pixels whose plot is `height` pixels high, with the given margins."""
    return Canvas(WIDTH, top + height + bottom, left=left, right=right, top=top, bottom=bottom)


def write(
    chart: Canvas,
    x: float,
    y: float,
    text: str,
    *,
    size: float = TEXT,
    colour: str = INK,
    rise: float | None = None,
    name: str = "",
    **style: Any,
) -> None:
    """`text` at `x` pixels from the left of the plot, in the middle of row `y` (or `rise` pixels above it).

    `name` is what `text` was made from; where it says more, it is the tooltip.
    """
    baseline = chart.y(y) + (_MIDDLE * size if rise is None else -rise)
    _text(chart, chart.left + x, baseline, text, size=size, colour=colour, name=name, **style)


def write_below(
    chart: Canvas,
    x: float,
    text: str,
    *,
    drop: float = 6,
    colour: str = MUTED,
    name: str = "",
    turned: bool = False,
) -> None:
    """`text` in small letters, `drop` pixels below the plot, its middle at the value `x`."""
    place, top = chart.x(x), chart.bottom + drop
    style: dict[str, Any] = {"size": SMALL, "colour": colour, "name": name}
    if turned:
        _text(chart, place + _MIDDLE * SMALL, top, text, anchor="end", turned=True, **style)
    else:
        _text(chart, place, top + _ASCENT * SMALL, text, anchor="middle", **style)


def _text(chart: Canvas, x: float, y: float, text: str, *, name: str, **style: Any) -> None:
    whole = clean(name) if name else text
    chart.text(x, y, text, tooltip="" if whole == text else whole, **style)


def draw_value(chart: Canvas, x: float, text: str) -> None:
    """A line from top to bottom at `x`, its value written below the plot."""
    chart.vertical(x, LINE, 0.8)
    write_below(chart, x, text)


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


def frame(chart: Canvas, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Limits, and lines with their numbers at round values."""
    chart.set_x(*x)
    chart.set_y(*y)
    for value in round_values(*y):
        chart.horizontal(value, LINE, 0.7)
        write(chart, -6, value, _short(value), anchor="end", size=SMALL, colour=MUTED)
    for value in round_values(*x):
        write_below(chart, value, _short(value))


def _short(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def title_below(chart: Canvas, text: str, *, drop: float = 24, colour: str = INK) -> None:
    """What the x axis shows."""
    write_below(chart, (chart.x.low + chart.x.high) / 2, text, drop=drop, colour=colour)


def titles(chart: Canvas, x: str, y: str) -> None:
    """What the two axes show."""
    title_below(chart, x)
    place, middle = chart.left - 52 + _ASCENT * SMALL, (chart.top + chart.bottom) / 2
    chart.text(place, middle, y, size=SMALL, colour=INK, anchor="middle", turned=True)


def inline_svg(chart: Canvas, *, prefix: str, label: str) -> str:
    """The figure for a page, in which `prefix` is its id; `label` says what can be seen."""
    return chart.svg(shorten(label, 400), id=prefix)
