"""`kill -9` of the real server at random moments under load: every acknowledged answer is in the database."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment, screen

pytest.importorskip("palaver.server.app", reason="the web app is not there")

N_CLIENTS = 6
LAUNCHER = """
import json, os, signal, sys
import uvicorn
from palaver.server.app import create_app
from palaver.server.settings import Settings
given = json.loads(sys.argv[1])
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:  # each line asks for a server; what is slow to import is there already
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        app = create_app(Settings(study_file=None, **given))
        uvicorn.run(app, host=given["host"], port=given["port"], log_level="error", access_log=False)
        os._exit(0)
    print(pid, flush=True)
"""


class Doomed:
    """A server that is killed again and again."""

    def __init__(self, url: str, port: int) -> None:
        given = {"database": url, "host": "127.0.0.1", "port": port, "rate_limits": False}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.port = port
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            cwd="/",
        )
        self.pid = 0

    def start(self) -> None:
        assert self.launcher.stdin is not None
        assert self.launcher.stdout is not None
        self.launcher.stdin.write("again\n")
        self.launcher.stdin.flush()
        self.pid = int(self.launcher.stdout.readline())
        for _ in range(1500):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError("the server did not come up")

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.pid = 0

    def close(self) -> None:
        self.kill()
        assert self.launcher.stdin is not None
        self.launcher.stdin.close()
        self.launcher.kill()
        self.launcher.wait()
        assert self.launcher.stdout is not None
        self.launcher.stdout.close()


class Client(threading.Thread):
    """One rater's browser: keeps its answers until they are acknowledged, and sends them again if not."""

    def __init__(self, port: int, name: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self.port, self.person, self.over = port, name, over
        self.acknowledged: dict[str, str] = {}
        self.unsent: dict[str, Any] | None = None
        self.cookie = ""
        self.csrf = ""
        self.entries = 0
        self.resent = 0
        self.wrong: list[str] = []

    def run(self) -> None:
        try:
            while not self.over.is_set():
                try:
                    self.step()
                except (OSError, http.client.HTTPException):
                    time.sleep(0.01)  # the server is down
        except BaseException as error:
            self.wrong.append(repr(error))

    def ask(self, method: str, path: str, body: str | None = None, kind: str = "") -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            headers = {"cookie": self.cookie, "x-csrf-token": self.csrf}
            connection.request(method, path, body, headers | ({"content-type": kind} if kind else {}))
            reply = connection.getresponse()
            text = reply.read().decode()
            for cookie in reply.headers.get_all("set-cookie") or ():
                self.cookie = cookie.partition(";")[0]
            return reply.status, text
        finally:
            connection.close()

    def step(self) -> None:
        if not self.cookie:
            # Whose first reply was lost is known, and would need the owner's leave: somebody else comes.
            self.entries += 1
            self.ask("GET", f"/?PROLIFIC_PID={self.person}-{self.entries}")
        if self.unsent is not None:
            self.resent += 1
        else:
            status, page = self.ask("GET", "/study")
            if status != 200:
                self.wrong.append(f"{status}: {page[:300]}")
                self.over.wait(0.1)
                return
            self.csrf = re.findall(r'name="csrf" value="(\w+)"', page)[0]
            if "/study/begin" in page:
                self.ask("POST", "/study/begin", f"csrf={self.csrf}", "application/x-www-form-urlencoded")
                return
            held = re.search(r'data-assignment="(\d+)"', page)
            assert held, "there is work for everybody"
            given = {
                "id": str(uuid.uuid4()),
                "criterion": "quality",
                "position": 0,
                "value": random.randint(1, 6),
            }
            self.unsent = {"assignment": int(held[1]), "answers": [given]}
        status, reply = self.ask("POST", "/api/answers", json.dumps(self.unsent), "application/json")
        sent = self.unsent["answers"][0]
        if status == 200 and json.loads(reply)["saved"] == [sent["id"]]:
            self.acknowledged[sent["id"]] = str(sent["value"])
        else:
            self.wrong.append(f"{status}: {reply[:300]}")
        self.unsent = None


def murder(url: str, times: int, study: Study, port: int, rng: random.Random) -> list[Client]:
    """Serve the study under load and kill the server `times` times."""
    database = Database(url)
    migrate(database)
    StudyState.create(database, study, "")
    database.close()
    over = threading.Event()
    server = Doomed(url, port)
    clients = [Client(port, f"person-{n}", over) for n in range(N_CLIENTS)]
    try:
        server.start()
        for client in clients:
            client.start()
        for _ in range(times):
            time.sleep(rng.uniform(0.05, 0.5))
            server.kill()
            server.start()
        time.sleep(0.3)
    finally:
        over.set()
        for client in clients:
            client.join(15)
        server.close()
    return clients


KILLS = int(os.environ.get("PALAVER_KILLS", "5"))  # `make soak` kills twenty times


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_no_acknowledged_answer_is_lost(
    kind: str,
    request: pytest.FixtureRequest,
    tmp_path: Any,
    make_study: Callable[..., Study],
    unused_port: int,
) -> None:
    url = (
        f"sqlite:///{tmp_path / 'study.db'}"
        if kind == "sqlite"
        else request.getfixturevalue("postgres").new()
    )
    study = make_study(n_items=1000, n_outputs=1, raters_per_item=N_CLIENTS // 2)
    clients = murder(url, KILLS, study, unused_port, random.Random(7))
    assert [wrong for client in clients for wrong in client.wrong] == []
    acknowledged = {i: v for client in clients for i, v in client.acknowledged.items()}
    database = Database(url)
    try:
        with database.reading() as connection:
            stored = dict(connection.execute(select(answer.c.id, answer.c.value)).all())  # type: ignore[arg-type]
            per_screen = connection.execute(
                select(func.count())
                .where(assignment.c.status.in_(("open", "done")))
                .group_by(assignment.c.screen_id)
            )
            most = max(per_screen.scalars())
            taken = connection.execute(select(func.sum(screen.c.taken))).scalar_one()
            held = connection.execute(
                select(func.count()).where(assignment.c.status.in_(("open", "done")))
            ).scalar_one()
            twice = connection.execute(
                select(func.count())
                .select_from(answer)
                .group_by(answer.c.assignment_id)
                .having(func.count() > 1)
            ).all()
    finally:
        database.close()
    assert len(acknowledged) > 3 * KILLS, "there was no load"
    assert sum(client.resent for client in clients) > 0, "the server never died with an answer on its way"
    assert {i: v for i, v in acknowledged.items() if stored.get(i) != v} == {}
    assert twice == [], "what was sent again is one row"
    assert most <= study.raters_per_item
    assert taken == held


def test_everybody_resumes_after_a_restart(
    served: Callable[..., Any], make_study: Callable[..., Study], database_url: str
) -> None:
    server = served(make_study(n_items=4, n_outputs=1), database_url, rate_limits=False)
    client = Client(server.settings["port"], "somebody", threading.Event())
    for _ in range(3):  # in, begin, one answer
        client.step()
    held = re.search(r'data-assignment="(\d+)"', client.ask("GET", "/study")[1])
    server.stop()
    server.start()
    again = re.search(r'data-assignment="(\d+)"', client.ask("GET", "/study")[1])
    assert held
    assert again
    assert held[1] == again[1]
    client.step()
    assert client.wrong == []
    assert len(client.acknowledged) == 3
