"""`palaver meta` from files to terminal, JSON and page."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]
SYSTEMS = {"good": 4, "bad": 2}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    people, scores, said = tmp_path / "people.csv", tmp_path / "scores.csv", tmp_path / "said.jsonl"
    with people.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "system", "rater", "criterion", "value"])
        for i in range(8):
            for system, level in SYSTEMS.items():
                for k, rater in enumerate("xyz"):
                    writer.writerow([f"i{i}", system, rater, "overall", level + (i + k) % 2])
    with scores.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "system", "rater", "criterion", "value"])
        for i in range(8):
            for system, level in SYSTEMS.items():
                writer.writerow([f"i{i}", system, "gpt", "quality", level + (i * 7) % 5 / 10])
    rows: list[dict[str, Any]] = [
        {"id": f"i{i}", "system": system, "context": "Hello?", "response": f"{system} reply {i}"}
        for i in range(8)
        for system in SYSTEMS
    ]
    said.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return people, scores, said


def test_from_files_to_a_page(palaver: Palaver, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    people, scores, said = files
    page = tmp_path / "meta.html"
    words = ["meta", people, scores, "--kind", "scores.csv=llm", "--responses", said, "--out", page]
    ran = palaver(*words)
    assert ran.code == 0, ran.err
    assert "People's overall" in ran.out
    assert "one person, beside the others" in ran.out
    assert "reply" in page.read_text()
    again = palaver(*words)
    assert again.code == 1
    assert "there already" in again.err


def test_json_and_match(palaver: Palaver, files: tuple[Path, Path, Path]) -> None:
    people, scores, _ = files
    words = ["meta", people, scores, "--kind", "scores.csv=llm", "--json"]
    found = json.loads(palaver(*words, "--match", "quality=overall").out)
    assert {row["judge"] for row in found["rows"]} == {"gpt"}
    assert found["signature"]
    for word, code, told in (("quality", 2, "expected A=B"), ("quality=x", 1, "people did not rate")):
        ran = palaver(*words, "--match", word)
        assert ran.code == code
        assert told in ran.err


def test_two_files_of_people_are_no_judge(palaver: Palaver, files: tuple[Path, Path, Path]) -> None:
    people, scores, _ = files
    ran = palaver("meta", people, scores)
    assert ran.code == 1
    assert "--kind scores.csv=llm" in ran.err


def test_out_is_a_page_or_json(palaver: Palaver, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    people, scores, _ = files
    words = ["meta", people, scores, "--kind", "scores.csv=llm", "--out"]
    assert palaver(*words, tmp_path / "meta.txt").code == 2
    assert palaver(*words, tmp_path / "meta.json").code == 0
    assert json.loads((tmp_path / "meta.json").read_text())["rows"]
