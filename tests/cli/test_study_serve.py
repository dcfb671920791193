"""`palaver study serve` and what goes with it, on a real server in a process of its own."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl
import pytest

from palaver.server import migrations

Palaver = Callable[..., Any]
SCRIPT = "from palaver.cli.main import run; run()"


@dataclass
class Server:
    """A server that was started with the command line, and what it printed."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def read_on(self) -> None:
        """Up to the last line before it serves, then until it answers."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("Ctrl+C"):
                break
        else:
            assert self.process.stderr is not None
            raise RuntimeError(self.process.stderr.read())
        for _ in range(1000):
            try:
                urllib.request.urlopen(f"{self.link}health", timeout=5).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise
                import time

                time.sleep(0.02)

    def named(self, what: str) -> str:
        return next(line for line in self.lines if line.strip().startswith(what)).split()[2]

    @property
    def link(self) -> str:
        return self.named("for raters")

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        return self.process.returncode


class Browser:
    """Keeps cookies."""

    def __init__(self) -> None:
        self._open = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar())).open

    def get(self, url: str) -> str:
        with self._open(url, timeout=20) as reply:
            return str(reply.read().decode())

    def post(self, url: str, data: bytes, **headers: str) -> str:
        request = urllib.request.Request(url, data, {k.replace("_", "-"): v for k, v in headers.items()})
        with self._open(request, timeout=20) as reply:
            return str(reply.read().decode())


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(*words: object, **environment: str) -> Server:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, "study", "serve", *map(str, words), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, **paths, **environment},
        )
        running.append(Server(process))
        running[-1].read_on()
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def study(palaver: Palaver, tmp_path: Path) -> Path:
    assert palaver("study", "new", "--preset", "likert", "--layout", "joint", "--out", "study.toml").code == 0
    return tmp_path / "study.toml"


def begin(browser: Browser, link: str) -> str:
    """Come in and read the instructions; the page after that."""
    page = browser.get(link)
    token = re.search(r'name="csrf"[^>]*value="([^"]+)"', page)
    assert token is not None
    origin = "/".join(link.split("/")[:3])
    return browser.post(f"{link}study/begin", f"csrf={token[1]}".encode(), Origin=origin)


def sign_in(browser: Browser, server: Server) -> str:
    """Follow the admin's link and press the button."""
    page = browser.get(server.named("for you"))
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token is not None
    data = urlencode({"token": unescape(token[1])}).encode()
    return browser.post(f"{server.link}admin/login", data, Origin=server.link.rstrip("/"))


def test_serve_stop_and_serve_again(serve: Callable[..., Server], study: Path, palaver: Palaver) -> None:
    first = serve(study)
    assert first.link.startswith("http://127.0.0.1:")
    assert any("▀" in line or "█" in line for line in first.lines)
    assert study.with_suffix(".db").exists()
    rater, admin = Browser(), Browser()
    assert "csrf" in begin(rater, first.link)
    assert "Progress" in sign_in(admin, first)
    assert json.loads(admin.get(f"{first.link}admin/api/status"))["status"]["raters"] == 1
    # Other commands work on the same database meanwhile.
    assert "by 1 rater, 1 at work" in palaver("study", "status", study).out
    assert palaver("study", "backup", study, "--out", "b.gz").code == 0
    assert first.stop() == 0
    again = serve(study)
    assert again.named("for you").partition("token=")[2] != first.named("for you").partition("token=")[2]
    status = json.loads(palaver("study", "status", study, "--json").out)
    assert (status["status"]["raters"], status["raters"][0]["state"]) == (1, "working")


