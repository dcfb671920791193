"""Conditions: what they look at, what they refuse, and where in the file a mistake is."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from palaver.errors import UserError
from palaver.schema import Binary, Checkboxes, Condition, Likert, SingleChoice, Slider
from palaver.studies.design import parse_study, study_toml

START = """name = "s"
{layout}
[[questions]]
criterion = "quality"
text = "How good?"
scale = {{ kind = "likert", high = 5 }}
[[questions]]
criterion = "why"
text = "Why?"
scale = {{ kind = "text" }}
{fields}
[[items]]
id = "i"
outputs = [{{ system = "a", text = "x" }}]
"""


def mistakes(fields: str, layout: str = 'layout = "joint"') -> list[str]:
    try:
        parse_study(START.format(layout=layout, fields=fields), "study")
    except UserError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize(
    ("condition", "scale", "met", "unmet"),
    [
        ({"at_most": 2}, Likert(), ["1", "2"], ["3", "2.5", None]),
        ({"at_least": 2, "at_most": 3}, Likert(), ["2", "3.0"], ["1", "4", None]),
        ({"equals": 3}, Slider(), ["3", "3.0"], ["30", None]),
        ({"one_of": [1, 5]}, Likert(), ["1", "5"], ["2"]),
        ({"equals": "no"}, Binary(), ["0"], ["1", None]),
        ({"equals": True}, Binary(), ["1"], ["0"]),
        ({"equals": "Poor"}, Likert(low=1, high=2, labels=("poor", "good")), ["1"], ["2"]),
        ({"equals": "added"}, Checkboxes(), ["added", "added|missing"], ["missing", "ok", None]),
        ({"one_of": ["b", "c"]}, SingleChoice(options=("a", "b", "c")), ["b", "c"], ["a"]),
    ],
)
def test_what_a_condition_looks_at(condition, scale, met, unmet) -> None:  # type: ignore[no-untyped-def]
    rule = Condition(criterion="c", **condition)
    assert [rule.holds(value, scale) for value in met] == [True] * len(met)
    assert [rule.holds(value, scale) for value in unmet] == [False] * len(unmet)


@pytest.mark.parametrize("fields", [{}, {"equals": 1, "at_most": 2}, {"at_least": 3, "at_most": 2}])
def test_conditions_that_say_nothing_or_too_much(fields: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Condition(criterion="c", **fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            'shown_if = { criterion = "qualty", at_most = 2 }',
            "'qualty' (did you mean 'quality'?)",
        ),
        ('shown_if = { criterion = "quality", at_most = 0 }', "no answer to 'quality' is so"),
        ('shown_if = { criterion = "quality", equals = 9 }', "'9' is no answer to 'quality'"),
        ('shown_if = { criterion = "quality", at_mots = 2 }', "at_mots"),
        ('shown_if = { criterion = "why", at_most = 2 }', "in a circle: why waits for why"),
        ('shown_if = "quality"', "shown_if"),
        ('per = "turn"', "is about the turns of dialogues"),
        ('turns = "user"', 'only a question with per = "turn"'),
    ],
)
def test_mistakes_are_named_with_their_line(fields: str, words: str) -> None:
    (mistake,) = [m for m in mistakes(fields) if words in m]
    place = "items[1].outputs" if "turn" in fields and "turns" not in fields else "questions[2]"
    assert mistake.startswith("line ")
    assert place in mistake


def test_a_circle_of_two() -> None:
    circle = START.replace("high = 5 }}", 'high = 5 }}\nshown_if = {{ criterion = "why", equals = 1 }}')
    text = circle.replace('kind = "text"', 'kind = "binary"')
    with pytest.raises(UserError) as caught:
        parse_study(
            text.format(layout="", fields='shown_if = { criterion = "quality", equals = 1 }'), "study"
        )
    assert len([p for p in caught.value.problems if "in a circle" in p]) == 2


def test_a_question_on_another_screen_cannot_be_looked_at() -> None:
    condition = 'shown_if = { criterion = "quality", at_most = 2 }'
    (mistake,) = mistakes(condition, layout="")
    assert "asked on another screen: say beside = 'quality'" in mistake
    assert mistakes(condition + '\nbeside = "quality"', layout="") == []
    assert mistakes(condition) == []


def test_conditions_survive_the_file() -> None:
    fields = 'shown_if = { criterion = "quality", one_of = [1, 2] }'
    study = parse_study(START.format(layout='layout = "joint"', fields=fields), "study")
    assert parse_study(study_toml(study), "again") == study


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ('{ kind = "text", min_length = 5, max_length = 3 }', "max_length (3) is below min_length (5)"),
        ('{ kind = "text", max_length = 20000 }', "10000"),
        ('{ kind = "best-worst" }', "has one output, but 'why' ranks 3 on a screen"),
        ('{ kind = "ranking" }', "has one output, but 'why' ranks several on a screen"),
    ],
)
def test_scales_that_do_not_fit(scale: str, words: str) -> None:
    text = START.replace('{{ kind = "text" }}', scale.replace("{", "{{").replace("}", "}}"))
    with pytest.raises(UserError) as caught:
        parse_study(text.format(layout="", fields=""), "study")
    assert any(words in problem for problem in caught.value.problems), caught.value.problems
