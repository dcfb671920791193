"""A study behind a real nginx: as Debian's package does it by default, and as our how-to says.

Skipped where nginx is not installed; with PALAVER_REQUIRE_PROXY=1 (CI) that is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import httpx
import pytest

from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.oversight import arm_token

HOW_TO = Path(__file__).parents[2] / "docs/how-to/put-a-study-online.md"
FRAME = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    {rules}
  }}
}}
"""
ROOT = "location / {{ proxy_pass http://127.0.0.1:{backend}; }}"
STRIPS_THE_PATH = "location /s/ {{ proxy_pass http://127.0.0.1:{backend}/; }}"
KEEPS_THE_PATH = "location /s/ {{ proxy_pass http://127.0.0.1:{backend}; }}"


def documented() -> str:
    """The rules of the how-to, with the test's ports."""
    block = re.search(r"```nginx\n.*?(location /study-1/.*?\n    \})", HOW_TO.read_text(), re.DOTALL)
    assert block is not None
    rules = block[1].replace("/study-1/", "/s/").replace("{", "{{").replace("}", "}}")
    return rules.replace("127.0.0.1:8000", "127.0.0.1:{backend}")


CONFIGURATIONS: dict[str, tuple[str, str | Callable[[], str]]] = {
    "default": ("", ROOT),
    "default, path taken off": ("/s", STRIPS_THE_PATH),
    "default, path left on": ("/s", KEEPS_THE_PATH),
    "documented": ("/s", documented),
}


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[[str, int, int], None]]:
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        reason = "nginx is not installed (Debian: apt-get install nginx-light)"
        if os.environ.get("PALAVER_REQUIRE_PROXY"):
            pytest.fail(reason)
        pytest.skip(reason)
    running: list[subprocess.Popen[bytes]] = []

    def start(rules: str, port: int, backend: int) -> None:
        file = tmp_path / "nginx.conf"
        text = FRAME.format(folder=tmp_path, port=port, rules=rules.format(backend=backend))
        file.write_text(text)
        command = [program, "-p", str(tmp_path), "-c", str(file), "-e", "stderr"]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE))
        for _ in range(200):
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                return
            except httpx.TransportError:
                assert running[-1].poll() is None, running[-1].communicate()[1]
                time.sleep(0.02)

    yield start
    for process in running:
        process.terminate()
        process.wait(10)


def form_of(page: str) -> tuple[str, dict[str, str]]:
    action = re.search(r'<form [^>]*action="([^"]+)"', page)
    assert action is not None, page
    return action[1], dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_behind_nginx(
    name: str,
    nginx: Callable[[str, int, int], None],
    served: Any,
    make_study: Callable[..., Study],
    tmp_path: Path,
    unused_port: int,
) -> None:
    path, rules = CONFIGURATIONS[name]
    origin = f"http://localhost:{unused_port}"
    database = Database(f"sqlite:///{tmp_path / 'study.db'}")
    site = served(make_study(n_items=1), database.url, public_url=f"{origin}{path}")
    nginx(rules() if callable(rules) else rules, unused_port, site.settings["port"])
    head = {"origin": origin}

    with httpx.Client(base_url=origin, follow_redirects=True) as rater:
        page = rater.get(f"{path}/?PROLIFIC_PID=p")
        assert str(page.url) == f"{origin}{path}/study"
        addresses = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
        assert addresses
        assert all(
            rater.head(address).status_code in (200, 405) for address in addresses if "static" in address
        )
        action, fields = form_of(page.text)
        page = rater.post(action, data=fields, headers=head)
        assert '<form id="rate"' in page.text
        action, fields = form_of(page.text)
        answers = {"answer:0:quality": "3", "answer:1:quality": "4"}
        assert (
            rater.post(action, data={**fields, **answers}, headers={"origin": "http://evil"}).status_code
            == 403
        )
        page = rater.post(action, data={**fields, **answers}, headers=head)
        assert "You are done" in page.text
        lost = rater.get(f"{path}/nothing")
        back = re.search(r'href="([^"]+)">Back to the study', lost.text)
        assert back is not None
        assert rater.get(back[1]).status_code == 200
    with httpx.Client(base_url=origin, follow_redirects=True) as admin:
        page = admin.get(f"{path}/admin/login?token={arm_token(database)}")
        action, fields = form_of(page.text)
        page = admin.post(action, data=fields, headers=head)
        assert str(page.url) == f"{origin}{path}/admin"
        assert f'href="{origin}{path}/"' in page.text, "the link for raters is the public one"
        assert len(admin.get(f"{path}/admin/export/jsonl").text.splitlines()) == 2
    database.close()


def test_two_studies_share_a_host(served: Any, make_study: Callable[..., Study], tmp_path: Path) -> None:
    """Ports and paths do not keep cookies apart; their names do."""
    sites = []
    for name in ("one", "two"):
        database = Database(f"sqlite:///{tmp_path / name}.db")
        sites.append((served(make_study(n_items=1), database.url), database))
    with httpx.Client(follow_redirects=True, cookies=CookieJar()) as browser:
        for site, _ in sites:
            assert browser.get(f"{site.url}/").status_code == 200
        for site, database in sites:
            page = browser.get(f"{site.url}/admin/login?token={arm_token(database)}")
            action, fields = form_of(page.text)
            assert browser.post(f"{site.url}{action}", data=fields).status_code == 200
        for site, database in sites:
            assert browser.get(f"{site.url}/study").status_code == 200
            status = browser.get(f"{site.url}/admin/api/status")
            assert status.json()["status"]["raters"] == 1
            database.close()