def test_several_workers_and_a_path(serve: Callable[..., Server], study: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    server = serve(
        study, "--processes", 2, "--database", url, "--no-qr", "--admin-token", "a token of my own"
    )
    assert len(server.lines) == 5
    assert server.named("for you").endswith("token=a%20token%20of%20my%20own")
    for _ in range(4):
        assert 'name="csrf"' in begin(Browser(), server.link)
    assert (tmp_path / "other.db").exists()
    assert not study.with_suffix(".db").exists()
    assert server.stop() == 0


def test_a_token_from_the_environment(serve: Callable[..., Server], study: Path) -> None:
    server = serve(study, PALAVER_ADMIN_TOKEN="from outside & in")
    assert server.named("for you").endswith("/admin/login?token=from%20outside%20%26%20in")
    assert "Progress" in sign_in(Browser(), server)


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"port": 80}, "http://127.0.0.1"),
        ({"host": "::1"}, "http://[::1]:8000"),
        ({"public_url": "https://lab.example.org/s/"}, "https://lab.example.org/s"),
    ],
)
def test_links(settings: dict[str, Any], address: str) -> None:
    from palaver.cli.serving import address_of
    from palaver.server.settings import Settings

    assert address_of(Settings(database="sqlite:///x.db", **settings)) == address


def test_the_link_of_a_server_on_all_networks_names_one_address() -> None:
    from palaver.cli.serving import address_of
    from palaver.server.settings import Settings

    assert "0.0.0.0" not in address_of(Settings(database="sqlite:///x.db", host="0.0.0.0"))


