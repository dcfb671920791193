"""The report on characters: in the terminal and as a page."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from palaver.reports.personality import print_distinguishability, render_personality_report

HOSTILE = "<script>alert(1)</script>"


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_names_and_numbers_whole(characters: Any, width: int) -> None:
    text = io.StringIO()
    print_distinguishability(
        characters, Console(file=text, width=width, force_terminal=True, color_system=None)
    )
    shown = text.getvalue()
    assert "Distinguishable beyond chance resampling: yes" in shown.replace("\n", " ").replace("  ", " ")
    assert "Ann [bold]" in shown
    assert "characters, by traits" in shown
    assert "pseudo-characters" in shown
    assert "3  empty turns" in shown
    assert max(map(len, shown.splitlines())) <= width


def test_the_page_is_whole_and_asks_for_nothing(characters: Any) -> None:
    page = render_personality_report(characters)
    assert page.startswith("<!DOCTYPE html>")
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<svg") == 2  # traits and conditions; the confusion matrix is a table
    assert not re.search(r'(?:src|href)="https?://(?!aclanthology)', page)
    for text in ("Distinguishable is not the same as having the traits", "pseudo-characters", "onfusion"):
        assert text in page


def test_the_same_result_gives_the_same_page(characters: Any) -> None:
    assert render_personality_report(characters) == render_personality_report(characters)
