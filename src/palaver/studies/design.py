"""A study file (TOML) into a `Study`, with every mistake named at once and in its line; and the presets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from palaver.config import Lines, Location, config_error, parse_toml, read_toml
from palaver.errors import UserError, nearest
from palaver.files import TextStream
from palaver.schema import SCALES, Item, Output, Question, Study
from palaver.schema.study import design_problems

ITEMS_FROM = "items_from"
"""A study with many items may keep them in a JSON-lines file beside it, one item a line."""

PRESETS = {
    "rankme": "rank-based magnitude estimation: all outputs of an item on one screen (Novikova et al. 2018)",
    "plain-me": "plain magnitude estimation: one output at a time against a reference of 100",
    "likert": "6-point Likert scales",
    "pairwise": "two whole dialogues side by side, with 'cannot tell' (Liang et al. 2020)",
    "snippet": "one reply to a dialogue so far: five quick questions (Gopalakrishnan et al. 2019)",
}


def preset_text(name: str, *, layout: str | None = None) -> str:
    """The study file of a preset; `layout` replaces its set-up."""
    if name not in PRESETS:
        raise UserError(
            f"there is no preset {name!r}{nearest(name, list(PRESETS))}", f"known: {', '.join(PRESETS)}"
        )
    text = (files("palaver.studies") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    if layout is not None:
        current = next(line for line in text.splitlines() if line.startswith("layout = "))
        comment = current[current.index("#") :] if "#" in current else ""
        text = text.replace(current, f'layout = "{layout}"'.ljust(27) + comment, 1)
    return text


def preset_study(name: str, *, layout: str | None = None) -> Study:
    """A preset as a value, with the few items of its own."""
    return _build(Path(f"preset {name}"), *parse_toml(preset_text(name, layout=layout), name))


def load_study(path: str | Path) -> Study:
    """The study described by a TOML file. All mistakes are reported together."""
    return _build(Path(path), *read_toml(path))


def _build(path: Path, data: dict[str, Any], lines: Lines) -> Study:
    mistakes: list[tuple[Location, str]] = []
    if ITEMS_FROM in data:
        data = {**data, "items": _items_from(path, data, mistakes)}
        data.pop(ITEMS_FROM)
    study: Study | None = None
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        mistakes += [m for m in _explain(error, data) if m[0]]
        # Pydantic stops before the checks that span questions and items; run them on what is sound.
        mistakes += design_problems(_sound(data, "questions", Question), _sound(data, "items", Item))
    if mistakes or study is None:
        raise config_error(path, lines, mistakes)
    return study


def _items_from(path: Path, data: dict[str, Any], mistakes: list[tuple[Location, str]]) -> list[Any]:
    if "items" in data:
        mistakes.append(((ITEMS_FROM,), "give either items or items_from, not both"))
        return data["items"] if isinstance(data["items"], list) else []
    if not isinstance(data[ITEMS_FROM], str):
        mistakes.append(((ITEMS_FROM,), f"expected a file name, found {data[ITEMS_FROM]!r}"))
        return []
    source = path.parent / data[ITEMS_FROM]
    items: list[Any] = []
    with TextStream(source) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                items.append(json.loads(line))
                Item.model_validate(items[-1])
            except ValidationError as error:
                place = f"{source.name}, line {number}"
                mistakes += [
                    ((ITEMS_FROM,), f"{place}: {_dotted(at)}{text}") for at, text in _explain(error, {})
                ]
            except ValueError as error:
                mistakes.append(((ITEMS_FROM,), f"{source.name}, line {number}: not JSON: {error}"))
    return items


def _dotted(location: Location) -> str:
    return ".".join(str(p + 1) if isinstance(p, int) else p for p in location) + ": " if location else ""


def _sound(data: dict[str, Any], key: str, noun: type[BaseModel]) -> dict[int, Any]:
    """Those elements that are valid by themselves, by their place in the file."""
    sound: dict[int, Any] = {}
    for i, element in enumerate(data.get(key) if isinstance(data.get(key), list) else []):  # type: ignore[arg-type]
        try:
            sound[i] = noun.model_validate(element)
        except ValidationError:
            continue
    return sound


_FIELDS = sorted(
    {*Study.model_fields, *Question.model_fields, *Item.model_fields, *Output.model_fields, ITEMS_FROM}
)


def _explain(error: ValidationError, data: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    """Pydantic's errors as (place in the file, what to do). Union branches and tags are not places."""
    for mistake in error.errors():
        place = tuple(
            p for p in mistake["loc"] if p not in SCALES and p not in ("str", "Dialogue", "function-after")
        )
        kind = mistake["type"]
        if kind == "missing":
            text = "is missing"
        elif kind == "extra_forbidden":
            name = str(place[-1])
            known = _scale_fields() if "scale" in place else _FIELDS
            text = f"there is no such field{nearest(name, [k for k in known if k != name])}"
        elif kind in ("union_tag_invalid", "union_tag_not_found"):
            found = mistake["input"].get("kind") if isinstance(mistake["input"], dict) else mistake["input"]
            hint = nearest(str(found), list(SCALES))
            text = f"kind: expected one of {', '.join(SCALES)}, found {found!r}{hint}"
        elif kind == "value_error":
            text = str(mistake["ctx"]["error"])
            if place == ():  # said again, with its place, by design_problems
                continue
        else:
            message = mistake["msg"]
            text = f"{message[0].lower()}{message[1:]}, found {_short(mistake['input'])}"
        yield place, text


def _scale_fields() -> list[str]:
    return sorted({f for scale in SCALES.values() for f in scale.model_fields})


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def study_toml(study: Study) -> str:
    """The study as a TOML file that `load_study` reads back to the same value."""
    fields = study.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    tables = {key: fields.pop(key) for key in ("questions", "items")}
    for q, question in enumerate(study.questions):
        tables["questions"][q]["scale"]["kind"] = question.scale.kind  # a default, but the tag of the union
    lines = [f"{key} = {_toml(value)}" for key, value in fields.items()]
    for key, rows in tables.items():
        for row in rows:
            lines += ["", f"[[{key}]]", *(f"{name} = {_toml(value)}" for name, value in row.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        inner = ",\n  ".join(_toml(v) for v in value)
        return (
            f"[\n  {inner},\n]"
            if any(isinstance(v, dict) for v in value)
            else f"[{', '.join(map(_toml, value))}]"
        )
    # JSON's strings, numbers and truth values are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
