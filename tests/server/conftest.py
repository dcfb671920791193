"""Databases and servers for the tests: SQLite in a file, a real PostgreSQL, the real app under uvicorn.

PostgreSQL tests are skipped where no server is installed; with PALAVER_REQUIRE_POSTGRES=1 (CI) they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from sqlalchemy import select

from palaver.schema import Study
from palaver.server.app import create_app
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.processes import SOCKETS
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import answer

sys.path.append(str(Path(__file__).parent))  # for `sham`: tests are no package

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A PostgreSQL server of our own: own data directory, own port, trusted on loopback only."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="palaver-postgres-"))
        self.data = self.folder / "data"
        self.port = free_port()
        self.made = 0
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", self.data, "-U", "palaver", "-A", "trust", "-E", "UTF8", "--no-sync")
        # What is tested is a killed web server, not a power cut: the disk need not be waited for.
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        options += " -c max_connections=300"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", self.folder / "log", "-o", options, "start")

    def _run(self, program: str, *words: object) -> None:
        command = [str(self.binaries / program), *map(str, words)]
        if os.getuid() == 0:
            quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
            command = ["su", "-s", "/bin/bash", "postgres", "-c", quoted]
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}")

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://palaver@127.0.0.1:{self.port}/{name}"

    def new(self, template: str = "template1") -> str:
        """The URL of a fresh database."""
        self.made += 1
        name = f"test_{self.made}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Delete a database, whoever is connected to it."""
        self._execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="palaver", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(statement)  # type: ignore[arg-type]

    def restart(self) -> None:
        self._run("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-l", self.folder / "log", "restart")

    def stop(self) -> None:
        try:
            self._run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


def _binaries() -> Path | None:
    found = [p for pattern in PLACES for p in Path("/").glob(pattern[1:])]
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    whole = [p for p in sorted(found) if (p / "initdb").exists() and (p / "pg_ctl").exists()]
    return whole[-1] if whole else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One PostgreSQL server for all tests of a session."""
    binaries = _binaries()
    if binaries is None:
        reason = "no PostgreSQL server found (Debian: apt-get install postgresql)"
        if os.environ.get("PALAVER_REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    server = Postgres(binaries)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database, once on each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.new()
    yield url
    server.drop(url)  # at once: hundreds of databases on the disk take minutes to delete at the end


@pytest.fixture(scope="session")
def newest_schema(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database without a study, for copies: to migrate each takes forty times as long."""
    path = tmp_path_factory.mktemp("newest-schema") / "study.db"
    database = Database(f"sqlite:///{path}")
    try:
        migrate(database)
    finally:
        database.close()
    assert [file.name for file in path.parent.iterdir()] == ["study.db"]  # nothing is left beside it
    return path


@pytest.fixture
def database(database_url: str, newest_schema: Path) -> Iterator[Database]:
    """A database with the newest schema and no study in it."""
    kind, _, path = database_url.partition(":///")
    if kind == "sqlite":
        shutil.copyfile(newest_schema, path)
    made = Database(database_url)
    try:
        if kind != "sqlite":
            migrate(made)
        yield made
    finally:
        made.close()


@pytest.fixture
def sqlite(tmp_path: Path, newest_schema: Path) -> Iterator[Database]:
    """The same, on SQLite alone."""
    made = Database(f"sqlite:///{shutil.copyfile(newest_schema, tmp_path / 'study.db')}")
    try:
        yield made
    finally:
        made.close()


def study_of(
    n_items: int = 3,
    n_outputs: int = 2,
    scale: dict[str, Any] | None = None,
    criteria: tuple[str, ...] = ("quality",),
    **fields: Any,
) -> Study:
    """A small study; further fields replace or add."""
    data: dict[str, Any] = {
        "name": "small",
        "layout": "joint",
        "raters_per_item": 2,
        "lease_minutes": 1,
        "questions": [
            {"criterion": c, "text": f"How is its {c}?", "scale": scale or {"kind": "likert"}}
            for c in criteria
        ],
        "items": [
            {
                "id": f"item-{i}",
                "outputs": [
                    {"system": f"system-{s}", "text": f"the answer number {s} to question {i} in words"}
                    for s in range(n_outputs)
                ],
            }
            for i in range(n_items)
        ],
    }
    return Study.model_validate({**data, **fields})


