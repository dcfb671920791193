"""The page about evaluations names every field of the file."""

from __future__ import annotations

from pathlib import Path

from palaver.evaluation.experiment import fields_of_tables

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "evaluate.md"


def test_every_field_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [f"{table}.{name}" for table, name, _, _ in fields_of_tables() if f"`{name}`" not in text]
    assert missing == []
