"""What is wrong with a study file, in the file's own words: where, what was expected, what was found."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from palaver.config import Location
from palaver.errors import nearest
from palaver.schema import Dialogue, Item, Output, Question, Scale, Study, Turn

ITEMS_FROM = "items_from"
"""A study with many items may keep them in a JSON-lines file beside it, one item a line."""

_EXPECTED = {
    "string_type": "expected a text",
    "string_too_short": "must not be empty",
    "string_too_long": "expected at most {max_length} characters",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "finite_number": "expected a finite number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "literal_error": "expected {expected}",
    "greater_than": "expected more than {gt}",
    "greater_than_equal": "expected at least {ge}",
    "less_than_equal": "expected at most {le}",
    "tuple_type": "expected a list",
    "too_short": "expected at least {min_length}",
    "too_long": "expected at most {max_length}",
    "model_type": "expected a table",
    "dict_type": "expected a table",
    "mapping_type": "expected a table",
    "scale_type": 'expected a table such as {{ kind = "likert" }}',
}
"""Pydantic's types of error; it speaks of tuples and dictionaries, a TOML file of lists and tables."""

_NOUNS = (Study, Question, Item, Output, Dialogue, Turn)
_FIELDS = sorted({ITEMS_FROM, *(name for noun in _NOUNS for name in noun.model_fields)})


def explain(error: ValidationError, *, only: str | None = None) -> Iterator[tuple[Location, str]]:
    """The place and the words of each mistake, or of those of one type."""
    for mistake in error.errors():
        kind, place = mistake["type"], _place(mistake["loc"])
        if only is not None and kind != only:
            continue
        text = _words(kind, place, mistake["loc"], mistake["input"], mistake.get("ctx", {}))
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


def _words(kind: str, place: Location, raw: Location, value: Any, context: Mapping[str, Any]) -> str:
    """What to say; nothing where another mistake says it better."""
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = sorted(_scale_fields()) if "scale" in place else _FIELDS
        return f"there is no such field{nearest(str(place[-1]), [k for k in known if k != place[-1]])}"
    if kind == "scale_kind":
        return str(context["text"])
    if kind == "value_error":  # without a place it spans questions and items: design_problems says where
        return str(context["error"]) if place else ""
    if kind == "too_short" and value:  # there are elements, each with a mistake of its own
        return ""
    if _is_label(place) and place[-1] != "labels":
        return f"expected a text, a number, true or false, found {_short(value)}"
    if place[-1] == "context" and raw[-1] != "context":
        return "" if isinstance(value, dict) else f"expected a text or a dialogue, found {_short(value)}"
    expected = _EXPECTED.get(kind, kind.replace("_", " ")).format(**context)
    return f"{expected}, found {_short(value)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