@pytest.fixture(scope="session")
def make_study() -> Callable[..., Study]:
    """`study_of`, for test files, which cannot import from here."""
    return study_of


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


START = """
import json, sys
from pathlib import Path
from palaver.server.app import create_app
from palaver.server.settings import Settings
import uvicorn
given = json.loads(sys.argv[1])
app = create_app(Settings(study_file=None, **given))
uvicorn.run(app, host=given["host"], port=given["port"], log_level="warning", access_log=False)
"""


class ServerProcess:
    """The real app in a process of its own, which can be killed and started again."""

    def __init__(self, database_url: str, **settings: Any) -> None:
        self.settings = {"database": database_url, "host": "127.0.0.1", "port": free_port(), **settings}
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['port']}"

    def start(self, wait: float = 20) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(self.settings)], env=environment, cwd="/"
        )
        until = time.monotonic() + wait
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5) as reply:
                    if reply.status == 200:
                        return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.02)
        self.kill()
        raise RuntimeError("the server did not come up")

    def kill(self) -> None:
        """As the power would: no handler runs."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None


@pytest.fixture
def served() -> Iterator[Callable[..., ServerProcess]]:
    """`served(study, url, **settings)` puts the study into the database and serves it until the test ends."""
    pytest.importorskip("palaver.server.app", reason="the web app is not there")
    running: list[ServerProcess] = []

    def serve(study: Study, url: str, **settings: Any) -> ServerProcess:
        database = Database(url)
        try:
            migrate(database)
            StudyState.create(database, study, study.model_dump_json())
        finally:
            database.close()
        running.append(ServerProcess(url, **settings))
        return running[-1]

    yield serve
    for server in running:
        server.stop()


@pytest.fixture
def unused_port() -> int:
    return free_port()


class LocalServer:
    """The real app in a thread of this process, for a browser; it can be stopped and started again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.app = create_app(self.settings)
        options: dict[str, Any] = {"log_level": "error", "proxy_headers": False, **SOCKETS}
        config = uvicorn.Config(self.app, port=self.port, timeout_graceful_shutdown=1, **options)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.01)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)

    @property
    def database(self) -> Database:
        database: Database = self.app.state.site.study_state.database
        return database

    def rows(self) -> list[tuple[str, str, str, float | None, int | None]]:
        """Rater, criterion, value, seconds and place of every answer."""
        c = answer.c
        wanted = select(c.rater_id, c.criterion, c.value, c.seconds, c.shown_position).order_by(c.number)
        with self.database.reading() as connection:
            return [tuple(row) for row in connection.execute(wanted)]  # type: ignore[misc]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., LocalServer]]:
    """`serve(text, name, **settings)` serves a study file from this process until the test ends."""
    running: list[LocalServer] = []

    def start(text: str, name: str = "study", **settings: Any) -> LocalServer:
        file = tmp_path / f"{name}.toml"
        file.write_text(text, encoding="utf-8")
        url = f"sqlite:///{tmp_path / name}.db"
        running.append(LocalServer(Settings(study_file=file, database=url, **settings)))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def chat_server() -> Iterator[Callable[[str], LocalServer]]:
    """`chat_server(url)` serves the collection in a database from this process until the test ends."""
    running: list[LocalServer] = []

    def start(url: str) -> LocalServer:
        running.append(LocalServer(Settings(database=url, rate_limits=False)))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A browser of a rater, on a screen of usual size."""
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(10_000)
    yield context
    context.close()


@pytest.fixture
def no_problems() -> Iterator[None]:
    """Pages that `visits.open_page` has opened had no error."""
    from visits import PROBLEMS

    PROBLEMS.clear()
    yield
    assert PROBLEMS == []
