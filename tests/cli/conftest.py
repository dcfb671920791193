"""The command line in this process: fast, and with what it wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from palaver.cli.main import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Palaver = Callable[..., Ran]


@pytest.fixture
def palaver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Palaver:
    """`palaver("study", "check", file)` as the console script runs it, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["palaver", *map(str, words)])
        code = 0
        try:
            run()
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        return Ran(code, written.out, written.err)

    return call


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """A small file in the long format: three systems, two raters."""
    lines = ["item,system,rater,criterion,value,seconds"]
    for i in range(8):
        for s, system in enumerate(("alpha", "beta", "gamma")):
            for r in range(3):
                value = 1 + (i * 5 + s * 2 + r * (i % 3)) % 6
                lines.append(f"item {i},{system},rater {r},quality,{value},{4 + (i + r) % 5}")
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
