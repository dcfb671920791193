"""Results as JSON, and tables."""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import palaver.cli
from palaver.cli.messages import print_json

Palaver = Callable[..., Any]


def test_tables_are_printed_by_one_function() -> None:
    """`lines.print_table` knows pipes and narrow terminals; a table of rich's own knows neither."""
    for path in Path(palaver.cli.__file__).parent.glob("*.py"):
        modules = [
            node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        ]
        if path.stem != "chat":  # it sets replies side by side
            assert "rich.table" not in modules, path.name


def test_undefined_numbers_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"value": float("nan"), "most": float("inf"), "name": "Dušek"})
    written = capsys.readouterr().out
    assert json.loads(written) == {"value": None, "most": None, "name": "Dušek"}
    assert "Dušek" in written


def test_a_result_prints_its_results_file(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(SimpleNamespace(to_json=lambda: '{"a": 1}\n'))
    assert capsys.readouterr().out == '{"a": 1}\n'


def test_a_terminal_that_knows_only_ascii_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="ascii", errors="replace"))
    print_json({"name": "Dušek"})
    sys.stdout.flush()
    assert json.loads(buffer.getvalue()) == {"name": "Dušek"}


def test_analyse_prints_results_json_and_nothing_else(palaver: Palaver, ratings: Path) -> None:
    words = ("study", "analyse", ratings, "--replicates", 20, "--json")
    ran = palaver(*words, "--out", "out")
    assert ran.code == 0
    assert ran.out == Path("out/results.json").read_text(encoding="utf-8")
    assert ran.err == "report: out/report.html\n"
    again = palaver(*words)
    assert (again.out, again.err) == (ran.out, "")
    assert {path.name for path in Path().iterdir()} == {"ratings.csv", "out"}


def test_describe_and_check(palaver: Palaver, ratings: Path) -> None:
    found = json.loads(palaver("study", "describe", ratings, "--json").out)
    assert (found["ratings"], found["items"], found["raters"]) == (72, 8, 3)
    assert [cell["system"] for cell in found["cells"]] == ["alpha", "beta", "gamma"]
    palaver("study", "new", "--preset", "likert", "--out", "study.toml")
    study = json.loads(palaver("study", "check", "study.toml", "--json").out)
    assert study["questions"][0]["scale"]["kind"] == "likert"
    alone = [question for question in study["questions"] if question["beside"] is None]
    assert study["screens"] == study["items"] * len(alone) * study["raters_per_item"]


def test_judge(palaver: Palaver, tmp_path: Path) -> None:
    row = {"id": "1", "system": "a", "context": "hi", "response": "hello you", "reference": "hello"}
    (tmp_path / "r.jsonl").write_text(json.dumps(row) + "\n")
    ran = palaver("judge", "r.jsonl", "--by", "unigram_f1", "--json", "--out", "judged.csv")
    assert ran.code == 0, ran.err
    [mean] = json.loads(ran.out)["means"]
    assert (mean["system"], mean["criterion"]) == ("a", "unigram_f1")
    assert "unigram_f1" in json.loads(palaver("judge", "--list", "--json").out)
