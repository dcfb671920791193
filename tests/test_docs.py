"""The documentation's commands run: each `palaver` line in a `sh` block, page by page, in an empty folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("palaver ")]


def with_commands() -> list[Path]:
    return [page for page in PAGES if commands(page)]


@pytest.mark.parametrize("document", with_commands(), ids=lambda p: p.name)
def test_commands_run(document: Path, tmp_path: Path) -> None:
    for line in commands(document):
        words = shlex.split(line, comments=True)
        script = "from palaver.cli.main import run; run()"
        ran = subprocess.run(
            [sys.executable, "-c", script, *words[1:]], cwd=tmp_path, capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"


def test_there_are_commands_to_run() -> None:
    assert len(with_commands()) >= 2


@pytest.mark.parametrize("document", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text(encoding="utf-8"))
    local = [t for t in targets if not t.startswith(("http:", "https:"))]
    missing = [t for t in local if not (document.parent / t).exists()]
    assert not missing


def test_readme_table_names_real_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| `palaver ([a-z]+) ([a-z]+)", readme, flags=re.M)
    assert len(rows) >= 6
    for noun, verb in rows:
        ran = subprocess.run(
            [sys.executable, "-c", "from palaver.cli.main import run; run()", noun, verb, "--help"],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, f"{noun} {verb}: {ran.stderr}"
