"""The page about Python: its examples run in order, and every public name is in one of them."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path
from typing import Any

import pytest

import palaver
from palaver.tabular import Tabular

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"{PAGE.name}, example {number}", "exec"), names)
    results = [thing for thing in names.values() if isinstance(thing, Tabular)]
    tables = {type(result).__name__: list(result._tables()) for result in results}
    assert len(tables) >= 12
    assert tables == {name: listed_tables()[name] for name in tables}


def test_every_public_name_has_an_example() -> None:
    imported = set()
    for block in BLOCKS:
        for names in re.findall(r"^from palaver import (\([^)]*\)|[^\n]*)", block, flags=re.M):
            imported |= set(re.findall(r"\w+", names))
    assert imported == set(palaver.__all__) - {"__version__"}


def listed_tables() -> dict[str, list[str]]:
    """Result -> the names of its tables, as the page lists them."""
    rows = re.findall(r"^\| (`[A-Z]\w+`[^|]*) \|[^|]*\| ([^|]+) \|$", PAGE.read_text("utf-8"), flags=re.M)
    return {kind: names.split(", ") for kinds, names in rows for kind in re.findall(r"\w+", kinds)}


def test_every_result_is_in_the_list_of_tables() -> None:
    doors = [getattr(palaver, name) for name in palaver.__all__ if name != "__version__"]
    given = [typing.get_type_hints(door).get("return") for door in doors if inspect.isfunction(door)]
    results = {kind.__name__ for kind in given if inspect.isclass(kind) and issubclass(kind, Tabular)}
    assert results - set(listed_tables()) == set()
