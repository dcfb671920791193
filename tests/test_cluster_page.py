"""The page on clusters shows what the benchmark wrote, and names what there is."""

from __future__ import annotations

from benchmarks.engine_page import PAGE, read_record, render

from palaver.engine.engine import SHAPES


def test_the_tables_are_those_of_the_results_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    record = read_record()
    assert render(page, record) == page, "python -m benchmarks.engine_page writes them anew"
    for part in record.values():
        assert {"command", "seed", "machine", "results"} <= set(part)


def test_the_page_says_what_engines_are_called() -> None:
    assert f"`--engine {SHAPES}`" in PAGE.read_text(encoding="utf-8")
