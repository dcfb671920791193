"""The keys of an experiment file with defaults and meaning, read off their declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from palaver.training.experiment import (
    Data,
    Experiment,
    Log,
    ModelSettings,
    Optimiser,
    Source,
    VocabularySettings,
)
from palaver.training.experiment_file import model_table

_TABLES: tuple[tuple[str, type[BaseModel]], ...] = (
    ("", Experiment),
    ("[data]", Data),
    ("a source in `data.train` and `data.valid`", Source),
    ("[vocabulary]", VocabularySettings),
    ("[model]", ModelSettings),
    ("[optimiser]", Optimiser),
    ("[log]", Log),
)

Key = tuple[str, str, str]
"""Name, default, meaning."""


def reference() -> Iterator[tuple[str, list[Key]]]:
    """The tables of the file in order, each with its keys; those of the two models at the end."""
    for title, table in _TABLES:
        yield (
            title or "the file itself",
            [
                (field.alias or name, _default(field), _meaning(field))
                for name, field in table.model_fields.items()
                if field.description
            ],
        )
    for kind in ("seq2seq", "knowledge-transformer"):
        fields = model_table(kind).model_fields.items()
        yield (
            f'[model] of kind "{kind}"',
            [(name, _default(field), _choices(field)) for name, field in fields],
        )


def reference_markdown() -> str:
    """The same as tables for the documentation."""
    parts = []
    for title, keys in reference():
        heading = f"`{title}`" if title.startswith("[") else title[0].upper() + title[1:]
        parts += [f"## {heading}\n", "| key | default | |", "|---|---|---|"]
        parts += [
            f"| `{name}` | {f'`{default}`' if default else ''} | {text} |" for name, default, text in keys
        ]
        parts.append("")
    return "\n".join(parts)


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if value is None or value in ("", ()):
        return ""
    return json.dumps(value)


def _meaning(field: FieldInfo) -> str:
    choices = _choices(field)
    return f"{field.description}{f'; {choices}' if choices else ''}"


def _choices(field: FieldInfo) -> str:
    if get_origin(field.annotation) is not Literal:
        return ""
    return ", ".join(f"`{value}`" for value in get_args(field.annotation))
