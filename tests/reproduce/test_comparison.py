"""Published cells beside ours."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console

from palaver.reproduce.comparison import Comparison, GroupCell, NumberCell, print_comparison


def number(paper: float, ours: float, *, why: str = "") -> NumberCell:
    return NumberCell(
        table="Table 1",
        row="method [x]",
        column="Setup 1",
        paper=paper,
        paper_star=True,
        ours=ours,
        p=0.01,
        convention="how",
        why=why,
    )


def groups(ours: tuple[frozenset[str], ...], *, why: str = "") -> GroupCell:
    return GroupCell(
        table="Table 2",
        row="ranks",
        paper=(frozenset({"a", "b"}), frozenset({"c"})),
        paper_label="1.–2. a + b, 3. c",
        ours=ours,
        ours_label="ours",
        convention="how",
        why=why,
    )


@pytest.mark.parametrize(
    ("paper", "ours", "matches"),
    [
        (0.54, 0.54, True),
        (0.54, 0.56, True),
        (0.54, 0.52, True),
        (0.54, 0.5601, False),
        (-0.01, 0.02, False),
        (0.5, math.nan, False),
    ],
)
def test_within_two_hundredths(paper: float, ours: float, matches: bool) -> None:
    assert number(paper, ours).matches is matches


def test_groups_match_whatever_the_order_inside() -> None:
    assert groups((frozenset({"b", "a"}), frozenset({"c"}))).matches
    assert not groups((frozenset({"c"}), frozenset({"a", "b"}))).matches
    assert not groups((frozenset({"a"}), frozenset({"b"}), frozenset({"c"}))).matches


def test_only_known_cells_can_be_lost() -> None:
    unknown = number(0.68, 0.1, why="not in the data")
    lost = number(0.68, 0.1)
    comparison = Comparison(paper="p", cells=(unknown, lost, number(0.1, 0.1)), remarks=(), signature="s")
    assert comparison.lost == (lost,)


def shown(*cells: NumberCell | GroupCell) -> str:
    text = io.StringIO()
    comparison = Comparison(paper="The paper", cells=cells, remarks=("a remark",), signature="run 123")
    print_comparison(comparison, Console(file=text, width=120))
    return text.getvalue()


def test_every_cell_has_its_mark_and_every_difference_its_reason() -> None:
    text = shown(number(0.5, 0.5), number(0.68, 0.1, why="not in the data"), groups((), why="on the edge"))
    assert text.count("=") >= 1
    assert text.count("≠") == 2
    assert "1 of 2 match" in text
    assert "0 of 1 match" in text
    assert "not in the data" in text
    assert "a remark" in text
    assert "run 123" in text
    assert "LOST" not in text


def test_a_lost_cell_is_said_aloud() -> None:
    text = shown(number(0.68, 0.1))
    assert "LOST: Table 1: method [x], Setup 1 matched before and no longer does" in text


def test_undefined_numbers_have_no_star_and_do_not_match() -> None:
    text = shown(number(0.5, math.nan))
    assert "≠" in text
    assert "nan" not in text
