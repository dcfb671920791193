"""What may change in a study while it is being answered, and what would make its answers incomparable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from palaver.errors import count_of
from palaver.schema import Item, Question, Study
from palaver.schema.media import MediaFile
from palaver.studies.media import all_items, files_in, item_texts

_TEXTS = ("title", "instructions", "language", "translations", "consent", "contact", "survey", "completion")
_SETTINGS = ("comments", "lease_minutes", "wait_minutes", "items_per_rater")
_FIXED = (
    *("name", "layout", "seed", "order", "blind", "assignment", "training", "checks"),
    *("stop", "stop_criterion", "equivalent_within", "stop_judge", "markdown"),
)
_SAME_QUESTION = 0.6
"""A question whose wording is less alike than this (1: equal) is another question."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """The differences between a study as it is served and a file: what can be taken over, and what cannot."""

    changes: tuple[str, ...]
    refusals: tuple[str, ...]
    new_items: tuple[Item, ...]


def compare_studies(before: Study, after: Study) -> Amendment:
    """What an amendment from `before` to `after` would do."""
    known = {item.id: item for item in before.items}
    new_items = tuple(item for item in after.items if item.id not in known)
    return Amendment(
        tuple(_changes(before, after, len(new_items))), tuple(_refusals(before, after)), new_items
    )


def _changes(before: Study, after: Study, n_new_items: int) -> Iterator[str]:
    for name in _TEXTS:
        if getattr(before, name) != getattr(after, name):
            yield f"{name} is changed"
    yield from _media_changes(before, after)
    for name in _SETTINGS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{name}: {_shown(old)} becomes {_shown(new)}"
    if after.raters_per_item > before.raters_per_item:
        yield f"raters_per_item: {before.raters_per_item} becomes {after.raters_per_item}"
    questions = {question.criterion: question for question in before.questions}
    for question in after.questions:
        old_question = questions.get(question.criterion)
        if old_question is not None and (old_question.text, old_question.help) != (
            question.text,
            question.help,
        ):
            yield f"{question.criterion}: the wording of the question is changed"
    if n_new_items:
        yield f"{count_of(n_new_items, 'item')} more"


def _media_changes(before: Study, after: Study) -> Iterator[str]:
    """Files that the owner's texts show, and where files come from; those of items are the items' own."""
    for name in ("instructions", "consent"):
        text = getattr(after, name)
        was, now = files_in([text], before.media), files_in([text], after.media)
        if text == getattr(before, name) and was != now:
            yield f"{name}: {_some(_names(set(was) ^ set(now)))} shows something else"
    old, new = (study.media.folder if study.media else None for study in (before, after))
    if old != new:
        yield f"media: {old or 'no folder'} becomes {new or 'no folder'}"


def _shown(value: object) -> str:
    if value is None:
        return "no limit"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _refusals(before: Study, after: Study) -> Iterator[str]:
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            yield f"{name} cannot change: what was answered was answered under the old one"
    if after.raters_per_item < before.raters_per_item:
        yield (
            f"raters_per_item cannot go from {before.raters_per_item} to {after.raters_per_item}: "
            "some items have more raters already"
        )
    asked = {question.criterion: question for question in after.questions}
    if [q.criterion for q in before.questions] != list(asked):
        yield "criteria cannot be added, taken away or put in another order: screens are made of them"
    for question in before.questions:
        if question.criterion in asked:
            yield from _question_refusals(question, asked[question.criterion])
    items = {item.id: item for item in after.items}
    gone = [item.id for item in before.items if item.id not in items]
    if gone:
        yield f"items cannot be taken away: {_some(gone)}"
    other = [item.id for item in before.items if items.get(item.id, item) != item]
    if other:
        yield f"an item cannot show something else under the same id: {_some(other)}"
    files_after = {(place[0], item.id): _files(item, after) for place, item in all_items(after)}
    replaced = [
        f"{name} in {item.id}"
        for place, item in all_items(before)
        if (place[0], item.id) in files_after
        for name in _names(_files(item, before) ^ files_after[place[0], item.id])
    ]
    if replaced:
        yield f"an item cannot show another file than before: {_some(replaced)}"


def _files(item: Item, study: Study) -> frozenset[MediaFile]:
    """What an item shows besides its words."""
    if study.media is None or not study.markdown:
        return frozenset()
    return frozenset(files_in((text for _, text in item_texts(item)), study.media))


def _names(files: Iterable[MediaFile]) -> list[str]:
    return sorted({file.name for file in files})


def _question_refusals(before: Question, after: Question) -> Iterator[str]:
    if before.scale != after.scale:
        yield f"{before.criterion}: another scale would make the answers incomparable"
    for name in ("shows", "required", "beside", "shown_if", "per", "turns"):
        if getattr(before, name) != getattr(after, name):
            yield f"{before.criterion}: {name} cannot change"
    if SequenceMatcher(None, before.text, after.text, autojunk=False).ratio() < _SAME_QUESTION:
        yield f"{before.criterion}: this is another question; ask it in another study, under another name"


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"
