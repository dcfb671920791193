"""Pictures: where values lie, what is left out, round numbers, text that can hold anything."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from palaver.drawing import Canvas, round_log_values, round_values, standalone

NAN = float("nan")


@pytest.fixture
def chart() -> Canvas:
    """A plot from (10, 5) to (90, 45), in which x is 0..8 and y 0..4."""
    chart = Canvas(100, 50, left=10, right=10, top=5, bottom=5)
    chart.set_x(0, 8)
    chart.set_y(0, 4)
    return chart


def drawn(chart: Canvas) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(chart.svg("a picture")).iter())[1:]


def test_values_lie_where_the_scales_say(chart: Canvas) -> None:
    assert (chart.x(0), chart.x(8), chart.y(0), chart.y(4)) == (10, 90, 45, 5)
    chart.set_y(1, 10_000, log=True)
    assert (chart.y(1), chart.y(100), chart.y(10_000)) == pytest.approx((45, 25, 5))


def test_lines_marks_and_boxes(chart: Canvas) -> None:
    chart.line([(0, 0), (4, 1), (8, 4)], "red", 2, dash=(4, 3))
    chart.boxes([(0, 0, 1, 2), (1, 0, 2, 4)], "blue")
    chart.mark(4, 2, "green", 6)
    line, boxes, mark = drawn(chart)
    assert (line.get("d"), line.get("stroke-dasharray")) == ("M10 45L50 35L90 5", "8 6")
    assert boxes.get("d") == "M10 45V25H20V45zM20 45V5H30V45z"
    assert (mark.get("cx"), mark.get("cy"), mark.get("r")) == ("50", "25", "3")


def test_what_is_not_finite_is_not_drawn(chart: Canvas) -> None:
    chart.line([(0, 0), (1, 1), (2, NAN), (3, 3), (4, 4)], "red", 1)
    chart.line([(NAN, 0), (1, NAN)], "red", 1)
    chart.mark(NAN, 1, "red", 4)
    (line,) = drawn(chart)
    assert line.get("d") == "M10 45L20 35M40 15L50 5"


@pytest.mark.parametrize("shape", ["circle", "square", "diamond", "triangle", "cross"])
def test_marks_have_their_middle_at_the_value(chart: Canvas, shape: str) -> None:
    chart.mark(4, 2, "red", 8, shape=shape)
    (mark,) = drawn(chart)
    if shape == "circle":
        assert (mark.get("cx"), mark.get("cy")) == ("50", "25")
    else:
        corners = [tuple(map(float, c.split())) for c in (mark.get("d") or "").strip("Mz").split("L")]
        xs, ys = zip(*corners, strict=True)
        assert ((min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2) == pytest.approx((50, 25))


def test_cells_of_one_shade_are_one_path_and_undefined_ones_are_empty(chart: Canvas) -> None:
    chart.cells([[1, 1, 0.5], [NAN, -1, 1]], "blue", "orange", "grey")
    group, below, half, full, edges = drawn(chart)
    assert group.get("transform") == "translate(10 15) scale(26.6667 20)"
    assert (below.get("d"), below.get("stroke"), below.get("stroke-opacity")) == ("M1 1h1", "orange", "0.9")
    assert (half.get("d"), half.get("stroke"), half.get("stroke-opacity")) == ("M2 0h1", "blue", "0.45")
    assert (full.get("d"), full.get("stroke-opacity")) == ("M0 0h2M2 1h1", "0.9")
    assert (edges.get("d") or "").count("M") == 3 + 4


def test_text_can_hold_anything(chart: Canvas) -> None:
    name = '<b>"A" & $x_1$</b> \x00\x1b\ud800 系统'
    chart.text(1, 2, name, size=12, colour="red", tooltip=name)
    text, title = drawn(chart)
    shown = '<b>"A" & $x_1$</b> \ufffd\ufffd\ufffd 系统'
    assert (title.text, title.tail) == (shown, shown)
    assert (text.get("x"), text.get("y"), text.get("font-size")) == ("1", "2", "12")


def test_a_file_of_its_own_is_svg_by_its_namespace(chart: Canvas) -> None:
    chart.mark(4, 2, "red", 6)
    root = ElementTree.fromstring(standalone(chart.svg("a > b")))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("aria-label") == "a > b"
    assert [child.get("fill") for child in root] == ["#ffffff", "red"]


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 12, [0, 2.5, 5, 7.5, 10]),
        (0, 13, [0, 5, 10]),
        (-0.06, 0.06, [-0.05, -0.025, 0, 0.025, 0.05]),
        (0.61, 0.74, [0.65, 0.7]),
        (1234, 1239, [1234, 1235, 1236, 1237, 1238, 1239]),
        (0, 3e-7, [0, 1e-7, 2e-7, 3e-7]),
    ],
)
def test_round_values(low: float, high: float, values: list[float]) -> None:
    assert round_values(low, high) == values


@pytest.mark.parametrize("start", [-3.7, 0.0, 0.13, 999.0])
@pytest.mark.parametrize("width", [1e-3, 0.7, 1.0, 3.3, 49.0, 1e6])
def test_there_are_always_a_few_round_values(start: float, width: float) -> None:
    values = round_values(start, start + width)
    assert 2 <= len(values) <= 6
    assert start - 1e-9 * width <= values[0] < values[-1] <= start + width * (1 + 1e-9)


def test_round_values_of_a_logarithmic_axis() -> None:
    assert round_log_values(0.9, 110) == [1, 2, 5, 10, 20, 50, 100]
    assert round_log_values(41, 58) == [45, 50, 55]
