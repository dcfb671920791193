"""Learning curves: what is cut off, and what cannot be drawn."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from palaver.training.curves import Curve, draw_perplexity

SVG = "{http://www.w3.org/2000/svg}"


def paths(curve: Curve, most: float = math.inf) -> list[str]:
    """The curve, then its sample in the key."""
    root = ElementTree.fromstring(draw_perplexity([curve], "step", "perplexity", most=most))
    return [p.get("d") or "" for p in root.iter(f"{SVG}path") if p.get("stroke") == "red"]


def test_a_curve_is_cut_where_it_leaves_the_picture() -> None:
    curve = Curve("run", [(0, 1000), (1, 10), (2, 10), (3, 1000)], "red")
    line = paths(curve, most=100)[0]
    assert line.count("M") == 1
    points = [tuple(map(float, point.split())) for point in line.strip("M").split("L")]
    (left, top), *_, (right, other_top) = points
    assert top == other_top == 8  # the upper edge
    spacing = points[2][0] - points[1][0]
    # From 1000 down to 10 the logarithm of 100 lies in the middle.
    assert points[1][0] - left == pytest.approx(right - points[2][0], abs=0.02)
    assert points[1][0] - left == pytest.approx(spacing / 2, abs=0.02)


@pytest.mark.parametrize("points", [[], [(1, 5.0)], [(1, math.inf), (2, 3.0)], [(1, math.nan)], [(0, 1e308)]])
def test_few_or_endless_values_are_no_error(points: list[tuple[float, float]]) -> None:
    assert paths(Curve("run", points, "red"))


def test_the_key_names_every_curve() -> None:
    text = draw_perplexity([Curve("<a>", [(1, 2)], "red"), Curve("b", [(1, 3)], "blue")], "step", "y")
    shown = [t.text for t in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert {"<a>", "b", "step", "y"} <= set(shown)
