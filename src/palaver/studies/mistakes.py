"""What is wrong with a study file, in the file's own words: where, what was expected, what was found."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from palaver.config import Location
from palaver.errors import explain_mistake, short_repr
from palaver.schema import Condition, Dialogue, Item, Output, Question, Scale, Study, Turn
from palaver.schema.translation import Translation

ITEMS_FROM = "items_from"
"""A study with many items may keep them in a JSON-lines file beside it, one item a line."""

_NOUNS = (Study, Question, Condition, Item, Output, Dialogue, Turn, Translation)
_FIELDS = sorted({ITEMS_FROM, *(name for noun in _NOUNS for name in noun.model_fields)})


def explain(error: ValidationError, *, only: str | None = None) -> Iterator[tuple[Location, str]]:
    """The place and the words of each mistake, or of those of one type."""
    for mistake in error.errors():
        kind, place = mistake["type"], _place(mistake["loc"])
        if only is not None and kind != only:
            continue
        text = _words(mistake, place)
        if text:
            yield place, text


def without_unknown_fields(data: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """A copy of `data` that lacks the fields of which `error` says that they do not exist."""
    mended: dict[str, Any] = copy.deepcopy(dict(data))
    for mistake in error.errors():
        if mistake["type"] == "extra_forbidden":
            *way, name = _place(mistake["loc"])
            table: Any = mended
            for part in way:
                table = table[part]
            table.pop(name, None)
    return mended


def _place(location: Location) -> Location:
    """Without the alternatives of a union, which are no places in the file."""
    place = tuple(
        part
        for before, part in zip(("", *location), location, strict=False)
        if not (before == "context" and _is_branch(part))
    )
    return place[: place.index("labels") + 2] if _is_label(place) else place


def _is_label(place: Location) -> bool:
    return "labels" in place and "scale" not in place  # a scale's labels are a list of texts


def _is_branch(part: str | int) -> bool:
    return part == "str" or str(part).startswith("function-")


def _scale_fields(scale: type[Scale] = Scale) -> set[str]:
    """The fields of every scale that is loaded."""
    return {*scale.model_fields}.union(*(_scale_fields(kind) for kind in scale.__subclasses__()))


def _words(mistake: Mapping[str, Any], place: Location) -> str:
    """What to say; nothing where another mistake says it better."""
    kind, value = mistake["type"], mistake["input"]
    if kind == "scale_kind":
        return str(mistake["ctx"]["text"])
    if kind == "value_error" and not place:  # it spans questions and items: design_problems says where
        return ""
    if kind == "too_short" and value:  # there are elements, each with a mistake of its own
        return ""
    if kind not in ("missing", "extra_forbidden"):
        if _is_label(place) and place[-1] != "labels":
            return f"expected a text, a number, true or false, found {short_repr(value)}"
        if place[-1:] == ("context",) and mistake["loc"][-1] != "context":
            is_table = isinstance(value, dict)  # its own mistakes say more
            return "" if is_table else f"expected a text or a dialogue, found {short_repr(value)}"
    known = sorted(_scale_fields()) if "scale" in place else _FIELDS
    return explain_mistake(mistake, [name for name in known if name != place[-1]])
