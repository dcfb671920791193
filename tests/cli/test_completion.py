"""What the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.cli import completion
from palaver.corpora.catalogue import CORPORA
from palaver.models.packages import PACKAGES


def complete(line: str, folder: Path) -> list[str]:
    """What bash is told when the tabulator is pressed at the end of `line`."""
    words = line.split(" ")
    environment = {**os.environ, "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "from palaver.cli.main import run; run()"]
    ran = subprocess.run(
        command,
        env={**environment, "_PALAVER_COMPLETE": "complete_bash"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.split()


def test_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "systems.toml").write_text('[systems.mine]\nkind = "python"\nfunction = "a:b"\n')
    assert complete("python chat mi", tmp_path) == ["mine"]
    assert complete("python corpus show topical", tmp_path) == ["topical-chat"]


@pytest.mark.parametrize(
    ("names", "some"),
    [
        (completion.systems, {"default", "default-chat", "everyday", "smollm2"}),
        (completion.judges, {"comparator", "response", "bleu"}),
        (completion.metrics, {"bleu", "unigram_f1"}),
        (completion.encoders, {"minilm", "glove"}),
        (completion.corpora, set(CORPORA)),
        (completion.recognisers, {"default", "self-report"}),
        (completion.selectors, {"oracle", "tfidf", "trained"}),
        (completion.packages, set(PACKAGES)),
        (completion.recipes, {"smollm-tf", "xing2018-speaker"}),
        (completion.comparator_recipes, {"cmade"}),
    ],
)
def test_names(names: completion.Complete, some: set[str]) -> None:
    assert some <= set(names(""))
    first = sorted(some)[0]
    assert first in names(first[:2])
    assert all(name.startswith(first[:2]) for name in names(first[:2]))


def test_a_model_that_is_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.models.catalogue.models_on", lambda shelf: {})
    ((name, word),) = completion.systems("default-pers")
    assert name == "default-personality"
    assert word.startswith("not installed")
    assert ("infersent", word) in completion.encoders("")
    assert "minilm" in completion.encoders("")


def test_a_broken_file_completes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("systems.toml").write_text("[systems")
    assert completion.systems("") == []
