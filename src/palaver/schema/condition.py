"""When a question is asked: only if another one was answered so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from palaver.errors import nearest
from palaver.schema.base import Name, Noun, Text
from palaver.schema.scale import Scale

if TYPE_CHECKING:
    from palaver.schema.item import Question

Location = tuple[str | int, ...]


class Condition(Noun):
    """The answer to another question of the same screen, about the same output or turn."""

    criterion: Name
    equals: float | Text | None = None
    one_of: tuple[float | Text, ...] = ()
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        limits = self.at_least is not None or self.at_most is not None
        said = [self.equals is not None, bool(self.one_of), limits]
        if sum(said) != 1:
            raise ValueError("say one thing about the answer: equals, one_of, or at_least and at_most")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError(f"at_least ({self.at_least:g}) is above at_most ({self.at_most:g})")
        return self

    @property
    def wanted(self) -> tuple[float | str, ...]:
        """The answers that are named; empty where limits are."""
        return self.one_of if self.equals is None else (self.equals,)

    def values(self, scale: Scale) -> tuple[str, ...]:
        """The named answers as a page sends them: a word may be that of a step."""
        labels = {choice.label.casefold(): choice.value for choice in scale.choices()}
        texts = (one if isinstance(one, str) else f"{one:g}" for one in self.wanted)
        return tuple(labels.get(text.strip().casefold(), text) for text in texts)

    def holds(self, value: str | None, scale: Scale) -> bool:
        """Whether a stored value (as text; None: no answer) is what the question waits for."""
        if value is None:
            return False
        if scale.form == "boxes":
            return bool(set(self.values(scale)) & set(value.split("|")))
        number = float(value)
        if self.wanted:
            return number in {float(text) for text in self.values(scale)}
        low = -float("inf") if self.at_least is None else self.at_least
        high = float("inf") if self.at_most is None else self.at_most
        return low <= number <= high

    def describe(self) -> str:
        """The condition in words."""
        if self.wanted:
            named = [one if isinstance(one, str) else f"{one:g}" for one in self.wanted]
            return f"{self.criterion} is {' or '.join(named)}"
        limits = [
            f"{words} {limit:g}"
            for words, limit in (("at least", self.at_least), ("at most", self.at_most))
            if limit is not None
        ]
        return f"{self.criterion} is {' and '.join(limits)}"


def condition_problems(questions: Mapping[int, Question], *, joint: bool) -> Iterator[tuple[Location, str]]:
    """Conditions that can never be looked up, with the place of each."""
    asked = {question.criterion: question for question in questions.values()}
    for q, question in questions.items():
        condition = question.shown_if
        if condition is None:
            continue
        problem = _problem(question, condition, asked, joint)
        if problem:
            yield ("questions", q, "shown_if"), problem


def _problem(question: Question, condition: Condition, asked: Mapping[str, Question], joint: bool) -> str:
    host = asked.get(condition.criterion)
    if host is None:
        others = [name for name in asked if name != question.criterion]
        return f"the study does not ask for {condition.criterion!r}{nearest(condition.criterion, others)}"
    circle = _circle(question, asked)
    if circle:
        return f"the conditions go in a circle: {' waits for '.join(circle)}"
    if host.scale.form in ("pair", "text") or host.scale.relative:
        return (
            f"a condition looks at numbers or choices, and {host.criterion!r} is a {host.scale.kind} question"
        )
    if question.scale.form == "pair":
        return f"a comparison is asked once, and {host.criterion!r} about each output"
    if host.per == "turn" and (question.per != "turn" or question.turns != host.turns):
        return f"{host.criterion!r} is asked about each turn, this question is not asked about the same turns"
    if not joint and (question.beside or question.criterion) != (host.beside or host.criterion):
        return (
            f"{host.criterion!r} is asked on another screen: say beside = {host.beside or host.criterion!r}, "
            'or layout = "joint"'
        )
    return _value_problem(condition, host.scale)


def _circle(question: Question, asked: Mapping[str, Question]) -> list[str]:
    """The criteria from this question back to itself; nothing if there is no such way."""
    way = [question.criterion]
    while True:
        condition = asked[way[-1]].shown_if
        if condition is None or condition.criterion not in asked:
            return []
        way.append(condition.criterion)
        if way[-1] == way[0]:
            return way
        if way[-1] in way[:-1]:  # a circle further back, which its own questions name
            return []


def _value_problem(condition: Condition, scale: Scale) -> str:
    """What of the condition can never be answered."""
    if scale.form == "boxes":
        if not condition.wanted:
            return f"{condition.criterion!r} has choices, no numbers: use equals or one_of"
        options = [choice.value for choice in scale.choices()]
        strange = [value for value in condition.values(scale) if value not in options]
        return (
            f"{strange[0]!r} is no answer to {condition.criterion!r}{nearest(strange[0], options)}"
            if strange
            else ""
        )
    for value in condition.values(scale):
        try:
            scale.parse(value)
        except ValueError:
            return f"{value!r} is no answer to {condition.criterion!r}: expected {scale.describe()}"
    bounds = scale.bounds
    if (condition.at_least is not None and condition.at_least > bounds.high) or (
        condition.at_most is not None and condition.at_most < bounds.low
    ):
        return f"no answer to {condition.criterion!r} is so: expected {scale.describe()}"
    return ""
