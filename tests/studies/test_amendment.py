"""What may change in a served study and what may not, said in words."""

from __future__ import annotations

from typing import Any

import pytest

from palaver.schema import Study
from palaver.studies.amendment import compare_studies


def study(**changes: Any) -> Study:
    data: dict[str, Any] = {
        "name": "s",
        "title": "How good?",
        "questions": [
            {"criterion": "quality", "text": "How good is the reply?", "scale": {"kind": "likert"}}
        ],
        "items": [{"id": "a", "outputs": [{"system": "x", "text": "Hello."}]}],
    }
    return Study.model_validate({**data, **changes})


def asked(**changes: Any) -> list[dict[str, Any]]:
    question = {"criterion": "quality", "text": "How good is the reply?", "scale": {"kind": "likert"}}
    return [{**question, **changes}]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"title": "Other"}, "title is changed"),
        ({"raters_per_item": 5}, "raters_per_item: 3 becomes 5"),
        ({"lease_minutes": 60}, "lease_minutes: 30 becomes 60"),
        ({"items_per_rater": 20}, "items_per_rater: no limit becomes 20"),
        ({"questions": asked(text="How good is this reply?")}, "quality: the wording of the question"),
        (
            {
                "items": [
                    {"id": "a", "outputs": [{"system": "x", "text": "Hello."}]},
                    {"id": "b", "outputs": [{"system": "x", "text": "Bye."}]},
                ]
            },
            "1 item more",
        ),
    ],
)
def test_what_may_change(changed: dict[str, Any], says: str) -> None:
    amendment = compare_studies(study(), study(**changed))
    assert amendment.refusals == ()
    assert len(amendment.changes) == 1
    assert says in amendment.changes[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"questions": asked(scale={"kind": "likert", "high": 7})}, "another scale"),
        ({"questions": asked(text="Would you buy this?")}, "another question"),
        ({"questions": asked(criterion="other")}, "criteria cannot"),
        ({"questions": asked(required=False)}, "required cannot change"),
        ({"seed": 3}, "seed cannot change"),
        ({"blind": False}, "blind cannot change"),
        ({"raters_per_item": 1}, "from 3 to 1"),
        ({"items": [{"id": "b", "outputs": [{"system": "x", "text": "Hello."}]}]}, "taken away: a"),
        ({"items": [{"id": "a", "outputs": [{"system": "x", "text": "Changed."}]}]}, "something else"),
    ],
)
def test_what_may_not(changed: dict[str, Any], says: str) -> None:
    assert any(says in refusal for refusal in compare_studies(study(), study(**changed)).refusals)


def test_no_change_is_none() -> None:
    amendment = compare_studies(study(), study())
    assert (amendment.changes, amendment.refusals, amendment.new_items) == ((), (), ())
