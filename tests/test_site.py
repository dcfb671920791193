"""The site of the documentation builds without a warning, and says all that the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import palaver

pytest.importorskip("mkdocs")
pytest.importorskip("torch")  # public names of models are loaded

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_every_verb_and_option_is_there(site: Path) -> None:
    from tests.cli.test_main import commands

    page = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for words, command in commands():
        assert f"palaver {' '.join(words)}" in page
        for param in command.params:
            if param.param_type_name == "option" and not param.hidden:
                assert max(param.opts, key=len) in page, (words, param.opts)


def test_every_public_name_is_there(site: Path) -> None:
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    names = set(palaver.__all__) - {"__version__"}
    assert {name for name in names if not re.search(rf'id="palaver\.[\w.]*\.{name}"', page)} == set()


def test_the_site_asks_nobody_else_for_anything(site: Path) -> None:
    """Pages may link elsewhere; they load nothing from there."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r'<(?:script|img|iframe|link rel="(?:stylesheet|icon|preload)")[^>]*>', text)
        loaded = [tag for tag in tags if re.search(r'(?:src|href)="https?:', tag)]
        assert loaded == [], page


def test_every_block_of_code_is_one(site: Path) -> None:
    shown = [page for page in site.rglob("*.html") if "```" in page.read_text(encoding="utf-8")]
    assert shown == []
    front = (site / "index.html").read_text(encoding="utf-8")
    assert '<span class="filename">chats.jsonl</span>' in front


def test_links_into_the_repository_have_their_files(site: Path) -> None:
    page = (site / "how-to" / "evaluate.html").read_text(encoding="utf-8")
    assert '../files/examples/evaluate-logs/experiment.toml"' in page
    copy = site / "files" / "examples" / "evaluate-logs" / "experiment.toml"
    assert copy.read_bytes() == (ROOT / "examples" / "evaluate-logs" / "experiment.toml").read_bytes()
