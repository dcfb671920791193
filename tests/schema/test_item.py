"""Questions, outputs and items: what each must have."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from palaver.schema import Dialogue, Item, Likert, Output, Question


@pytest.mark.parametrize("fields", [{}, {"text": "x", "dialogue": Dialogue(id="d", turns=())}])
def test_an_output_is_a_text_or_a_dialogue(fields: Any) -> None:
    with pytest.raises(ValidationError, match="exactly one"):
        Output(system="a", **fields)


def test_an_empty_answer_is_an_answer() -> None:
    assert Output(system="a", text="").text == ""


def test_a_question_always_shows_what_is_judged() -> None:
    with pytest.raises(ValidationError, match="the output is what is judged"):
        Question(criterion="a", text="?", scale=Likert(), shows=("context",))
    with pytest.raises(ValidationError):
        Question(criterion="a", text="?", scale=Likert(), shows=("output", "everything"))


def test_the_wording_of_a_question_may_be_long_but_not_empty() -> None:
    assert Question(criterion="a", text="x" * 5000, scale=Likert())
    with pytest.raises(ValidationError):
        Question(criterion="a", text="", scale=Likert())


def test_an_item_has_outputs_and_a_context_of_either_kind() -> None:
    said = (Output(system="a", text="x"),)
    talk = Dialogue(id="d", turns=())
    assert Item(id="i", context="text", outputs=said).context == "text"
    assert Item(id="i", context=talk, outputs=said).context == talk
    assert (
        Item.model_validate({"id": "i", "context": {"id": "d", "turns": []}, "outputs": said}).context == talk
    )
    for bad in ({"outputs": ()}, {"outputs": said, "context": 5}, {"outputs": said, "id": ""}, {}):
        with pytest.raises(ValidationError):
            Item.model_validate({"id": "i", **bad})
