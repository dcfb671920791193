"""What a served study needs besides its questions: each noun alone, and as part of a study."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from palaver import schema
from palaver.schema import (
    Checks,
    Completion,
    Expected,
    Item,
    KnownItem,
    Output,
    Study,
    SurveyQuestion,
    Training,
)
from palaver.schema.base import Noun

NOUNS = (Expected, KnownItem, Training, Checks, SurveyQuestion, Completion)
EXPECTED = {"criterion": "quality", "system": "a", "low": 3}
KNOWN = {"item": {"id": "gold", "outputs": [{"system": "a", "text": "x"}]}, "expected": [EXPECTED]}


def study_of(**fields: Any) -> Study:
    data = {
        "name": "s",
        "questions": [{"criterion": "quality", "text": "?", "scale": {"kind": "likert"}}],
        "items": [{"id": "i", "outputs": [{"system": "a", "text": "x"}]}],
    }
    return Study.model_validate({**data, **fields})


def test_all_are_public() -> None:
    assert {noun.__name__ for noun in NOUNS} <= set(schema.__all__)
    assert all(issubclass(noun, Noun) for noun in NOUNS)


@pytest.mark.parametrize("fields", [{"low": 0}, {"high": 0}, {"values": ["win"]}, {"low": 1, "high": 2}])
def test_an_expectation_says_what_is_expected(fields: Any) -> None:
    Expected.model_validate({"criterion": "c", "system": "s", **fields})


def test_an_expectation_of_nothing_is_a_mistake() -> None:
    with pytest.raises(ValidationError, match="say what is expected"):
        Expected(criterion="c", system="s")
    with pytest.raises(ValidationError):
        Expected(criterion="c", system="s", low=float("nan"))


@settings(max_examples=100, deadline=None)
@given(
    low=st.none() | st.floats(-1e6, 1e6),
    high=st.none() | st.floats(-1e6, 1e6),
    value=st.floats(-1e6, 1e6),
)
def test_bounds_are_inclusive(low: float | None, high: float | None, value: float) -> None:
    if low is None and high is None:
        return
    expected = Expected(criterion="c", system="s", low=low, high=high)
    inside = (low is None or low <= value) and (high is None or value <= high)
    assert expected.met_by(repr(value)) == inside


@pytest.mark.parametrize(
    ("noun", "fields"),
    [
        (KnownItem, {"item": KNOWN["item"], "expected": []}),
        (Training, {"items": []}),
        (Training, {"items": [KNOWN], "pass_mark": 1.1}),
        (Training, {"items": [KNOWN], "pass_mark": -0.1}),
        (Training, {"items": [KNOWN], "attempts": 0}),
        (Checks, {"rate": 0}),
        (Checks, {"rate": 0.6}),
        (Checks, {"allowed_failures": -1}),
        (SurveyQuestion, {"name": "", "text": "?"}),
        (SurveyQuestion, {"name": "a", "text": "?", "options": [""]}),
        (Completion, {"url": "javascript:alert(1)"}),
        (Completion, {"url": "//example.org"}),
        (Completion, {"url": "data:text/html,x"}),
        (Completion, {"screen_out_url": "ftp://example.org"}),
        (Completion, {"url": " https://example.org"}),
    ],
)
def test_what_is_refused(noun: type[Noun], fields: Any) -> None:
    with pytest.raises(ValidationError):
        noun.model_validate(fields)


def test_completion_may_be_a_code_or_an_address() -> None:
    assert Completion(code="C1", url="https://app.prolific.com/submissions/complete?cc=C1").url
    assert Completion() == Completion(code=None)


def full() -> Study:
    return study_of(
        consent="Do you agree?",
        items_per_rater=5,
        lease_minutes=0.5,
        comments=True,
        training={"items": [KNOWN], "pass_mark": 0.5, "attempts": 3},
        checks={"items": [KNOWN], "rate": 0.2, "allowed_failures": 0, "degraded": True},
        survey=[{"name": "age", "text": "Age?"}, {"name": "n", "text": "?", "options": ["yes", "no"]}],
        completion={"code": "C", "screen_out_code": "D"},
    )


def test_a_served_study_survives_json_and_is_a_key() -> None:
    study = full()
    again = Study.model_validate_json(study.model_dump_json())
    assert again == study
    assert hash(again) == hash(study)
    assert Study.model_validate(json.loads(study.model_dump_json())) == study


@pytest.mark.parametrize(
    "fields",
    [
        {"items_per_rater": 0},
        {"items_per_rater": 2.5},
        {"lease_minutes": 0},
        {"lease_minutes": float("inf")},
        {"comments": "yes"},
        {"assignment": "clever"},
        {"assignment": "active"},
        {"training": {"items": [{**KNOWN, "expected": [{**EXPECTED, "criterion": "nothing"}]}]}},
        {"training": {"items": [{**KNOWN, "expected": [{**EXPECTED, "system": "nobody"}]}]}},
        {"checks": {"items": [{**KNOWN, "expected": [{**EXPECTED, "system": "nobody"}]}]}},
    ],
    ids=str,
)
def test_a_served_study_that_cannot_work_is_refused(fields: Any) -> None:
    with pytest.raises(ValidationError):
        study_of(**fields)


def test_a_comparison_is_trained_with_two_outputs() -> None:
    one = {"item": {"id": "g", "outputs": [{"system": "a", "text": "x"}]}}
    pair = {
        "questions": [{"criterion": "better", "text": "?", "scale": {"kind": "pairwise"}}],
        "items": [{"id": "i", "outputs": [{"system": s, "text": s} for s in "ab"]}],
    }
    expected = [{"criterion": "better", "system": "a", "values": ["win"]}]
    with pytest.raises(ValidationError, match="compares 2"):
        study_of(**pair, training={"items": [{**one, "expected": expected}]})


def test_a_known_item_is_frozen_all_the_way() -> None:
    known = KnownItem(
        item=Item(id="g", outputs=(Output(system="a", text="x"),)), expected=(Expected(**EXPECTED),)
    )
    assert hash(known) == hash(known.model_copy())
    with pytest.raises(ValidationError):
        known.item = known.item  # type: ignore[misc]
