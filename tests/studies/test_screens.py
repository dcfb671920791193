"""Screens, blocks and balanced orders."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.schema import Study
from palaver.studies.design import PRESETS, preset_study
from palaver.studies.screens import (
    BLOCK,
    balanced_square,
    plan_screens,
    question_groups,
    shown_order,
    side_by_side,
)

relaxed = settings(max_examples=50, deadline=None)


def study_of(n_items: int = 4, n_outputs: int = 2, criteria: str = "ab", **fields: Any) -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "questions": [{"criterion": c, "text": "?", "scale": {"kind": "likert"}} for c in criteria],
            "items": [
                {"id": f"i{i}", "outputs": [{"system": f"s{s}", "text": "x"} for s in range(n_outputs)]}
                for i in range(n_items)
            ],
            **fields,
        }
    )


def test_joint_asks_all_at_once_and_separate_one_by_one() -> None:
    assert [len(g) for g in question_groups(study_of(layout="joint"))] == [2]
    assert [[q.criterion for q in g] for g in question_groups(study_of())] == [["a"], ["b"]]


def test_what_stands_beside_shares_the_screen() -> None:
    likert = {"kind": "likert"}
    asked = [
        {"criterion": "note", "text": "?", "scale": likert, "beside": "b"},
        {"criterion": "a", "text": "?", "scale": likert},
        {"criterion": "b", "text": "?", "scale": likert},
    ]
    groups = question_groups(study_of(questions=asked))
    assert [[q.criterion for q in g] for g in groups] == [["a"], ["b", "note"]]


def chain(beside: dict[str, str | None]) -> list[dict[str, Any]]:
    return [
        {"criterion": c, "text": "?", "scale": {"kind": "likert"}, "beside": b} for c, b in beside.items()
    ]


@pytest.mark.parametrize("layout", ["joint", "separate"])
@relaxed
@given(study=st.from_type(Study))
def test_every_item_meets_every_question_once(layout: str, study: Study) -> None:
    study = study.model_copy(update={"layout": layout})
    hosts = {q.criterion for q in study.questions if q.beside is None}
    if any(q.beside is not None and q.beside not in hosts for q in study.questions):
        return  # beside somebody who stands beside somebody: see the test below
    met = Counter((s.item, c) for s in plan_screens(study) for c in s.criteria)
    assert met == Counter((i.id, q.criterion) for i in study.items for q in study.questions)


@pytest.mark.parametrize(
    "beside", [{"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": None}, {"a": "b", "b": "c", "c": "a"}]
)
def test_no_question_gets_lost_in_a_chain(beside: dict[str, str | None]) -> None:
    """Either the design is refused, or everything is asked."""
    try:
        study = study_of(questions=chain(beside))
    except ValueError:
        return
    asked = {q.criterion for group in question_groups(study) for q in group}
    assert asked == set(beside)


def test_screens_are_numbered_and_stand_in_blocks() -> None:
    screens = plan_screens(study_of(n_items=2 * BLOCK + 3))
    assert [s.ordinal for s in screens] == list(range(len(screens)))
    for group in (0, 1):
        blocks = [s.block for s in screens if s.group == group]
        assert blocks == sorted(blocks)
        assert Counter(blocks) == {0: BLOCK, 1: BLOCK, 2: 3}
    assert [s.item for s in screens if s.group == 0] == [s.item for s in screens if s.group == 1]


def test_the_seed_mixes_the_items_unless_the_order_is_fixed() -> None:
    def items(**fields: Any) -> list[str]:
        return [s.item for s in plan_screens(study_of(n_items=20, criteria="a", **fields))]

    as_written = [f"i{i}" for i in range(20)]
    assert items(order="fixed") == as_written
    assert items(seed=1) == items(seed=1) != items(seed=2) != as_written
    assert sorted(items(seed=1)) == sorted(as_written)


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_shown_as_their_scale_demands(preset: str) -> None:
    study = preset_study(preset)
    together = [side_by_side(group) for group in question_groups(study)]
    assert together == [preset in ("rankme", "pairwise", "acute")] * len(together)


@pytest.mark.parametrize("n", range(1, 9))
def test_in_a_balanced_square_all_is_equally_often(n: int) -> None:
    square = balanced_square(n)
    assert len(square) == len(set(square))
    assert all(sorted(row) == list(range(n)) for row in square)
    places = Counter((thing, place) for row in square for place, thing in enumerate(row))
    assert len(set(places.values())) == 1
    assert len(places) == n * n
    follows = Counter(pair for row in square for pair in pairwise(row))
    assert len(set(follows.values())) <= 1
    assert len(follows) == n * (n - 1)


@pytest.mark.parametrize("n", range(1, 9))
def test_a_half_of_a_square_is_latin(n: int) -> None:
    square = balanced_square(n)
    for start in range(0, len(square), n):
        for place in range(n):
            assert {row[place] for row in square[start : start + n]} == set(range(n))


@settings(max_examples=150, deadline=None)
@given(
    n_outputs=st.integers(1, 6),
    raters=st.integers(1, 8),
    n_items=st.integers(1, 40),
    layout=st.sampled_from(["joint", "separate"]),
)
def test_over_raters_and_items_every_output_stands_everywhere_equally_often(
    n_outputs: int, raters: int, n_items: int, layout: str
) -> None:
    study = study_of(n_items, n_outputs, raters_per_item=raters, layout=layout)
    groups = len(question_groups(study))
    for group in range(groups):
        stood = Counter({(o, p): 0 for o in range(n_outputs) for p in range(n_outputs)})
        for screen in plan_screens(study):
            if screen.group == group:
                for turn in range(raters):
                    order = shown_order(study, screen, n_outputs, turn, f"rater {turn}")
                    stood.update((o, p) for p, o in enumerate(order))
        assert max(stood.values()) - min(stood.values()) <= 1


@pytest.mark.parametrize("n_outputs", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("raters", range(1, 8))
def test_no_rater_sees_one_output_always_first(n_outputs: int, raters: int) -> None:
    study = study_of(n_items=12 * n_outputs, n_outputs=n_outputs, raters_per_item=raters, criteria="a")
    for turn in range(raters):
        first = Counter(shown_order(study, s, n_outputs, turn, "r")[0] for s in plan_screens(study))
        assert set(first) == set(range(n_outputs))
        assert max(first.values()) <= 12 + 12 // 2


def test_a_random_order_is_the_raters_own_and_stays() -> None:
    study = study_of(n_items=1, n_outputs=4, order="random", criteria="a")
    [screen] = plan_screens(study)
    orders = {r: shown_order(study, screen, 4, 0, f"r{r}") for r in range(300)}
    assert orders == {r: shown_order(study, screen, 4, 9, f"r{r}") for r in range(300)}
    assert len(set(orders.values())) == 24
    first = Counter(order[0] for order in orders.values())
    assert min(first.values()) > 40


def test_a_fixed_order_is_the_files() -> None:
    study = study_of(n_outputs=3, order="fixed")
    assert {shown_order(study, s, 3, t, "r") for s in plan_screens(study) for t in range(5)} == {(0, 1, 2)}
