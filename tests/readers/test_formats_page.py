"""The examples of dialogues and responses in the reference of formats are read by the readers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from palaver.readers import is_responses, read_dialogues, read_responses

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "formats.md"
EXAMPLES = re.findall(
    r"^```(dialogues|responses)(\.\w+)\n(.*?)^```", PAGE.read_text("utf-8"), flags=re.M | re.S
)


@pytest.mark.parametrize(("noun", "ending", "text"), EXAMPLES)
def test_an_example_is_read(noun: str, ending: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"example{ending}"
    path.write_text(text, encoding="utf-8")
    if noun == "responses":
        assert is_responses(path)
        responses = list(read_responses(path))
        assert {response.system for response in responses} == {"A", "B"}
        assert {response.context[0].text for response in responses} >= {"Hi."}
        return
    first, second = read_dialogues(path)
    assert [turn.text for turn in (*first.turns, *second.turns)] == ["Hi.", "Hello!", "Help!", ""]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 14