def test_a_public_address_is_printed_as_it_is(
    palaver: Palaver, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    ran = palaver("study", "serve", study, "--public-url", "https://example.org/s", "--port", "0")
    assert "  for raters  https://example.org/s/\n" in ran.out
    assert "https://example.org/s/admin/login?token=" in ran.out


@pytest.fixture
def served(palaver: Palaver, study: Path, tmp_path: Path) -> Path:
    """A study's database with answers in it, without a server."""
    from palaver.cli.study_serve import _prepare
    from palaver.server.answers import RawAnswer
    from palaver.server.database import Database, sqlite_url
    from palaver.server.settings import Settings
    from palaver.server.study_state import StudyState

    path = study.with_suffix(".db")
    _prepare(Settings(study_file=study, database=sqlite_url(path)))
    database = Database(sqlite_url(path))
    service = StudyState(database)
    for r in range(3):
        me = service.enter("prolific", f"person {r}")
        service.begin(me)
        for s in range(3):
            task = service.visit(me).task
            assert task is not None
            given = [
                RawAnswer(
                    f"{r}-{s}-{q.criterion}-{p}",
                    q.criterion,
                    p,
                    ["ok"] if q.criterion == "content" else 1 + (p + r + s) % 6,
                )
                for q in task.questions
                for p in range(3)
            ]
            service.submit(me, task.assignment, given)
    database.close()
    return path


def test_status(palaver: Palaver, served: Path) -> None:
    ran = palaver("study", "status", served)
    assert ran.code == 0
    assert "9 of 9 screens done" in ran.out
    assert "3 of 3 items complete" in ran.out
    assert "naturalness" in ran.out
    data = json.loads(palaver("study", "status", f"sqlite:///{served}", "--json").out)
    assert data["status"]["answers"] == 108


def test_a_new_admin_link(palaver: Palaver, served: Path) -> None:
    from palaver.server.database import Database, sqlite_url
    from palaver.server.oversight import redeem_token

    ran = palaver("study", "status", served, "--new-admin-link", "--public-url", "https://example.org/s")
    address, token = ran.out.strip().split("?token=")
    assert address == "https://example.org/s/admin/login"
    database = Database(sqlite_url(served))
    assert redeem_token(database, token)
    database.close()


def test_a_new_admin_link_has_the_address_that_is_served(
    palaver: Palaver, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    link = palaver("study", "serve", study, "--port", "0", "--no-qr").out.splitlines()[1].split()[2]
    assert palaver("study", "status", study, "--new-admin-link").out.startswith(f"{link}admin/login?token=")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights, which no permissions hold back."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_copy(palaver: Palaver, served: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="palaver-read-only-"))  # pytest's folders are root's alone
    try:
        copy, (out, results) = folder / "study.db", (folder / "out", folder / "results")
        shutil.copy(served, copy)
        for path, mode in ((copy, 0o444), (out, 0o777), (results, 0o777)):
            if path is not copy:
                path.mkdir()
            path.chmod(mode)
        commands = (
            ("status", copy),
            ("export", copy, "--out", out / "r.csv", "--force"),
            ("analyse", copy, "--out", results / "r", "--force", "--replicates", 5, "-q"),
        )
        for words in commands:  # what is imported late comes from folders that are root's, too
            assert palaver("study", *words).code == 0
        shutil.rmtree(results / "r")
        (out / "r.csv").unlink()
        folder.chmod(0o555)
        with as_nobody():
            if not os.access(migrations.__file__, os.R_OK, effective_ids=True):
                pytest.skip("this code lies in a folder that nobody but root may read")
            for words in commands:
                ran = palaver("study", *words)
                assert ran.code == 0, ran.err
            ran = palaver("study", "status", copy, "--new-admin-link", "--public-url", "http://h")
            assert ran.code == 1
            assert "cannot be used: attempt to write a readonly database" in ran.err
        assert len((out / "r.csv").read_text().splitlines()) == 109
        assert sorted(p.name for p in folder.iterdir()) == ["out", "results", "study.db"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_answers_still_in_the_log_are_read_or_missed_aloud(palaver: Palaver, served: Path) -> None:
    """A copy taken while the study ran: the latest answers stand in study.db-wal."""
    from palaver.server.database import Database, sqlite_url

    running = sqlite3.connect(served)
    running.execute("UPDATE study SET name = 'changed'")
    running.commit()
    copy = served.with_name("copy.db")
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{served}{ending}", f"{copy}{ending}")
    running.close()
    database = Database(sqlite_url(copy), read_only=True)
    with database.reading() as connection:
        assert connection.exec_driver_sql("SELECT name FROM study").scalar() == "changed"
    database.close()


def test_an_old_schema_that_cannot_be_changed(
    palaver: Palaver, served: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.database.can_be_written", lambda path: False)
    assert palaver("study", "status", served).code == 0
    with sqlite3.connect(served) as connection:
        connection.execute("UPDATE palaver_version SET version_num = '0001'")
    connection.close()
    ran = palaver("study", "status", served)
    assert ran.code == 1
    assert "copy it into a folder that can be written" in ran.err


def test_only_the_owner_can_read_the_database(
    palaver: Palaver, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from palaver.server.database import Database, sqlite_url

    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    umask = os.umask(0o022)
    try:
        assert palaver("study", "serve", study, "--port", "0").code == 0
        assert palaver("study", "backup", study, "--out", "b.gz").code == 0
        assert palaver("study", "restore", "b.gz", "--database", "new.db").code == 0
        for name in ("study.db", "new.db"):
            path = study.with_name(name)
            database = Database(sqlite_url(path))
            database.check_writing()
            kept = sorted(study.parent.glob(f"{name}*"))
            assert [p.name for p in kept] == [name, f"{name}-shm", f"{name}-wal"]
            assert {p.stat().st_mode & 0o777 for p in kept} == {0o600}
            database.close()
    finally:
        os.umask(umask)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_export(palaver: Palaver, served: Path, kind: str) -> None:
    ran = palaver("study", "export", served, "--out", f"r.{kind}")
    assert ran.out == f"wrote 108 ratings to r.{kind}\nnext: palaver study analyse r.{kind}\n"
    assert palaver("study", "export", served, "--out", f"r.{kind}").code == 1
    assert palaver("study", "export", served, "--out", f"r.{kind}", "--force").code == 0


def test_export_of_raters(palaver: Palaver, served: Path, tmp_path: Path) -> None:
    assert (
        palaver("study", "export", served, "--raters", "--out", "r.jsonl").out
        == "wrote 3 raters to r.jsonl\n"
    )
    people = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {p["external"] for p in people} == {"person 0", "person 1", "person 2"}
    assert "JSON lines" in palaver("study", "export", served, "--raters", "--out", "r.csv").err


def test_what_may_be_published(palaver: Palaver, served: Path, tmp_path: Path) -> None:
    from palaver.server.database import Database, sqlite_url
    from palaver.server.oversight import renew_keys
    from palaver.server.tables import rater

    database = Database(sqlite_url(served))
    with database.writing() as connection:
        connection.execute(rater.update().values(survey='{"name": "I am person 1"}'))
        people = connection.execute(rater.select()).all()
    secrets = {text for p in people for text in (p.id, p.external, p.code)}
    for words in (("--out", "s.csv"), ("--raters", "--out", "s.jsonl")):
        assert palaver("study", "export", served, "--share", *words).code == 0
        shared = (tmp_path / words[-1]).read_text()
        assert not [secret for secret in secrets if secret in shared]
        assert "I am person" not in shared
    first = (tmp_path / "s.csv").read_text()
    names = set(re.findall(r"rater-[0-9a-f]{12}", first))
    assert len(names) == 3
    assert names == set(re.findall(r"rater-[0-9a-f]{12}", (tmp_path / "s.jsonl").read_text()))
    renew_keys(database)
    database.close()
    assert palaver("study", "export", served, "--share", "--out", "s.csv", "--force").code == 0
    assert (tmp_path / "s.csv").read_text() == first, "new keys are not new names"
    words = ("--share", "--raters", "--comments", "--out", "t.jsonl")
    assert palaver("study", "export", served, *words).code == 0
    assert "I am person 1" in (tmp_path / "t.jsonl").read_text()
    assert palaver("study", "export", served, "--comments", "--out", "t.csv").code == 2


def test_spreadsheets_run_nothing(palaver: Palaver, served: Path, tmp_path: Path) -> None:
    from palaver.readers.rating_files import iter_ratings
    from palaver.server.database import Database, sqlite_url
    from palaver.server.tables import answer

    database = Database(sqlite_url(served))
    texts = ["=cmd|' /C calc'!A0", "+1+1", "-2", "@SUM(1)", "\tx", "plain", "-1.5e3", "-a"]
    with database.writing() as connection:
        ids = connection.execute(answer.select().order_by(answer.c.number)).scalars().all()
        for name, text in zip(ids, texts, strict=False):
            connection.execute(answer.update().where(answer.c.id == name).values(system=text))
    database.close()
    assert palaver("study", "export", served, "--excel", "--out", "e.csv").code == 0
    assert palaver("study", "export", served, "--out", "p.csv").code == 0
    read = {
        n: pl.read_csv(tmp_path / f"{n}.csv", infer_schema=False)["system"][: len(texts)].to_list()
        for n in "ep"
    }
    assert read["p"] == texts
    assert read["e"] == [
        "'=cmd|' /C calc'!A0", "'+1+1", "-2", "'@SUM(1)", "'\tx", "plain", "-1.5e3", "'-a"
    ]  # fmt: skip
    assert palaver("study", "export", served, "--excel", "--out", "e.jsonl").code == 2
    ran = palaver("study", "export", served, "--out", "e.xlsx")
    assert ran.code == 0, ran.err
    assert "next: palaver study analyse e.xlsx" in ran.out
    assert [r.system for r in iter_ratings(tmp_path / "e.xlsx")][: len(texts)] == [t.strip() for t in texts]
    refused = palaver("study", "export", served, "--excel", "--out", "f.xlsx")
    assert (refused.code, "without --excel" in refused.err) == (2, True)


def test_new_keys_end_every_session(serve: Callable[..., Server], study: Path) -> None:
    first = serve(study, "--no-qr")
    rater = Browser()
    begin(rater, first.link)
    assert "Item 1" in rater.get(f"{first.link}study")
    first.stop()
    again = serve(study, "--no-qr", "--new-keys")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        rater.get(f"{again.link}study")


@pytest.mark.parametrize(
    ("words", "is_warned"),
    [
        ((), False),
        (("--host", "0.0.0.0"), True),
        (("--public-url", "http://lab.example.org"), True),
        (("--public-url", "https://lab.example.org"), False),
    ],
)
def test_plain_http_on_a_network_is_warned_of(
    palaver: Palaver, study: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], is_warned: bool
) -> None:
    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    ran = palaver("study", "serve", study, "--port", "0", "--no-qr", *words)
    assert ran.code == 0, ran.err
    assert ("over plain http" in ran.err) is is_warned
    assert "other users" not in ran.err


def test_a_database_that_others_can_read_is_warned_of(
    palaver: Palaver, served: Path, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    served.chmod(0o644)
    assert "other users of this machine can read" in palaver("study", "serve", study, "--port", "0").err


@pytest.mark.parametrize("token", ["short", ""])
def test_short_tokens_are_refused(palaver: Palaver, study: Path, token: str) -> None:
    ran = palaver("study", "serve", study, "--port", "0", "--admin-token", token)
    assert ran.code == 1
    assert "at least 16" in ran.err


@pytest.mark.parametrize("url", ["lab.example.org", "https://u@h", "https://h/?x"])
def test_a_public_address_has_to_be_one(palaver: Palaver, study: Path, url: str) -> None:
    ran = palaver("study", "serve", study, "--public-url", url)
    assert ran.code == 2
    assert "--public-url: expected an address" in ran.err


def test_keys_have_to_be_keys(palaver: Palaver, study: Path) -> None:
    ran = palaver("study", "serve", study, "--prolific-keys", study)
    assert ran.code == 1
    assert "holds no keys of Prolific's" in ran.err
    assert not study.with_suffix(".db").exists()


def test_an_empty_export_is_an_error(palaver: Palaver, study: Path, tmp_path: Path) -> None:
    from palaver.cli.study_serve import _prepare
    from palaver.server.database import sqlite_url
    from palaver.server.settings import Settings

    _prepare(Settings(study_file=study, database=sqlite_url(tmp_path / "study.db")))
    for words in (("export", "study.db", "--out", "r.csv"), ("analyse", "study.db")):
        ran = palaver("study", *words)
        assert ran.code == 1
        assert "nobody has answered yet" in ran.err
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("study.")) == []


def test_backup_and_restore(palaver: Palaver, served: Path, tmp_path: Path) -> None:
    ran = palaver("study", "backup", served, "--out", "b.gz")
    assert "108 answers by 3 raters" in ran.out
    assert palaver("study", "backup", served, "--out", "b.gz").code == 1
    assert "108 answers by 3 raters" in palaver("study", "restore", "b.gz", "--database", "new.db").out
    for name in ("study", "new"):
        assert palaver("study", "export", f"{name}.db", "--out", f"{name}.csv").code == 0
    assert (tmp_path / "study.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
    again = palaver("study", "restore", "b.gz", "--database", "new.db")
    assert again.code == 1
    assert "nothing is overwritten" in again.err
    assert "expected study.db or a database URL" in palaver("study", "restore", "b.gz", "--database", "x").err


def test_analyse_takes_a_database(palaver: Palaver, served: Path, tmp_path: Path) -> None:
    from palaver.server.database import Database, sqlite_url
    from palaver.server.oversight import decide, rater_table

    def analysed(*words: object) -> Any:
        ran = palaver("study", "analyse", *words, "--out", "found", "--force", "--replicates", 20, "-q")
        assert ran.code == 0, ran.err
        return json.loads((tmp_path / "found" / "results.json").read_text())

    before = analysed(served)
    assert before["title"] == "How good are these restaurant descriptions?"
    assert before["reading"]["n_ratings"] == 108
    database = Database(sqlite_url(served))
    decide(database, rater_table(database)[0].id, "exclude")
    database.close()
    assert analysed("study.db")["reading"]["n_ratings"] == 72
    assert analysed("study.toml")["reading"]["n_ratings"] == 72
    assert analysed(f"sqlite:///{served}", "--include-excluded")["reading"]["n_ratings"] == 108


# --- mistakes -----------------------------------------------------------------------------------------------


def test_a_port_in_use(palaver: Palaver, study: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = palaver("study", "serve", study, "--port", port)
    assert ran.code == 1
    assert f"cannot listen on 127.0.0.1, port {port}: address already in use" in ran.err
    assert "--port" in ran.err


def test_an_address_that_is_not_ours(palaver: Palaver, study: Path) -> None:
    ran = palaver("study", "serve", study, "--host", "192.0.2.1")
    assert ran.code == 1
    assert "cannot listen on 192.0.2.1" in ran.err


def test_a_changed_study_file(palaver: Palaver, served: Path, study: Path) -> None:
    study.write_text(study.read_text().replace("raters_per_item = 3", "raters_per_item = 4"))
    ran = palaver("study", "serve", study)
    assert ran.code == 1
    assert "the file has changed" in ran.err
    assert "--database" in ran.err


def test_an_earlier_version_of_the_file_serves_the_newest(
    palaver: Palaver, served: Path, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The admin's page amends what is served, not the file."""
    monkeypatch.setattr("palaver.server.processes.serve", lambda settings: None)
    before = study.read_text()
    study.write_text(before.replace("raters_per_item = 3", "raters_per_item = 4"))
    assert "is now version 2" in palaver("study", "amend", study).out
    assert "earlier version" not in palaver("study", "serve", study, "--port", "0").err
    study.write_text(before)
    ran = palaver("study", "serve", study, "--port", "0")
    assert ran.code == 0, ran.err
    assert "study.toml is an earlier version: version 2 is served" in ran.err
    assert "9 of 12 screens done" in ran.out


def test_a_folder_that_cannot_be_written(palaver: Palaver, study: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    ran = palaver("study", "serve", study, "--database", f"sqlite:///{tmp_path}/file/study.db")
    assert ran.code == 1
    assert "is a file, not a folder" in ran.err
    assert "--database" in ran.err


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("none.db", "there is no database"),
        ("none.toml", "there is no database"),
        ("ratings.csv", "neither a study file nor a database"),
        ("fake.db", "is not a study's database"),
        ("mysql://x/y", "mysql is not supported"),
        ("://", "not a database URL"),
        ("sqlite://", "kept in memory"),
        ("sqlite:///:memory:", "kept in memory"),
    ],
)
def test_what_is_no_database(palaver: Palaver, tmp_path: Path, named: str, said: str) -> None:
    (tmp_path / "fake.db").write_text(
        "this is not a database, but it is long enough to be read as one\n" * 20
    )
    ran = palaver("study", "status", named)
    assert ran.code == 1
    assert said in ran.err


def test_a_database_without_a_study(palaver: Palaver, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE other (x)").connection.close()
    ran = palaver("study", "status", "empty.db")
    assert ran.code == 1
    assert "holds no study yet" in ran.err


def test_a_broken_study_file_makes_no_database(palaver: Palaver, study: Path) -> None:
    study.write_text("name = 3\n")
    ran = palaver("study", "serve", study)
    assert ran.code == 1
    assert not study.with_suffix(".db").exists()


# --- several studies ----------------------------------------------------------------------------------------


def renamed(palaver: Palaver, folder: Path, preset: str, name: str) -> Path:
    """A study file of this preset and name."""
    file = folder / f"{name}.toml"
    assert palaver("study", "new", "--preset", preset, "--out", str(file)).code == 0
    text = re.sub(r"^name = .*$", f'name = "{name}"', file.read_text(), count=1, flags=re.MULTILINE)
    file.write_text(text)
    return file


def test_serve_a_folder(serve: Callable[..., Server], palaver: Palaver, tmp_path: Path) -> None:
    folder = tmp_path / "studies"
    folder.mkdir()
    for preset, name in (("likert", "one"), ("pairwise", "two")):
        renamed(palaver, folder, preset, name)
    server = serve(folder, "--processes", 2)
    assert [line.split()[-1] for line in server.lines if "for raters" in line] == [
        server.link,
        server.link.replace("/one/", "/two/"),
    ]
    base = server.link.removesuffix("one/")
    browser = Browser()
    assert "csrf" in begin(browser, f"{base}two/")
    token = server.named("for you").partition("token=")[2]
    page = browser.post(f"{base}admin/login", f"token={token}".encode(), Origin=base.rstrip("/"))
    assert "Your studies" in page
    assert "1 rater, 1 at work" in browser.get(f"{base}admin").partition("Which conversation")[2]
    assert (folder / "one.db").exists()
    status = palaver("study", "status", str(folder / "two.toml"), "--new-admin-link")
    assert status.out.startswith(f"{base}two/admin/login?token=")
    assert server.stop() == 0


def test_one_wrong_study_and_none_is_served(palaver: Palaver, tmp_path: Path) -> None:
    good = renamed(palaver, tmp_path, "likert", "good")
    bad = renamed(palaver, tmp_path, "likert", "bad")
    bad.write_text(bad.read_text().replace("raters_per_item = 3", 'raters_per_item = "x"'))
    refused = palaver("study", "serve", str(good), str(bad))
    assert refused.code == 1
    assert "1 of 2 studies cannot be served, so none is" in refused.err
    assert re.search(r"bad\.toml.*\n.*line \d+: raters_per_item", refused.err)
    assert not good.with_suffix(".db").exists()
    twin = tmp_path / "twin.toml"
    twin.write_text(good.read_text())
    refused = palaver("study", "serve", str(good), str(twin))
    assert (refused.code, "good.toml and" in refused.err, "twin.toml" in refused.err) == (1, True, True)
    assert not good.with_suffix(".db").exists()
    (tmp_path / "empty").mkdir()
    assert "no study file" in palaver("study", "serve", str(tmp_path / "empty")).err
    one = palaver("study", "serve", str(good), str(bad), "--database", "all.db")
    assert (one.code, "{name}" in one.err) == (2, True)


def test_reset(
    serve: Callable[..., Server],
    palaver: Palaver,
    study: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = serve(study)
    begin(Browser(), server.link)
    running = palaver("study", "reset", str(study), "--yes")
    assert (running.code, "is being served" in running.err) == (1, True)
    server.stop()
    monkeypatch.setattr("sys.stdin", io.StringIO("another\nrestaurants-likert\n"))
    wrong = palaver("study", "reset", str(study))
    assert (wrong.code, "that is not its name, 'restaurants-likert'" in wrong.err) == (1, True)
    assert not list(tmp_path.glob("*.gz"))
    assert json.loads(palaver("study", "status", str(study), "--json").out)["status"]["raters"] == 1
    right = palaver("study", "reset", str(study))
    assert right.code == 0, right.err
    [saved] = tmp_path.glob("study-before-reset-*.gz")
    assert f"saved 0 answers of 1 rater in {saved}" in right.out
    assert json.loads(palaver("study", "status", str(study), "--json").out)["status"]["raters"] == 0


def test_a_preview_leaves_nothing(serve: Callable[..., Server], palaver: Palaver, study: Path) -> None:
    server = serve(study, "--preview")
    assert "nothing you do here is kept" in begin(Browser(), server.link)
    assert not study.with_suffix(".db").exists()
    server.stop()
    assert palaver("study", "serve", str(study), str(study.parent), "--preview").code == 2
