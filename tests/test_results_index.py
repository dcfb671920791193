"""docs/results/index.md has no figure of ours that is not on the page it leads to."""

from __future__ import annotations

import re

from tests.results_pages import RESULTS, read_page, table_rows


def plain(text: str) -> str:
    return text.replace("*", "").replace("0.", ".").replace(" %", "%")


def test_every_figure_is_on_its_page() -> None:
    rows = table_rows(read_page("index"), "| paper |")
    assert len(rows) >= 10
    for _, _, measured, data, _ in rows:
        page = re.search(r"\]\(([\w-]+)\.md\)", data)
        assert page is not None, data
        there = plain(read_page(page[1]))
        for number in re.findall(r"[−+]?\d*\.?\d+", plain(measured)):
            whole = rf"(?<![\d.]){re.escape(number.lstrip('+'))}(?![\d])"
            assert re.search(whole, there), f"{number} is not on {page[1]}.md: {measured}"


def test_every_page_is_named() -> None:
    index = read_page("index")
    assert all(f"({path.name})" in index for path in RESULTS.glob("*.md") if path.name != "index.md")
