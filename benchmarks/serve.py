"""Simulated raters on loopback against the real server: answers per second, latency, and what was lost.

    python -m benchmarks.serve                    # SQLite with one process, PostgreSQL with two
    python3 -m venv P && P/bin/pip install potato-annotation
    python -m benchmarks.serve --potato P/bin/python       # and the rival beside it

Each rater is a browser as far as the server can tell: a connection that is kept, a page for each screen, and
answers that count only when they are acknowledged. The client speaks HTTP over plain sockets, so that it is
not what is measured. Ends with 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.harness import machine
from benchmarks.serve_potato import PotatoRater, potato_answers, serve_potato
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment

P95_LIMIT = 0.150
RATIO = 3.0


@dataclass
class Load:
    """What the raters saw."""

    raters: int
    think: float
    seconds: float
    pages: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    took: float = 0.0

    def per_second(self) -> float:
        return len(self.answers) / self.took if self.took else 0.0

    def quantile(self, share: float) -> float:
        """Over every request of the work, pages and answers alike."""
        times = sorted(self.pages + self.answers)
        return times[min(len(times) - 1, int(share * len(times)))] if times else float("nan")


class Connection:
    """One keep-alive HTTP/1.1 connection with its cookies."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookies: dict[str, str] = {}
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "", extra: str = ""
    ) -> tuple[int, str, dict[str, str]]:
        if self.writer is None or self.reader is None or self.writer.is_closing():
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        cookies = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{extra}"
        head += f"Cookie: {cookies}\r\n" if cookies else ""
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
        self.writer.write(head.encode() + b"\r\n" + body)
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = int(raw.split(" ", 2)[1])
        headers: dict[str, str] = {}
        for line in raw.split("\r\n")[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
            if name.lower() == "set-cookie":
                key, _, content = value.strip().partition(";")[0].partition("=")
                self.cookies[key] = content
        if "chunked" in headers.get("transfer-encoding", ""):
            text = b""
            while size := int(await self.reader.readline(), 16):
                text += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        else:
            text = await self.reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection", "").lower() == "close" or raw.startswith("HTTP/1.0"):
            self.close()
        return status, text.decode(), headers

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class PalaverRater:
    """Enters, begins, and answers one screen after the other."""

    def __init__(self, port: int, number: int) -> None:
        self.web = Connection(port)
        self.number = number
        self.csrf = ""

    async def enter(self) -> None:
        await self.web.ask("GET", f"/?PROLIFIC_PID=rater-{self.number}")
        _, page, _ = await self.web.ask("GET", "/study")
        self.csrf = re.findall(r'name="csrf" value="(\w+)"', page)[0]
        await self.web.ask(
            "POST", "/study/begin", f"csrf={self.csrf}".encode(), "application/x-www-form-urlencoded"
        )

    async def page(self) -> str | None:
        """The screen in hand; None when there is nothing left."""
        status, page, _ = await self.web.ask("GET", "/study")
        if status != 200:
            raise RuntimeError(f"{status}: {page[:200]}")
        held = re.search(r'data-assignment="(\d+)"', page)
        return held[1] if held else None

    async def answer(self, held: str) -> str:
        name = str(uuid.uuid4())
        given = {
            "id": name,
            "criterion": "quality",
            "position": 0,
            "value": random.randint(1, 6),
            "seconds": 1.0,
            "given_at": time.time(),
        }
        body = json.dumps({"assignment": int(held), "answers": [given]}).encode()
        extra = f"X-CSRF-Token: {self.csrf}\r\n"
        status, reply, _ = await self.web.ask("POST", "/api/answers", body, "application/json", extra)
        if status != 200 or json.loads(reply)["saved"] != [name]:
            raise RuntimeError(f"{status}: {reply[:200]}")
        return name


async def _work(rater: PalaverRater | PotatoRater, load: Load, begin: float, end: float) -> None:
    loop = asyncio.get_running_loop()
    try:
        await rater.enter()
        # Everybody starts within the first think time, as people do, not in the same millisecond.
        await asyncio.sleep(max(0.0, begin - loop.time()) + random.random() * load.think)
        while loop.time() < end:
            start = loop.time()
            held = await rater.page()
            load.pages.append(loop.time() - start)
            if held is None:
                return
            await asyncio.sleep(load.think)
            start = loop.time()
            name = await rater.answer(held)
            load.answers.append(loop.time() - start)
            load.acknowledged.add(name)
    except (OSError, RuntimeError, asyncio.IncompleteReadError, ValueError, IndexError) as error:
        load.errors.append(f"{type(error).__name__}: {error}")
    finally:
        rater.web.close()


async def _run(kind: type[PalaverRater] | type[PotatoRater], port: int, load: Load) -> None:
    loop = asyncio.get_running_loop()
    begin = loop.time() + 0.02 * load.raters  # the doors open before the clock starts
    end = begin + load.seconds
    await asyncio.wait_for(
        asyncio.gather(*(_work(kind(port, n), load, begin, end) for n in range(load.raters))),
        timeout=4 * load.seconds + 60,
    )
    load.took = max(loop.time() - begin, 1e-9)


def put_load(kind: type[PalaverRater] | type[PotatoRater], port: int, load: Load) -> Load:
    asyncio.run(_run(kind, port, load))
    return load


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], path: str = "/health", wait: float = 60) -> None:
    until = time.monotonic() + wait
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            status, _, _ = asyncio.run(Connection(port).ask("GET", path, extra="Connection: close\r\n"))
            if status < 500:
                return
        except (OSError, asyncio.IncompleteReadError):
            time.sleep(0.1)
    raise RuntimeError("the server did not come up")


