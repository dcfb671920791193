"""The site of the documentation builds without a warning, and says all that the code says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

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


LOOKED_AT = ["index", "tutorials/clean-user-ratings", "how-to/probe-an-encoder"]
LOOKED_AT += ["reference/study-file", "results/index"]


def test_pages_keep_nobody_out_and_fit(site: Path, browser: Any) -> None:
    """In a browser, from the disk: for people with a phone, with a screen reader, and with a printer."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in LOOKED_AT:
        page.emulate_media(media="screen", color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto((site / f"{name}.html").as_uri())
        violations = axe.run(page).response["violations"]
        assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == [], name
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390, name
        page.emulate_media(media="print", color_scheme="dark")
        page.set_viewport_size({"width": 680, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth") == 680, f"{name} is cut in print"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", name
    assert {url.partition(":")[0] for url in asked} == {"file"}
    page.close()


def test_search_finds_without_a_server(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("careless")
    page.locator(".md-search-result__item").first.wait_for()
    assert "Clean user ratings" in page.locator(".md-search-result").inner_text()
    page.close()
