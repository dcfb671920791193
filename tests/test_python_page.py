"""The page about Python: its examples run in order, and every public name is in one of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import palaver

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, block in enumerate(BLOCKS, start=1):
        exec(compile(block, f"{PAGE.name}, example {number}", "exec"), names)


def test_every_public_name_has_an_example() -> None:
    imported = set()
    for block in BLOCKS:
        for names in re.findall(r"^from palaver import (\([^)]*\)|[^\n]*)", block, flags=re.M):
            imported |= set(re.findall(r"\w+", names))
    assert imported == set(palaver.__all__) - {"__version__"}