@contextmanager
def stopped_after(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def likert_study(n_items: int, raters_per_item: int) -> Study:
    return Study.model_validate(
        {
            "name": "load",
            "layout": "joint",
            "raters_per_item": raters_per_item,
            "questions": [{"criterion": "quality", "text": "How good is it?", "scale": {"kind": "likert"}}],
            "items": [
                {
                    "id": f"item-{i}",
                    "context": f"What can you tell me about place number {i}?",
                    "outputs": [{"system": "a", "text": f"It is a quiet place near the river, number {i}."}],
                }
                for i in range(n_items)
            ],
        }
    )


def serve_palaver(url: str, workers: int, load: Load) -> tuple[Load, int, int]:
    """The load, acknowledged answers that are not in the database, and surplus assignments."""
    study = likert_study(1500, max(3, load.raters // 10))
    database = Database(url)
    migrate(database)
    StudyState.create(database, study, "")
    port = free_port()
    settings = Settings(database=url, port=port, workers=workers, rate_limits=False)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "uvicorn",
            "palaver.server.app:app_from_environment",
            "--factory",
            "--port",
            str(port),
            "--workers",
            str(workers),
            "--log-level",
            "error",
            "--no-access-log",
        ],
        env={**os.environ, **settings.to_environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with stopped_after(process):
        wait_for(port, process)
        put_load(PalaverRater, port, load)
    with database.reading() as connection:
        stored = set(connection.execute(select(answer.c.id)).scalars())
        held = select(func.count()).where(assignment.c.status.in_(("open", "done")))
        per_screen = connection.execute(held.group_by(assignment.c.screen_id)).scalars()
        surplus = sum(max(0, n - study.raters_per_item) for n in per_screen)
    database.close()
    return load, len(load.acknowledged - stored), surplus


@contextmanager
def postgres() -> Iterator[str | None]:
    """The URL of a database in a PostgreSQL server of our own with its usual settings; None without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        yield None
        return
    folder, port = Path(tempfile.mkdtemp(prefix="palaver-bench-")), free_port()
    as_root = os.getuid() == 0
    if as_root:
        shutil.chown(folder, "postgres")

    def call(program: str, *words: str) -> None:
        command = [str(found[-1].parent / program), *words]
        if as_root:
            quoted = " ".join(f"'{word}'" for word in command)
            command = ["su", "-s", "/bin/bash", "postgres", "-c", quoted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60)

    data = str(folder / "data")
    call("initdb", "-D", data, "-U", "palaver", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -k {folder}"
    call("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "palaver", "study")
        yield f"postgresql+psycopg://palaver@127.0.0.1:{port}/study"
    finally:
        call("pg_ctl", "-D", data, "-m", "fast", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


HEAD = f"{'':<42} {'answers/s':>9} {'p50':>8} {'p95':>8} {'p99':>8} {'answers':>8} {'lost':>5} {'surplus':>7}"


def show(name: str, load: Load, lost: int, surplus: int | None) -> None:
    p50, p95, p99 = (f"{load.quantile(q) * 1e3:.1f} ms" for q in (0.5, 0.95, 0.99))
    more = f"  {len(load.errors)} errors, first: {load.errors[0]}" if load.errors else ""
    print(
        f"{name:<42} {load.per_second():>9.1f} {p50:>8} {p95:>8} {p99:>8} {len(load.answers):>8} {lost:>5} "
        f"{'' if surplus is None else surplus:>7}{more}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--raters", type=int, default=200)
    parser.add_argument("--think", type=float, default=1.0, help="seconds between page and answer")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--eager", type=int, default=16, help="raters of the run without thinking")
    parser.add_argument("--potato", help="a Python that has potato-annotation")
    chosen = parser.parse_args()
    missed: list[str] = []

    def check(name: str, load: Load, lost: int, surplus: int) -> None:
        show(name, load, lost, surplus)
        if lost or surplus or load.errors:
            missed.append(f"{name}: lost {lost}, surplus {surplus}, errors {len(load.errors)}")

    print(machine())
    print(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        calm = Load(chosen.raters, chosen.think, chosen.seconds)
        name = f"SQLite, 1 process, {chosen.raters} raters, think {chosen.think:g} s"
        check(name, *serve_palaver(f"sqlite:///{folder}/calm.db", 1, calm))
        if calm.quantile(0.95) >= P95_LIMIT:
            missed.append(f"{name}: p95 {calm.quantile(0.95) * 1e3:.0f} ms, target {P95_LIMIT * 1e3:.0f} ms")
        ours = Load(chosen.eager, 0.0, chosen.seconds)
        name = f"SQLite, 1 process, {chosen.eager} raters, no thinking"
        check(name, *serve_palaver(f"sqlite:///{folder}/eager.db", 1, ours))
    for raters, think in ((chosen.raters, chosen.think), (chosen.eager, 0.0)):
        with postgres() as url:
            if url is None:
                print("PostgreSQL: left out, no server found under /usr/lib/postgresql")
                break
            name = f"PostgreSQL, 2 processes, {raters} raters, " + (
                f"think {think:g} s" if think else "no thinking"
            )
            check(name, *serve_palaver(url, 2, Load(raters, think, chosen.seconds)))
    if chosen.potato:
        rival = Load(chosen.eager, 0.0, chosen.seconds)
        port = free_port()
        with serve_potato(chosen.potato, port, chosen.eager) as (process, folder_of_answers):
            with stopped_after(process):
                wait_for(port, process, "/")
                put_load(PotatoRater, port, rival)
            stored = potato_answers(folder_of_answers)
        show(f"potato, {chosen.eager} raters, no thinking", rival, len(rival.answers) - stored, None)
        ratio = ours.per_second() / rival.per_second() if rival.per_second() else float("inf")
        print(f"{ratio:.1f} times the answers per second of potato, target {RATIO:g}")
        if ratio < RATIO:
            missed.append(f"ratio {ratio:.1f}")
    if missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
