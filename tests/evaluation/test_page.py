"""The page about evaluations names every field of the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

from palaver.evaluation.experiment import fields_of_tables

PAGE = Path(__file__).parent.parent.parent / "docs" / "how-to" / "evaluate.md"


def test_every_field_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [f"{table}.{name}" for table, name, _, _ in fields_of_tables() if f"`{name}`" not in text]
    assert missing == []


def test_the_figures_of_the_soak_are_those_of_its_file() -> None:
    results = json.loads((PAGE.parent.parent / "results" / "evaluate-soak.json").read_text())["results"]
    section = PAGE.read_text(encoding="utf-8").partition("## Killed")[2].partition("\n## ")[0]
    figures = [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", section)]
    twice, batches = results["cells_paid_twice"], results["one_batch_a_kill_would_be"]
    assert figures == [
        1600, results["kills"], results["runs_that_ended"], results["of_these_byte_equal"],
        twice["reply"], twice["judge"], batches["reply"], batches["judge"],
    ]  # fmt: skip


def test_the_figures_of_large_results_are_those_of_their_file() -> None:
    results = json.loads((PAGE.parent.parent / "results" / "evaluate-size.json").read_text())["results"]
    section = " ".join(
        PAGE.read_text(encoding="utf-8").partition("## Large results")[2].partition("\n## ")[0].split()
    )
    for words in (
        f"Results of {results['bytes_of_folder'] / 1e9:.2f} GB ({results['contexts']:,} contexts",
        f"a page of {results['bytes_of_report'] / 1e3:.0f} kB with {results['examples']} examples",
        f"opens in {results['open_seconds']} s",
        f"held {results['first_peak_megabytes']} MB of memory at most",
        f"and {results['report_again_peak_megabytes']} MB when it wrote",
    ):
        assert words in section
    assert results["open_seconds"] <= results["limit_seconds"]
    assert results["first_peak_megabytes"] * 1e6 < results["bytes_of_folder"]


def test_the_speed_is_that_of_its_file() -> None:
    results = json.loads((PAGE.parent.parent / "results" / "evaluate.json").read_text())["results"]
    sentence = f"run of {results['cells']:,} cells says so in {results['nothing_to_do_seconds']} s"
    assert sentence in PAGE.read_text(encoding="utf-8")
