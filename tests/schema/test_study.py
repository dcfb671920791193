"""Studies and ratings: what fits together and what does not."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from palaver.errors import UserError
from palaver.schema import Item, Likert, Output, Pairwise, Question, RankMagnitude, Rating, Study
from palaver.schema.rating import value_text
from palaver.schema.study import design_problems


def question(criterion: str = "quality", scale: Any = None, **fields: Any) -> Question:
    return Question(criterion=criterion, text="?", scale=scale or Likert(), **fields)


def item(id: str = "1", systems: str = "ab", **fields: Any) -> Item:
    return Item(id=id, outputs=tuple(Output(system=s, text="x") for s in systems), **fields)


def study(questions: Any = None, items: Any = None, **fields: Any) -> Study:
    return Study(name="s", questions=questions or (question(),), items=items or (item(),), **fields)


def problems(questions: list[Question], items: list[Item]) -> list[tuple[Any, str]]:
    return list(design_problems(dict(enumerate(questions)), dict(enumerate(items))))


@given(st.from_type(Study))
@settings(max_examples=50, deadline=None)
def test_a_study_that_stands_has_no_problems_and_finds_its_questions(drawn: Study) -> None:
    assert problems(list(drawn.questions), list(drawn.items)) == []
    for asked in drawn.questions:
        assert drawn.question(asked.criterion) is asked
    assert len(set(drawn.systems)) == len(drawn.systems)
    assert set(drawn.systems) == {output.system for i in drawn.items for output in i.outputs}


def test_systems_are_in_order_of_first_appearance() -> None:
    assert study(items=(item("1", "ca"), item("2", "abc"))).systems == ("c", "a", "b")


def test_an_unknown_criterion_is_a_clear_error() -> None:
    with pytest.raises(UserError, match="did you mean 'quality'"):
        study().question("qualty")


@pytest.mark.parametrize(
    ("questions", "items", "places", "words"),
    [
        ([question("a"), question("a")], [item()], [("questions", 1, "criterion")], "asked twice"),
        (
            [question(beside="b")],
            [item()],
            [("questions", 0, "beside")],
            "expected a criterion that stands alone (none)",
        ),
        ([question("a", beside="a")], [item()], [("questions", 0, "beside")], "found 'a'"),
        ([question()], [item("1"), item("1")], [("items", 1, "id")], "used twice"),
        ([question()], [item(systems="aa")], [("items", 0, "outputs")], "two outputs of one system"),
        ([question(scale=Pairwise())], [item(systems="abc")], [("items", 0, "outputs")], "compares 2"),
        ([question(scale=Pairwise())], [item(systems="a")], [("items", 0, "outputs")], "compares 2"),
        ([question(scale=RankMagnitude())], [item(systems="a")], [("items", 0, "outputs")], "ranks several"),
    ],
)
def test_what_does_not_go_together(
    questions: list[Question], items: list[Item], places: list[Any], words: str
) -> None:
    found = problems(questions, items)
    assert [place for place, _ in found] == places
    assert words in found[0][1]
    with pytest.raises(ValidationError) as caught:
        study(tuple(questions), tuple(items))
    assert words in str(caught.value)


def test_all_problems_are_named_at_once() -> None:
    found = problems(
        [question("a"), question("a"), question("b", Pairwise(), beside="x")],
        [item("1", "aa"), item("1", "abc"), item("2", "ab")],
    )
    assert len(found) == 5


def test_a_question_stands_beside_one_that_stands_alone() -> None:
    assert problems([question("a", beside="b"), question("b")], [item()]) == []
    assert len(problems([question("a", beside="b"), question("b", beside="a")], [item()])) == 2
    chain = [question("a", beside="b"), question("b", beside="c"), question("c")]
    assert len(problems(chain, [item()])) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"raters_per_item": 0},
        {"layout": "both"},
        {"order": "shuffled"},
        {"seed": 1.5},
        {"questions": []},
        {"items": []},
        {"items": [{"id": "1", "outputs": []}]},
        {"name": ""},
    ],
)
def test_what_is_no_study(fields: dict[str, Any]) -> None:
    good = study().model_dump()
    with pytest.raises(ValidationError):
        Study.model_validate({**good, **fields})


def rating(value: Any, **fields: Any) -> Rating:
    return Rating(item="i", system="s", rater="r", criterion="c", value=value, **fields)


@pytest.mark.parametrize(
    ("value", "stored", "text"),
    [
        (5, 5.0, "5"),
        (5.0, 5.0, "5"),
        (0.1, 0.1, "0.1"),
        (1e20, 1e20, "1e+20"),
        (-0.0, 0.0, "-0"),
        (2**53, 2.0**53, "9007199254740992"),
        ("5", "5", "5"),
        ("win", "win", "win"),
        (["b", "a"], ("b", "a"), "b|a"),
        ((), (), ""),
    ],
)
def test_values_in_memory_in_json_and_in_a_cell(value: Any, stored: Any, text: str) -> None:
    made = rating(value)
    assert made.value == stored
    assert type(made.value) is type(stored)
    assert value_text(made.value) == text
    again = Rating.model_validate_json(made.model_dump_json())
    assert again.value == stored
    assert type(again.value) is type(stored)


def test_whole_numbers_are_whole_in_json() -> None:
    assert json.loads(rating(5).model_dump_json())["value"] == 5
    assert '"value":5,' in rating(5.0).model_dump_json()
    assert '"value":5.5,' in rating(5.5).model_dump_json()
    assert '"value":1e+20,' in rating(1e20).model_dump_json()
    assert rating(5).model_dump()["value"] == 5.0


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=100, deadline=None)
def test_a_number_in_a_cell_is_that_number(number: float) -> None:
    assert float(value_text(number)) == number


@pytest.mark.parametrize("bad", [math.nan, math.inf, None, {"a": 1}, [1], [None], object(), 10**400])
def test_values_that_are_none(bad: Any) -> None:
    with pytest.raises(ValidationError):
        rating(bad)


@pytest.mark.parametrize(
    "fields",
    [{"seconds": -1}, {"seconds": math.nan}, {"shown_position": -1}, {"given_at": "soon"}, {"rater": ""}],
)
def test_ratings_that_cannot_be(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rating(**{**rating(1).model_dump(), **fields})


def test_moments_keep_their_zone_or_have_none() -> None:
    aware = rating(1, given_at="2020-01-01T12:00:00+02:00")
    assert aware.given_at == datetime(2020, 1, 1, 10, tzinfo=UTC)
    naive = rating(1, given_at="2020-01-01T12:00:00")
    assert naive.given_at is not None
    assert naive.given_at.tzinfo is None
