"""`palaver personality distinguish` and what is typed wrong there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WORDS = ("dear", "because", "party", "door", "table", "now", "very", "good")
DISTINGUISH = ("personality", "distinguish", "talk.jsonl")
FAST = (
    "--samples",
    "10",
    "--size",
    "20",
    "--repetitions",
    "2",
    "--pools",
    "10",
    "--words",
    "20",
    "--engine",
    "local",
)


def write(path: Path, names: dict[str, int], n_dialogues: int = 60) -> Path:
    """Everybody speaks three times in each dialogue; those of one kind like the same words."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n_dialogues):
        turns = []
        for _ in range(3):
            for name, kind in names.items():
                p = np.ones(len(WORDS))
                p[kind] = 12
                turns.append({"speaker": name, "text": " ".join(rng.choice(WORDS, 5, p=p / p.sum()))})
        rows.append({"id": str(i), "turns": turns})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_characters_of_a_dialogue_file(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 1})
    ran = palaver(*DISTINGUISH, "--min-utterances", "50", *FAST, "--out", "found")
    assert ran.code == 0, ran.err
    assert "Distinguishable beyond chance resampling: yes" in " ".join(ran.out.split())
    assert (tmp_path / "found/report.html").is_file()
    result = json.loads((tmp_path / "found/results.json").read_text(encoding="utf-8"))
    assert {c["name"] for c in result["conditions"]} >= {
        "characters",
        "pseudo-characters",
        "characters by group",
    }
    again = palaver(*DISTINGUISH, "--min-utterances", "50", *FAST, "--out", "again", "--json")
    assert again.code == 0
    assert again.out == (tmp_path / "again/results.json").read_text(encoding="utf-8")
    assert again.err == "report: again/report.html\n"
    assert (tmp_path / "again/results.json").read_bytes() == (tmp_path / "found/results.json").read_bytes()


def test_nobody_is_different(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 0})
    ran = palaver(*DISTINGUISH, "--min-utterances", "50", *FAST)
    assert "Distinguishable beyond chance resampling: no" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        (
            {"Ann": 0, "Bob": 1},
            ("--size", "500"),
            ("needs more than 500 of each character", "Ann: 180 utterances"),
        ),
        ({"Ann": 0}, (), ("expected 2 or more characters", "found 1")),
        ({"Ann": 0, "ann": 1}, (), ("spelled in two ways", "--rename")),
        ({"Ann": 0, "Bob": 1}, ("--character", "Anne"), ("nobody of that name", "did you mean", "Ann")),
        ({"Ann": 0, "Bob": 1}, ("--rename", "Ann"), ("expected OLD=NEW",)),
        ({"Ann": 0, "Bob": 1}, ("--by", "mood"), ("no turn has a label 'mood'",)),
        ({"Ann": 0, "Bob": 1}, ("--recogniser", "nowhere.json"), ("nowhere.json",)),
        ({"Ann": 0, "Bob": 1}, ("--drop-common", "5"), ("is for generated responses",)),
    ],
)
def test_what_is_wrong_is_said(
    palaver: Any, tmp_path: Path, names: dict[str, int], options: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    write(tmp_path / "talk.jsonl", names)
    ran = palaver(*DISTINGUISH, "--min-utterances", "50", *FAST, *options)
    assert ran.code == (2 if options == ("--rename", "Ann") else 1)
    assert "Traceback" not in ran.err
    for text in expected:
        assert text in " ".join(ran.err.split())


def test_several_sources_are_compared(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 1})
    write(tmp_path / "same.jsonl", {"Ann": 2, "Bob": 2, "Cyd": 3})
    few = ("--min-utterances", "50", *FAST[:-4], "--words", "0", "--engine", "local")
    ran = palaver(*DISTINGUISH, "same.jsonl", *few, "--out", "found")
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert "Sources compared" in said
    assert "left out Cyd" in said
    result = json.loads((tmp_path / "found/results.json").read_text(encoding="utf-8"))
    (test,) = result["tests"]
    assert (test["a"], test["b"]) == ("talk.jsonl", "same.jsonl")
    assert test["difference"] > 0.2
    assert test["p"] <= test["p_holm"]
    assert (tmp_path / "found/1/report.html").is_file()
    again = palaver(*DISTINGUISH, "same.jsonl", *few, "--json")
    assert json.loads(again.out)["tests"] == result["tests"]


def test_another_classifier(palaver: Any, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", {"Ann": 0, "Bob": 1})
    few = ("--min-utterances", "50", *FAST[:-4], "--words", "0", "--engine", "local")
    ran = palaver(*DISTINGUISH, *few, "--classifier", "agglomerative", "--out", "found")
    assert ran.code == 0, ran.err
    assert "agglomerative" in (tmp_path / "found/report.html").read_text(encoding="utf-8")
    wrong = palaver(*DISTINGUISH, "--classifier", "mpl")
    assert (wrong.code, "did you mean 'mlp'" in wrong.err) == (2, True)
