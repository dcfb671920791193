"""docs/how-to/go-public.md in short: the files of deploy/ with a real nginx, a certificate of our own,
PostgreSQL and two processes; a rater in Chromium at https://lab.example.org while PostgreSQL is restarted.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.programs import NGINX_FRAME, needed
from visits import click_go, here, turned

from palaver.server.database import Database
from palaver.server.export import Selection, write_export

DEPLOY = Path(__file__).parents[2] / "deploy"
SCRIPT = "from palaver.cli.main import run; run()"


def free_ports(n: int) -> list[int]:
    probes = [socket.socket() for _ in range(n)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Machine:
    """The machine of the how-to: the service and nginx, on other ports and in another folder."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.folder, self.database_url = folder, database_url
        self.app_port, self.http_port, self.https_port = free_ports(3)
        self._service: subprocess.Popen[bytes] | None = None
        self._nginx: subprocess.Popen[bytes] | None = None
        self.log = folder / "journal"

    @property
    def names(self) -> str:
        """What a browser is told about the names."""
        ports = ((443, self.https_port), (80, self.http_port))
        return ",".join(f"MAP lab.example.org:{usual} 127.0.0.1:{ours}" for usual, ours in ports)

    def sign_certificate(self) -> None:
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30"
        words += " -subj /CN=lab.example.org -out fullchain.pem -keyout privkey.pem"
        command = [needed("openssl"), *words.split()]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def start_nginx(self) -> None:
        rules = (DEPLOY / "nginx.conf").read_text()
        rules = re.sub(r" *listen \[::\].*\n", "", rules).replace(
            "127.0.0.1:8000", f"127.0.0.1:{self.app_port}"
        )
        rules = rules.replace("listen 80;", f"listen 127.0.0.1:{self.http_port};")
        rules = rules.replace("listen 443 ", f"listen 127.0.0.1:{self.https_port} ")
        rules = rules.replace("/etc/letsencrypt/live/lab.example.org", str(self.folder))
        (self.folder / "study-1").write_text(rules)
        (self.folder / "nginx.conf").write_text(
            NGINX_FRAME.format(folder=self.folder, inside=f"include {self.folder}/study-1;")
        )
        command = [
            needed("nginx"),
            "-p",
            str(self.folder),
            "-c",
            str(self.folder / "nginx.conf"),
            "-e",
            "stderr",
        ]
        tested = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert tested.returncode == 0, tested.stderr
        assert "[warn]" not in tested.stderr
        self._nginx = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def start_service(self) -> None:
        unit = (DEPLOY / "study-1.service").read_text().replace("\\\n", " ")
        line = re.search(r"^ExecStart=\S+ (.*)$", unit, flags=re.M)
        assert line is not None
        words = shlex.split(line[1].replace("--port 8000", f"--port {self.app_port}"))
        words[words.index("--database") + 1] = self.database_url
        assert "--processes" in words
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with self.log.open("ab") as log:
            command = [sys.executable, "-c", SCRIPT, *words]
            self._service = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log
            )

    def stop_service(self) -> None:
        if self._service is not None:
            self._service.send_signal(signal.SIGTERM)
            assert self._service.wait(30) == 0, self.log.read_text()
            self._service = None

    def stop(self) -> None:
        self.stop_service()
        if self._nginx is not None:
            self._nginx.terminate()
            self._nginx.wait(10)

    def admin_link(self) -> str:
        return re.findall(r"https://\S+token=\S+", self.log.read_text())[-1]


@pytest.fixture
def machine(tmp_path: Path, postgres: Any, make_study: Any) -> Iterator[Machine]:
    from palaver.studies.design import study_toml

    made = Machine(tmp_path, postgres.new())
    (tmp_path / "study.toml").write_text(study_toml(make_study(n_items=3, raters_per_item=1)))
    try:
        made.sign_certificate()
        made.start_nginx()
        made.start_service()
        yield made
    finally:
        made.stop()


@pytest.fixture
def visitor(machine: Machine) -> Iterator[Browser]:
    """A Chromium that finds lab.example.org here, and trusts any certificate."""
    with sync_playwright() as started:
        options = ["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={machine.names}"]
        browser = started.chromium.launch(executable_path=needed("chromium"), args=options)
        yield browser
        browser.close()


PROCESSES = 2
"""Of the service, as deploy/study-1.service has it."""


def n_listening(port: int) -> int:
    """How many processes take connections at this port: each has a socket of its own."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def open_when_there(page: Page, address: str, port: int) -> None:
    """Open a page as soon as the whole service is there: failing pages keep a core busy.

    A process that cannot reach its database while it begins ends the service.
    """
    for _ in range(600):
        if n_listening(port) == PROCESSES:
            break
        time.sleep(0.05)
    for _ in range(600):
        reply = page.goto(address)
        if reply is not None and reply.status == 200:
            return
        time.sleep(0.05)
    raise AssertionError(f"{address} did not come up")


def answer_screen(page: Page) -> None:
    for question in page.locator("#rate .question").all():
        question.locator(".choice").last.click()
    page.locator("#go").click()


def test_from_nothing_to_https(machine: Machine, visitor: Browser, postgres: Any) -> None:
    page = visitor.new_context(ignore_https_errors=True, viewport={"width": 390, "height": 800}).new_page()
    page.set_default_timeout(30_000)
    open_when_there(page, "https://lab.example.org/study-1/health", machine.app_port)
    page.goto("http://lab.example.org/study-1/?PROLIFIC_PID=p1")
    assert page.url == "https://lab.example.org/study-1/study"
    click_go(page)
    before = here(page)
    postgres.restart()
    answer_screen(page)
    turned(page, before)
    while page.locator("#rate").count():
        before = here(page)
        answer_screen(page)
        turned(page, before)
    expect(page.locator("h1")).to_have_text("Thank you!")
    cookies = page.context.cookies()
    assert cookies
    assert all(cookie["secure"] and cookie["path"] == "/study-1" for cookie in cookies)

    admin = visitor.new_context(ignore_https_errors=True).new_page()
    admin.goto(machine.admin_link())
    admin.locator("button").first.click()
    expect(admin.locator("main")).to_contain_text("https://lab.example.org/study-1/")
    database = Database(machine.database_url)
    try:
        assert write_export(database, machine.folder / "ratings.csv", Selection()) == 6
    finally:
        database.close()
