"""Metrics of systems in the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from palaver.metrics.file_scores import FileScores, score_files
from palaver.reports.metrics import MOST_PAIRS, print_scores

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight"]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> FileScores:
    """Nine systems, each a little better than the one before."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "id": str(i),
            "system": f"s{k}",
            "response": " ".join(w if rng.random() < 0.1 * (k + 1) else "no" for w in WORDS),
            "reference": " ".join(WORDS),
        }
        for k in range(9)
        for i in range(30)
    ]
    path = tmp_path_factory.mktemp("scores") / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return score_files(path, ["unigram_f1", "words"], n_replicates=200)


def shown(scores: FileScores, *, terminal: bool) -> str:
    file = io.StringIO()
    print_scores(scores, Console(file=file, width=120, force_terminal=terminal, no_color=True))
    return file.getvalue().split("Pairs of systems")[1].split("Signatures")[0]


def test_a_terminal_gets_many_pairs_as_one_line_a_metric(scores: FileScores) -> None:
    assert len(scores.differences) > MOST_PAIRS
    text = shown(scores, terminal=True)
    lines = [line.split() for line in text.splitlines()]
    of_f1 = next(line for line in lines if line[:1] == ["unigram_f1"])
    n_apart = sum(pair.p_holm < 0.05 for pair in scores.differences if pair.metric == "unigram_f1")
    assert of_f1[1:4] == [str(n_apart), "of", "36"]
    assert of_f1[4] == "s8"
    assert "s0" not in of_f1
    of_words = next(line for line in lines if line[:1] == ["words"])
    assert of_words[1:] == ["0", "of", "36", "–", "–"]  # no direction is better
    assert "72 pairs" in text
    assert "--json" in text


def test_a_pipe_gets_every_pair(scores: FileScores) -> None:
    text = shown(scores, terminal=False)
    assert sum(line.startswith(("unigram_f1 ", "words ")) for line in text.splitlines()) == 72


def test_few_pairs_are_listed_and_the_notes_say_what_is_odd(tmp_path: Path) -> None:
    rows = [
        {"id": str(i), "system": name, "response": said, "reference": "one two"}
        for name, said in (("a", "one two"), ("b", "no"))
        for i in range(4)
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = shown(score_files(path, ["unigram_f1"], n_replicates=50), terminal=True)
    assert ".125" in text
    assert "exact" in text
    assert "differences by unigram_f1: all replicates are equal" in text
