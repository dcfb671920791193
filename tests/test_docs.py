"""The documentation's commands run: each `palaver` line in a `sh` block, page by page, in an empty folder.

A block with a file's name behind its language is that file. A model's address on a page is that of `Model`.
"""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [line for block in blocks for line in block.splitlines() if line.startswith("palaver ")]


def with_commands() -> list[Path]:
    return [page for page in PAGES if commands(page)]


def files(page: Path) -> dict[str, str]:
    blocks = re.findall(r"^```\w+ (\S+)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return dict(blocks)


class Model(BaseHTTPRequestHandler):
    """A chat model behind an OpenAI-compatible address, which repeats what it hears."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = f"You say: {asked['messages'][-1]['content']}"
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def model_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.mark.parametrize("document", with_commands(), ids=lambda p: p.name)
def test_commands_run(
    document: Path, tmp_path: Path, palaver: Callable[..., Any], model_address: str
) -> None:
    for name, text in files(document).items():
        (tmp_path / name).write_text(
            text.replace("http://localhost:8080/v1", model_address), encoding="utf-8"
        )
    for line in commands(document):
        ran = palaver(*shlex.split(line, comments=True)[1:])
        assert ran.code == 0, f"{line}\n{ran.out}\n{ran.err}"


def test_there_are_commands_to_run() -> None:
    assert len(with_commands()) >= 2


@pytest.mark.parametrize("document", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(document: Path) -> None:
    code = r"^```.*?^```|``.*?``|`[^`\n]*`"  # Markdown that is shown is no link
    text = re.sub(code, "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    local = [t for t in targets if not t.startswith(("http:", "https:"))]
    missing = [t for t in local if not (document.parent / t).exists()]
    assert not missing


def test_readme_table_names_real_commands(palaver: Callable[..., Any]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| `palaver ([a-z]+) ([a-z]+)", readme, flags=re.M)
    assert len(rows) >= 6
    for noun, verb in rows:
        ran = palaver(noun, verb, "--help")
        assert ran.code == 0, f"{noun} {verb}: {ran.err}"
