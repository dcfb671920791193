"""The commands about served studies on PostgreSQL, by URL, with two worker processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from palaver.cli.main import run

SCRIPT = "from palaver.cli.main import run; run()"


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["palaver", "study", *map(str, words)])
    try:
        run()
    except SystemExit as stopped:
        assert not stopped.code


def test_a_study_on_postgresql(
    postgres: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    url = postgres.new()
    call(monkeypatch, "new", "--preset", "pairwise", "--out", "study.toml")
    options = ["--database", url, "--processes", "2", "--port", "0", "--no-qr"]
    server = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, "study", "serve", "study.toml", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
    )
    try:
        assert server.stdout is not None
        lines = [server.stdout.readline() for _ in range(5)]
        link = lines[1].split()[2]
        client = httpx.Client(base_url=link, transport=httpx.HTTPTransport(retries=10), timeout=20)
        for _ in range(500):
            try:
                if client.get("/health").status_code == 200:
                    break
            except httpx.TransportError:
                assert server.poll() is None
        token = lines[2].split()[2].partition("token=")[2]
        signed_in = client.post("/admin/login", data={"token": token}, follow_redirects=True)
        assert signed_in.status_code == 200
        for _ in range(3):
            httpx.get(link, follow_redirects=True, timeout=20)
        assert client.get("/admin/api/status").json()["status"]["raters"] == 3
        capsys.readouterr()
        call(monkeypatch, "status", url, "--json")
        assert json.loads(capsys.readouterr().out)["status"]["raters"] == 3
        call(monkeypatch, "backup", url, "--out", "b.gz")
        call(monkeypatch, "restore", "b.gz", "--database", postgres.new())
        assert "by 3 raters" in capsys.readouterr().out
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=20)
    assert server.returncode == 0
