"""Every command, every option and every field of a file that people write is on a page that people read.

The page of all commands is made from the code, so it does not count.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel
from tests.cli.test_main import commands
from tests.documentation import PAGES

from palaver.collection.settings import Collection
from palaver.evaluation.experiment import _Head, fields_of_tables
from palaver.generation.options import KINDS
from palaver.schema import Study


@cache
def text() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


@cache
def words() -> frozenset[str]:
    return frozenset(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*|[A-Za-z_][A-Za-z_0-9]*", text()))


def test_every_verb_is_mentioned() -> None:
    verbs = {" ".join(way) for way, _ in commands()}
    missing = [
        verb for verb in verbs if not re.search(rf"palaver\s+{verb.replace(' ', chr(92) + 's+')}\b", text())
    ]
    assert not missing, f"no page mentions: {sorted(missing)}"


def test_every_option_is_mentioned() -> None:
    missing: dict[str, list[str]] = {}
    for way, command in commands():
        for option in command.params:
            names = [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")]
            if names and not option.hidden and not words() & set(names):
                missing.setdefault(max(names, key=len), []).append(" ".join(way))
    assert not missing, f"no page mentions: {missing}"


def fields(model: type[BaseModel], seen: set[type] | None = None) -> Iterator[tuple[str, str]]:
    """The fields of a file's tables, those of tables in tables too."""
    seen = set() if seen is None else seen
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        yield model.__name__, field.alias or name
        for kind in models_in(field.annotation):
            yield from fields(kind, seen)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def of_experiment() -> Iterator[tuple[str, str]]:
    yield from fields(_Head)
    yield from ((table, name) for table, name, _, _ in fields_of_tables())


def of_systems() -> Iterator[tuple[str, str]]:
    for options in KINDS.values():
        yield from fields(options)


def of_training() -> Iterator[tuple[str, str]]:
    from palaver.training.experiment_file import reference

    yield from ((title, name) for title, rows in reference() for name, _, _ in rows)


FILES = {
    "study": lambda: fields(Study),
    "collection": lambda: fields(Collection),
    "experiment": of_experiment,
    "systems": of_systems,
    "training": of_training,
}


@pytest.mark.parametrize("file", FILES)
def test_every_field_is_mentioned(file: str) -> None:
    known = list(FILES[file]())
    assert len(known) > 10
    missing = [f"{name} ({table})" for table, name in known if name not in words()]
    assert not missing, f"no page mentions: {missing}"
