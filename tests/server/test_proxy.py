"""A study behind a real nginx and a real Caddy: as they do it by default, and as our files in deploy/ say.

Skipped where they are not installed; with PALAVER_REQUIRE_PROXY=1 (CI) that is a failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.programs import NGINX_FRAME, needed

from palaver.schema import Study
from palaver.server.oversight import arm_token
from palaver.server.site import ENTRIES_PER_MINUTE
from palaver.studies.design import study_toml

DEPLOY = Path(__file__).parents[2] / "deploy"
SERVER = """server {{
    listen 127.0.0.1:{port};
    {rules}
  }}"""
ROOT = "location / {{ proxy_pass http://127.0.0.1:{backend}; }}"
STRIPS_THE_PATH = "location /s/ {{ proxy_pass http://127.0.0.1:{backend}/; }}"
KEEPS_THE_PATH = "location /s/ {{ proxy_pass http://127.0.0.1:{backend}; }}"
APPENDS = """location /s/ {{
  proxy_pass http://127.0.0.1:{backend};
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
}}"""
CADDY_FRAME = """
{{
  admin off
}}
http://localhost:{port} {{
  bind 127.0.0.1
  {rules}
}}
"""


def shipped(file: str, pattern: str) -> str:
    """The rules of a file of ours, with the test's path and port."""
    block = re.search(pattern, (DEPLOY / file).read_text(), re.DOTALL)
    assert block is not None
    rules = block[1].replace("/study-1", "/s").replace("{$PALAVER_APP:127.0.0.1:8000}", "127.0.0.1:8000")
    return rules.replace("{", "{{").replace("}", "}}").replace("127.0.0.1:8000", "127.0.0.1:{backend}")


NGINX = shipped("nginx.conf", r"(    location /study-1/ .*?\n    \})")
CADDY = shipped("Caddyfile", r"\{\n(\tredir .*\n\t\}\n)\}")
CONFIGURATIONS: dict[str, tuple[str, str, str]] = {
    "nginx, default": ("", "nginx", ROOT),
    "nginx, default, path taken off": ("/s", "nginx", STRIPS_THE_PATH),
    "nginx, default, path left on": ("/s", "nginx", KEEPS_THE_PATH),
    "nginx, ours": ("/s", "nginx", NGINX),
    "caddy, ours": ("/s", "caddy", CADDY),
}
Proxy = Callable[[str, str, int, int], None]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    """`proxy("nginx", rules, port, backend)` runs one until the test ends."""
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, rules: str, port: int, backend: int) -> None:
        program = needed(name)
        file = tmp_path / f"{name}.conf"
        frame = SERVER if name == "nginx" else CADDY_FRAME
        text = frame.format(port=port, rules=rules.format(backend=backend))
        file.write_text(NGINX_FRAME.format(folder=tmp_path, inside=text) if name == "nginx" else text)
        command = [program, "-p", str(tmp_path), "-c", str(file), "-e", "stderr"]
        if name == "caddy":
            command = [program, "run", "--config", str(file), "--adapter", "caddyfile"]
        environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        log = (tmp_path / f"{name}.log").open("wb")
        running.append(subprocess.Popen(command, stderr=log, env=environment))
        log.close()
        for _ in range(500):
            try:
                httpx.get(f"http://localhost:{port}/")
                return
            except httpx.TransportError:
                assert running[-1].poll() is None, (tmp_path / f"{name}.log").read_text()
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
def test_behind_a_proxy(
    name: str,
    proxy: Proxy,
    serve: Callable[..., Any],
    make_study: Callable[..., Study],
    unused_port: int,
) -> None:
    path, program, rules = CONFIGURATIONS[name]
    origin = f"http://localhost:{unused_port}"
    server = serve(study_toml(make_study(n_items=1)), public_url=f"{origin}{path}")
    proxy(program, rules, unused_port, server.port)
    head = {"origin": origin}

    with httpx.Client(base_url=origin, follow_redirects=True) as rater:
        assert rater.get(path).url.path == f"{path}/study", "without the slash at its end"
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
        page = admin.get(f"{path}/admin/login?token={arm_token(server.database)}")
        action, fields = form_of(page.text)
        page = admin.post(action, data=fields, headers=head)
        assert str(page.url) == f"{origin}{path}/admin"
        assert f'href="{origin}{path}/"' in page.text, "the link for raters is the public one"
        assert len(admin.get(f"{path}/admin/export/jsonl").text.splitlines()) == 2


@pytest.mark.parametrize(
    ("program", "rules", "is_counted_alone"),
    [
        ("nginx", NGINX, True),
        ("nginx", APPENDS, True),
        ("nginx", KEEPS_THE_PATH, False),
        ("caddy", CADDY, True),
    ],
    ids=["nginx", "nginx that appends", "nginx by default", "caddy"],
)
def test_limits_are_each_clients_own(
    program: str,
    rules: str,
    is_counted_alone: bool,
    proxy: Proxy,
    serve: Callable[..., Any],
    make_study: Callable[..., Study],
    unused_port: int,
) -> None:
    """A made-up header neither evades a limit nor uses up somebody else's."""
    origin = f"http://localhost:{unused_port}"
    server = serve(study_toml(make_study(n_items=1)), public_url=f"{origin}/s")
    proxy(program, rules, unused_port, server.port)

    def client(address: str) -> httpx.Client:
        return httpx.Client(base_url=origin, transport=httpx.HTTPTransport(local_address=address))

    with client("127.0.0.2") as flood, client("127.0.0.3") as honest:

        def enter(n: int, made_up: str) -> int:
            said = {"x-forwarded-for": made_up, "forwarded": f"for={made_up}", "x-real-ip": made_up}
            return flood.get("/s/", params={"PROLIFIC_PID": f"p{n}"}, headers=said).status_code

        made_up = [f"6.6.{n}.6" if is_counted_alone else "127.0.0.3" for n in range(ENTRIES_PER_MINUTE + 2)]
        codes = [enter(n, address) for n, address in enumerate(made_up)]
        assert codes[:ENTRIES_PER_MINUTE] == [303] * ENTRIES_PER_MINUTE
        assert set(codes[ENTRIES_PER_MINUTE:]) == {429 if is_counted_alone else 303}
        assert honest.get("/s/?PROLIFIC_PID=honest").status_code == 303


def test_two_studies_share_a_host(serve: Callable[..., Any], make_study: Callable[..., Study]) -> None:
    """Ports and paths do not keep cookies apart; their names do."""
    servers = [serve(study_toml(make_study(n_items=1)), name) for name in ("one", "two")]
    with httpx.Client(follow_redirects=True, cookies=CookieJar()) as browser:
        for server in servers:
            assert browser.get(f"{server.url}/").status_code == 200
        for server in servers:
            page = browser.get(f"{server.url}/admin/login?token={arm_token(server.database)}")
            action, fields = form_of(page.text)
            assert browser.post(f"{server.url}{action}", data=fields).status_code == 200
        for server in servers:
            assert browser.get(f"{server.url}/study").status_code == 200
            status = browser.get(f"{server.url}/admin/api/status")
            assert status.json()["status"]["raters"] == 1
