"""Pictures as SVG, written by ourselves: a canvas with two scales, lines, marks, cells and text.

The layout of our figures is by hand anyway, so a plotting library would only be slow to import and large to
install. The same picture is the same text every time; names are escaped, so they can hold anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe & Ito (2008), without yellow, which is too light for lines."""
DASHED = (4.0, 3.0)
DOTTED = (1.0, 1.65)
"""Lengths of dash and gap in units of the line's width."""

_SHADES = 30
"""So many opacities are told apart in `Canvas.cells`: more would make the page larger and look the same."""
_MOST_OPAQUE = 0.9
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot hold, not even escaped."""
_OUTLINES = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "diamond": ((0, -1.41), (1.41, 0), (0, 1.41), (-1.41, 0)),
    "triangle": ((0, -1), (1, 1), (-1, 1)),
    "cross": (
        *((-1, -0.5), (-0.5, -1), (0, -0.5), (0.5, -1), (1, -0.5), (0.5, 0)),
        *((1, 0.5), (0.5, 1), (0, 0.5), (-0.5, 1), (-1, 0.5), (-0.5, 0)),
    ),
}
"""Corners of a mark, in units of half its size."""


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high` on the pixels from `start` to `end`, evenly or by their logarithms."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of `value`."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


class Canvas:
    """A picture of `width` x `height` pixels; what the margins leave is the plot, which has the two scales.

    Lines, bands and marks take values of the scales, text takes pixels. What comes later lies on top.
    """

    def __init__(
        self, width: float, height: float, *, left: float, right: float, top: float, bottom: float
    ) -> None:
        self.width, self.height = width, height
        self.left, self.right = left, width - right
        self.top, self.bottom = top, height - bottom
        self.x = Scale(0, 1, self.left, self.right)
        self.y = Scale(0, 1, self.bottom, self.top)
        self._elements: list[str] = []

    def set_x(self, low: float, high: float) -> None:
        """`low` is at the left of the plot, `high` at the right."""
        self.x = Scale(low, high, self.left, self.right)

    def set_y(self, low: float, high: float, *, log: bool = False) -> None:
        """`low` is at the bottom of the plot, `high` at the top."""
        self.y = Scale(low, high, self.bottom, self.top, log)

    def line(
        self,
        points: Iterable[tuple[float, float]],
        colour: str,
        width: float,
        *,
        dash: Sequence[float] = (),
        cap: str = "square",
        opacity: float = 1,
    ) -> None:
        """A line through the points; it stops at one that is not finite and begins anew after it."""
        steps = []
        command = "M"
        for x, y in points:
            if math.isfinite(x) and math.isfinite(y):
                steps.append(f"{command}{_number(self.x(x))} {_number(self.y(y))}")
                command = "L"
            else:
                command = "M"
        self._stroke("".join(steps), colour, width, dash, "butt" if dash else cap, opacity)

    def horizontal(
        self,
        y: float,
        colour: str,
        width: float,
        *,
        dash: Sequence[float] = (),
        whole: bool = False,
    ) -> None:
        """A line at `y` from left to right of the plot, or of the whole picture."""
        start, end = (0, self.width) if whole else (self.left, self.right)
        path = f"M{_number(start)} {_number(self.y(y))}H{_number(end)}"
        self._stroke(path, colour, width, dash, "butt", 1)

    def vertical(self, x: float, colour: str, width: float, *, dash: Sequence[float] = ()) -> None:
        """A line at `x` from top to bottom of the plot."""
        path = f"M{_number(self.x(x))} {_number(self.top)}V{_number(self.bottom)}"
        self._stroke(path, colour, width, dash, "butt", 1)

    def band(self, low: float, high: float, colour: str) -> None:
        """A ground between two values of y, as wide as the whole picture."""
        top, bottom = sorted((self.y(low), self.y(high)))
        self._add("rect", x=0, y=top, width=self.width, height=bottom - top, fill=colour)

    def boxes(self, boxes: Iterable[tuple[float, float, float, float]], colour: str) -> None:
        """Filled rectangles (left, bottom, right, top), all as one path."""
        path = ""
        for left, bottom, right, top in boxes:
            path += f"M{_number(self.x(left))} {_number(self.y(bottom))}"
            path += f"V{_number(self.y(top))}H{_number(self.x(right))}V{_number(self.y(bottom))}z"
        if path:
            self._add("path", d=path, fill=colour)

    def mark(
        self,
        x: float,
        y: float,
        colour: str,
        size: float,
        *,
        shape: str = "circle",
        hollow: bool = False,
        opacity: float = 1,
    ) -> None:
        """A mark `size` pixels wide: circle, square, diamond, triangle or cross.

        There is none where a value is not finite.
        """
        if not (math.isfinite(x) and math.isfinite(y)):
            return
        at_x, at_y, half = self.x(x), self.y(y), size / 2
        style = {"fill": "none", "stroke": colour} if hollow else {"fill": colour}
        if shape == "circle":
            radius = half - 0.5 if hollow else half
            self._add("circle", cx=at_x, cy=at_y, r=radius, opacity=opacity, **style)
        else:
            corners = [
                f"{_number(at_x + half * right)} {_number(at_y + half * down)}"
                for right, down in _OUTLINES[shape]
            ]
            self._add("path", d=f"M{'L'.join(corners)}z", opacity=opacity, **style)

    def cells(self, rows: Sequence[Sequence[float]], above: str, below: str, lines: str) -> None:
        """A heatmap that fills the plot: values of -1..1 as opacity of `above` or, under zero, of `below`.

        The page's ground shows through. Equal neighbours are one stroke and all strokes of a shade one path,
        in units of a cell: a square of 60 systems takes at most 30 kB.
        """
        wide = (self.right - self.left) / len(rows[0])
        high = (self.bottom - self.top) / len(rows)
        strokes: dict[int, list[str]] = {}
        for y, row in enumerate(rows):
            for shade, run in groupby(range(len(row)), key=lambda x: _shade(row[x])):
                cells = list(run)
                strokes.setdefault(shade, []).append(f"M{cells[0]} {y}h{len(cells)}")
        strokes.pop(0, None)
        paths = [
            _element(
                "path",
                d="".join(strokes[shade]),
                stroke=above if shade > 0 else below,
                stroke_opacity=_MOST_OPAQUE * abs(shade) / _SHADES,
            )
            for shade in sorted(strokes)
        ]
        place = f"translate({_number(self.left)} {_number(self.top + high / 2)})"
        place += f" scale({wide:.6g} {high:.6g})"
        self._elements.append(_element("g", "".join(paths), class_="cells", transform=place))
        edges = ""
        for k in range(len(rows) + 1):
            edges += f"M{_number(self.left)} {_number(self.top + k * high)}H{_number(self.right)}"
        for k in range(len(rows[0]) + 1):
            edges += f"M{_number(self.left + k * wide)} {_number(self.top)}V{_number(self.bottom)}"
        self._stroke(edges, lines, 0.6, (), "butt", 1)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float,
        colour: str,
        anchor: str = "start",
        weight: str = "",
        style: str = "",
        turned: bool = False,
        tooltip: str = "",
    ) -> None:
        """`text` with its baseline at the pixel (x, y); `turned` reads upwards."""
        content = (_element("title", _escaped(tooltip)) if tooltip else "") + _escaped(text)
        place: dict[str, str | float] = {"x": x, "y": y}
        if turned:
            place = {"transform": f"translate({_number(x)} {_number(y)}) rotate(-90)"}
        self._add(
            "text",
            content,
            **place,
            font_size=size,
            fill=colour,
            text_anchor="" if anchor == "start" else anchor,
            font_weight=weight,
            font_style=style,
        )

    def svg(self, label: str, id: str = "") -> str:
        """The picture as an element of a page, with `label` for those who cannot see it."""
        view = f"0 0 {_number(self.width)} {_number(self.height)}"
        about = {"viewBox": view, "width": _number(self.width), "height": _number(self.height), "role": "img"}
        return _element("svg", "".join(self._elements), id=id, **about, aria_label=label)

    def _stroke(
        self, path: str, colour: str, width: float, dash: Sequence[float], cap: str, opacity: float
    ) -> None:
        if path:
            self._add(
                "path",
                d=path,
                fill="none",
                stroke=colour,
                stroke_width=width,
                stroke_dasharray=" ".join(_number(length * width) for length in dash),
                stroke_linecap="" if cap == "butt" else cap,
                opacity=opacity,
            )

    def _add(self, name: str, content: str = "", **attributes: str | float) -> None:
        self._elements.append(_element(name, content, **attributes))


def standalone(svg: str) -> str:
    """The picture of `Canvas.svg` as a file of its own, on white ground."""
    about = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" stroke-linejoin="round"'
    start, _, rest = svg.partition(">")
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f"{start.replace('<svg', f'<svg {about}', 1)}>{ground}{rest}"


def round_values(low: float, high: float, most: int = 5) -> list[float]:
    """Round values between the two, as many steps of 1, 2, 2.5 or 5 times a power of ten as `most` allows.

    >>> round_values(0, 1), round_values(-0.67, 0.67)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-0.5, 0.0, 0.5])
    """
    least = (high - low) / most * (1 - 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= least)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def round_log_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between the two; round values where these would be fewer than three.

    >>> round_log_values(3, 120), round_log_values(31, 48)
    ([5.0, 10.0, 20.0, 50.0, 100.0], [35.0, 40.0, 45.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [float(f"{k * 10.0**power:.12g}") for power in powers for k in (1, 2, 5)]
    inside = [value for value in values if low <= value <= high]
    return inside if len(inside) >= 3 else round_values(low, high)


def _shade(value: float) -> int:
    return 0 if math.isnan(value) else round(max(-1.0, min(1.0, value)) * _SHADES)


def _number(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _escaped(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))


def _element(name: str, content: str = "", **attributes: str | float) -> str:
    """An element; attributes that are empty, or an opacity of 1, are left out."""
    written = ""
    for key, value in attributes.items():
        if value == "" or (key == "opacity" and value == 1):
            continue
        text = _escaped(value) if isinstance(value, str) else _number(value)
        written += f' {key.rstrip("_").replace("_", "-")}="{text}"'
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"
