"""What may change in a collection while people talk, and what would make its conversations incomparable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from palaver.collection.settings import ASKED, Collection, Course, Partners
from palaver.collection.standards import Standards
from palaver.schema import Question

_TEXTS = ("title", "instructions", "language", "translations", "consent", "contact", "survey", "completion")
_FIXED = ("name", "seed", "knowledge")
_COURSE = (
    *("per_person", "wanted", "longest_message"),
    *("wait_minutes", "grace_seconds", "idle_minutes", "bot_seconds"),
)
"""The fields of `[conversation]` that may change."""
_PARTNERS = ("substitute", "meetings", "characters_per_second", "reveal", "same_language")
"""The fields of `[partners]` that may change."""
_SAME_QUESTION = 0.6
"""A question whose wording is less alike than this (1: equal) is another question."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """The differences between a collection as it is served and a file."""

    changes: tuple[str, ...]
    refusals: tuple[str, ...]


def compare_collections(before: Collection, after: Collection) -> Amendment:
    """What an amendment from `before` to `after` would do."""
    return Amendment(tuple(_changes(before, after)), tuple(_refusals(before, after)))


def _changes(before: Collection, after: Collection) -> Iterator[str]:
    for name in (*_TEXTS, *Standards.model_fields):
        if getattr(before, name) != getattr(after, name):
            yield f"{name} is changed"
    for table, old, new in _tables(before, after):
        for field in _COURSE if table == "conversation" else _PARTNERS:
            if getattr(old, field) != getattr(new, field):
                yield f"{table}.{field}: {getattr(old, field)} becomes {getattr(new, field)}"
    for old_question, new_question in _questions(before, after):
        if (old_question.text, old_question.help) != (new_question.text, new_question.help):
            yield f"{old_question.criterion}: the wording of the question is changed"


def _refusals(before: Collection, after: Collection) -> Iterator[str]:
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            yield f"{name} cannot change: conversations were held under the old one"
    for table, old, new in _tables(before, after):
        free = _COURSE if table == "conversation" else _PARTNERS
        for field in type(old).model_fields:
            if field not in free and getattr(old, field) != getattr(new, field):
                yield f"{table}.{field} cannot change: conversations were held under the old one"
    if before.knowledge is not None and before.conversation.wanted != after.conversation.wanted:
        yield "conversation.wanted cannot change: reading sets were made for so many"
    for key in ASKED:
        if [q.criterion for q in getattr(before, key)] != [q.criterion for q in getattr(after, key)]:
            yield f"{key}: questions cannot be added, taken away or put in another order"
    for old_question, new_question in _questions(before, after):
        criterion = old_question.criterion
        if old_question.scale != new_question.scale:
            yield f"{criterion}: another scale would make the answers incomparable"
        if old_question.required != new_question.required:
            yield f"{criterion}: required cannot change"
        likeness = SequenceMatcher(None, old_question.text, new_question.text, autojunk=False).ratio()
        if likeness < _SAME_QUESTION:
            yield f"{criterion}: this is another question; ask it in another collection"


def _tables(
    before: Collection, after: Collection
) -> Iterator[tuple[str, Partners | Course, Partners | Course]]:
    yield "partners", before.partners, after.partners
    yield "conversation", before.conversation, after.conversation


def _questions(before: Collection, after: Collection) -> Iterator[tuple[Question, Question]]:
    """Questions that both ask under the same criterion."""
    for key in ASKED:
        asked = {question.criterion: question for question in getattr(after, key)}
        for question in getattr(before, key):
            if question.criterion in asked:
                yield question, asked[question.criterion]
