"""Pydantic's errors in the words of a study file."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from palaver.schema import Study
from palaver.studies.mistakes import explain, without_unknown_fields

pytestmark = pytest.mark.filterwarnings("error")


def refused(data: dict[str, object]) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Study.model_validate(data)
    return caught.value


def question(**fields: object) -> dict[str, object]:
    return {"criterion": "q", "text": "?", "scale": {"kind": "likert"}, **fields}


ITEM = {"id": "i", "outputs": [{"system": "a", "text": "x"}]}


def test_fields_named_like_a_scale_or_a_type_keep_their_place() -> None:
    """`likert` and `str` also occur in Pydantic's own locations, where they are no places."""
    data = {
        "name": "s",
        "questions": [question(likert=1, str=2, scale={"kind": "likert", "likert": 3})],
        "items": [{**ITEM, "str": 1, "Dialogue": 2}],
    }
    places = {place for place, _ in explain(refused(data))}
    assert places == {
        ("questions", 0, "likert"),
        ("questions", 0, "str"),
        ("questions", 0, "scale", "likert"),
        ("items", 0, "str"),
        ("items", 0, "Dialogue"),
    }


def test_labels_are_one_mistake_each() -> None:
    turn = {"speaker": "a", "text": "x", "labels": {"mood": [1], "fine": 2}}
    data = {
        "name": "s",
        "questions": [question()],
        "items": [{**ITEM, "context": {"id": "d", "turns": [turn]}}],
    }
    assert set(explain(refused(data))) == {
        (
            ("items", 0, "context", "turns", 0, "labels", "mood"),
            "expected a text, a number, true or false, found [1]",
        )
    }


def test_long_values_are_cut() -> None:
    (mistake,) = explain(refused({"name": ["x" * 500], "questions": [question()], "items": [ITEM]}))
    assert len(mistake[1]) < 100


def test_unknown_fields_can_be_taken_away() -> None:
    data = {
        "name": "s",
        "nam": 1,
        "questions": [question(scale={"kind": "likert", "lw": 1})],
        "items": [{**ITEM, "outputs": [{"system": "a", "text": "x", "txt": ""}]}],
    }
    mended = without_unknown_fields(data, refused(data))
    assert Study.model_validate(mended).name == "s"
    assert data["nam"] == 1  # a copy


def test_one_type_only() -> None:
    data = {"name": 5, "questions": [question(scale={"kind": "likert", "low": 9})], "items": [ITEM]}
    (only,) = explain(refused(data), only="value_error")
    assert only == (("questions", 0, "scale"), "high (6) must be above low (9)")
