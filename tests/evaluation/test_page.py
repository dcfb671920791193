"""The page about evaluations names every field of the file, and shows what was measured."""

from __future__ import annotations

from benchmarks.evaluate_page import PAGE, render, speed_text

from palaver.evaluation.experiment import fields_of_tables


def test_every_field_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [f"{table}.{name}" for table, name, _, _ in fields_of_tables() if f"`{name}`" not in text]
    assert missing == []


def test_the_figures_are_those_of_the_results_files() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render(page) == page, "python -m benchmarks.evaluate_page writes them anew"


def test_what_was_not_reached_is_said() -> None:
    results = {"cells": 5, "nothing_to_do_seconds": 1.5, "limit_seconds": 1.0}
    told = speed_text({**results, "all_cells_there_but_a_new_title_seconds": 2.0})
    assert "1.5 s when it is started again; 1 s was to be reached and was not" in told
