"""`palaver demo`: a whole evaluation from what comes along, with and without models."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from palaver.cli.demo import copy_demo
from palaver.evaluation.experiment import load_experiment

Palaver = Callable[..., Any]


def test_without_models_what_was_kept_is_shown(
    palaver: Palaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "palaver.cli.demo.find_spec", lambda name: None if name == "torch" else find_spec(name)
    )
    ran = palaver("demo")
    assert ran.code == 0, ran.err
    assert ran.err.startswith("note: torch is not installed, so kept replies and scores are shown")
    assert "written is the best of 3, " in ran.out
    assert "The people are simulated" in ran.out
    assert "report: demo-output/results/report.html" in ran.out
    results = json.loads((tmp_path / "demo-output/results/results.json").read_text())
    assert [row["n_replies"] for row in results["systems"]] == [12, 12, 12]
    assert {row["judge"] for row in results["judges"]} == {"unigram_f1", "comparator", "words"}
    assert results["worth"], "people rated eight of twelve, and a judge all"
    assert palaver("demo").code == 1, "what is there is not replaced"


def test_both_forms_show_the_same(tmp_path: Path) -> None:
    whole = load_experiment(copy_demo(tmp_path / "a", "experiment.toml"))
    kept = load_experiment(copy_demo(tmp_path / "b", "kept.toml"))
    assert list(whole.systems) == list(kept.systems)
    assert whole.people == kept.people
    assert whole.report == kept.report
    assert [judge.rpartition(":")[2].partition("=")[0] for judge in kept.judges] == [
        judge.partition("=")[0] for judge in whole.judges
    ]


def test_every_reply_that_is_kept_has_its_score(tmp_path: Path) -> None:
    folder = copy_demo(tmp_path, "kept.toml").parent
    kept = [json.loads(line) for line in (folder / "kept.jsonl").read_text().splitlines()]
    written = [json.loads(line)["id"] for line in (folder / "written.jsonl").read_text().splitlines()]
    assert [(row["system"], row["id"]) for row in kept] == [
        (s, id) for s in ("chat", "model") for id in written
    ]
    scores = json.loads((folder / "kept-scores.json").read_text())
    assert {system: list(of) for system, of in scores.items()} == dict.fromkeys(
        ("written", "chat", "model"), written
    )
