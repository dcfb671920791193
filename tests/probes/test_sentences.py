"""Sentences of our own: how often each rule gives the right answer, or is right to refuse.

The rules were mended by the first two hundred; of the forty after them nothing was learnt.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from sentence_agreement import DATA, PARTS, Cell, cells, figures, read_examples

from palaver.probes.transform import RULES

FOLDER = Path(__file__).parents[2] / "docs" / "results" / "probes"


@cache
def results() -> dict[str, list[Cell]]:
    """Every part under every rule: parsed in one go."""
    by_part = {name: read_examples(DATA / name) for name in PARTS}
    remaining = iter(cells([example for examples in by_part.values() for example in examples]))
    return {name: [next(remaining) for _ in range(len(own) * len(RULES))] for name, own in by_part.items()}


def wrong(chosen: list[Cell]) -> str:
    return "\n".join(
        f"{cell.rule}: {cell.example.sentence} -> {cell.outcome}, not {cell.expected or 'a refusal'}"
        for cell in chosen
        if not cell.is_right
    )


def test_there_are_two_hundred_and_forty_of_four_kinds() -> None:
    examples = {cell.example.sentence: cell.example.genre for part in results().values() for cell in part}
    assert len(examples) == 240
    assert set(Counter(examples.values())) == {"news", "chat", "caption", "question"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["all", "answer", "refusal"])  # who always refuses has none of the answers
def test_the_rules_agree_with_what_is_right(part: str, kind: str) -> None:
    figure = figures(results()[part])[kind]
    assert figure["right"] >= 0.95 * figure["n"], wrong(results()[part])


@pytest.mark.parametrize("rule", RULES)
def test_each_rule(rule: str) -> None:
    chosen = [cell for part in results().values() for cell in part if cell.rule == rule]
    # Of synonyms the list cannot have all that somebody thinks of.
    least = 0.9 if rule == "synonym" else 0.95
    assert sum(cell.is_right for cell in chosen) >= least * len(chosen), wrong(chosen)


def test_the_file_has_the_figures_of_today_and_the_page_those_of_the_file() -> None:
    written = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
    assert {name: written["now"][name] for name in PARTS} == {n: figures(p) for n, p in results().items()}
    page = (FOLDER / "rubric.md").read_text(encoding="utf-8")
    rows = {
        "first hundred, first look": written["first look"]["sentences_a.txt"],
        "first hundred, mended": written["now"]["sentences_a.txt"],
        "second hundred, mended": written["now"]["sentences_b.txt"],
        "forty more, read once": written["now"]["sentences_c.txt"],
    }
    for label, part in rows.items():
        shares = [f"{100 * part[key]['right'] / part[key]['n']:.1f}%" for key in ("all", "answer", "refusal")]
        always_refusing = f"{100 * part['refusal']['n'] / part['all']['n']:.1f}%"
        assert f"| {label} | {' | '.join(shares)} | {always_refusing} |" in page


def test_the_page_has_the_figures_of_the_sheet_of_inversion() -> None:
    rows = [row.split("\t") for row in (FOLDER / "judged_inversion.tsv").read_text("utf-8").splitlines()[1:]]
    shares = [
        sum(row[3] == "y" for row in rows),
        sum(row[4] == "y" for row in rows),
        sum(row[3] == row[4] == "y" for row in rows),
    ]
    grammatical, meaning, both = (f"{100 * share / len(rows):.1f}%" for share in shares)
    page = (FOLDER / "rubric.md").read_text(encoding="utf-8")
    assert f"| inversion, as it is | | 909 | {grammatical} | {meaning} | **{both}** |" in page
    captions = [row for row in rows if row[0].startswith("sick:")]
    failed = [row for row in rows if row[4] != "y"]
    assert not any(row in captions for row in failed)
    assert f"({len(failed)} of {len(rows) - len(captions)})" in page
    assert f"of the {len(captions)} captions" in page
