"""The word lists of the rules: short ones are written where they are used, long ones stand in words.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


TABLES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
LISTS = {name: word_set(text) for name, text in TABLES["lists"].items()}
MAPS = {
    name: {key: word_set(text) for key, text in entries.items()} for name, entries in TABLES["maps"].items()
}
