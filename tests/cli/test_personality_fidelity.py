"""`palaver personality fidelity`, from a model's responses to the matrix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_from_requests_to_the_matrix(palaver: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rows = ["speaker,O,C,E,A,N"]
    rows += [f"r{i},{2 + i % 5},{1 + i},{6 - i % 4},{2 + i % 3},{7 - i}" for i in range(6)]
    (tmp_path / "requests.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "lines.txt").write_text("Do you love me?\nWhat about dinner?\n", encoding="utf-8")
    asked = (
        "--contexts",
        "lines.txt",
        "--ocean-table",
        "requests.csv",
        "--device",
        "cpu",
        "--max-length",
        "8",
    )
    made = palaver("generate", "--system", "default-personality", *asked, "--out", "said.jsonl")
    assert made.code == 0, made.err
    ran = palaver("personality", "fidelity", "said.jsonl", "--deals", "100", "--out", "fidelity.json")
    assert ran.code == 0, ran.err
    assert "6 requested personalities" in ran.out
    assert "measured by self-report" in ran.out
    assert "only 6 requested personalities: the intervals are wide" in " ".join(ran.out.split())
    result = json.loads((tmp_path / "fidelity.json").read_text(encoding="utf-8"))
    assert len(result["matrix"]) == 25
    printed = palaver("personality", "fidelity", "said.jsonl", "--deals", "100", "--json")
    assert json.loads(printed.out) == result


def test_responses_without_a_request(palaver: Any, tmp_path: Path) -> None:
    said = [{"id": str(i), "speaker": who, "response": "Well, yes."} for i in range(9) for who in "ab"]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said), encoding="utf-8")
    ran = palaver("personality", "fidelity", "said.jsonl")
    assert ran.code == 1
    assert "--table" in ran.err
    unknown = palaver("personality", "fidelity", "said.jsonl", "--measured-by", "self-reports")
    assert "did you mean 'self-report'" in unknown.err
