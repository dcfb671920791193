"""Simulated raters on loopback against the real server: answers per second, latency, and what was lost.

    python -m benchmarks.serve
    python3 -m venv P && P/bin/pip install potato-annotation==2.12.1
    python -m benchmarks.serve --potato P/bin/python --out docs/results/serving.json    # the rival beside it

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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from sqlalchemy import func, select

from benchmarks.harness import machine
from benchmarks.serve_potato import PotatoRater, potato_answers, serve_potato
from palaver.schema import Study
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.settings import Settings
from palaver.server.study_state import StudyState
from palaver.server.tables import answer, assignment

_SERVE = "from palaver.server.processes import serve; from palaver.server.settings import Settings; "
_SERVE += "serve(Settings.from_environment())"
RATIO = 3.0
POTATO = "potato-annotation 2.12.1"


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


def count_listeners(port: int) -> int:
    """How many processes listen; connections are shared among those that do."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


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
        [sys.executable, "-c", _SERVE],
        env={**os.environ, **settings.to_environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with stopped_after(process):
        wait_for(port, process)
        while count_listeners(port) < workers:
            time.sleep(0.1)
        put_load(PalaverRater, port, load)
    with database.reading() as connection:
        stored = set(connection.execute(select(answer.c.id)).scalars())
        held = select(func.count()).where(assignment.c.status.in_(("open", "done")))
        per_screen = connection.execute(held.group_by(assignment.c.screen_id)).scalars()
        surplus = sum(max(0, n - study.raters_per_item) for n in per_screen)
    database.close()
    return load, len(load.acknowledged - stored), surplus


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a database in a PostgreSQL server of our own with its usual settings."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
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


@dataclass(frozen=True)
class Case:
    """One line of the table; `at_least` answers per second and `at_most` seconds (p95) are to be reached."""

    database: str
    """SQLite, PostgreSQL, or the rival."""
    processes: int
    raters: int
    think: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def name(self) -> str:
        people = f"{self.raters} raters, " + (f"{self.think:g} s to think" if self.think else "no thinking")
        if self.database == POTATO:
            return f"{self.database}, {people}"
        return f"{self.database}, {self.processes} process{'es' * (self.processes > 1)}, {people}"


CASES = (
    Case("SQLite", 1, 200, 1.0, at_most=0.150),
    Case("SQLite", 1, 16, 0.0),
    Case("PostgreSQL", 2, 200, 1.0, at_least=170, at_most=0.075),
    Case("PostgreSQL", 2, 16, 0.0, at_least=300, at_most=0.060),
    Case("PostgreSQL", 1, 16, 0.0),
    Case("PostgreSQL", 4, 16, 0.0),
)


def run(case: Case, seconds: float, potato: str | None) -> dict[str, float]:
    """Serve one case to its raters; what was measured."""
    load, surplus = Load(case.raters, case.think, seconds), 0
    if case.database == POTATO:
        port = free_port()
        with serve_potato(potato or "", port, case.raters) as (process, folder):
            with stopped_after(process):
                wait_for(port, process, "/")
                put_load(PotatoRater, port, load)
            lost = len(load.answers) - potato_answers(folder)
    elif case.database == "SQLite":
        with tempfile.TemporaryDirectory() as folder:
            _, lost, surplus = serve_palaver(f"sqlite:///{folder}/study.db", case.processes, load)
    else:
        with postgres() as url:
            _, lost, surplus = serve_palaver(url, case.processes, load)
    for error in load.errors[:3]:
        print(f"  {error}", file=sys.stderr)
    measured = {"answers_per_second": load.per_second(), "answers": len(load.answers)}
    measured |= {f"p{q}": load.quantile(q / 100) for q in (50, 95, 99)}
    return {**measured, "lost": lost, "surplus": surplus, "errors": len(load.errors)}


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of every figure; of what must not happen, the worst."""
    worst = ("lost", "surplus", "errors")
    return {k: max(r[k] for r in runs) if k in worst else median(r[k] for r in runs) for k in runs[0]}


def misses(case: Case, measured: dict[str, float]) -> list[str]:
    """What a case was to reach and did not."""
    missed = [f"{what} {measured[what]:g}" for what in ("lost", "surplus", "errors") if measured[what]]
    if case.at_least is not None and measured["answers_per_second"] < case.at_least:
        missed.append(f"{measured['answers_per_second']:.0f} answers/s, target {case.at_least:g}")
    if case.at_most is not None and measured["p95"] > case.at_most:
        missed.append(f"p95 {measured['p95'] * 1e3:.0f} ms, target {case.at_most * 1e3:.0f} ms")
    return missed


def show(name: str, measured: dict[str, float]) -> None:
    times = " ".join(f"{measured[p] * 1e3:>7.1f} ms" for p in ("p50", "p95", "p99"))
    counts = f"{measured['lost']:>5.0f} {measured['surplus']:>7.0f} {measured['errors']:>6.0f}"
    print(f"{name:<54} {measured['answers_per_second']:>9.1f} {times} {counts}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=3, help="of each case; the median counts")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run")
    parser.add_argument("--potato", help="a Python that has potato-annotation")
    parser.add_argument("--out", type=Path, help="write the results there (JSON)")
    chosen = parser.parse_args()
    cases = list(CASES)
    if chosen.potato:
        cases.append(Case(POTATO, 1, 16, 0.0))
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        print("PostgreSQL: left out, no server found under /usr/lib/postgresql")
        cases = [case for case in cases if case.database != "PostgreSQL"]
    print(machine())
    print(f"{'':<54} {'answers/s':>9} {'p50':>10} {'p95':>10} {'p99':>10} {'lost':>5} surplus errors")
    # All cases in turn, then again: what else the machine does falls on all of them.
    rounds = [[run(case, chosen.seconds, chosen.potato) for case in cases] for _ in range(chosen.runs)]
    lines, missed = [], []
    for case, runs in zip(cases, zip(*rounds, strict=True), strict=True):
        measured = middle(list(runs))
        show(case.name, measured)
        lines.append({"case": case.name, **asdict(case), **measured, "runs": runs})
        missed += [f"{case.name}: {what}" for what in misses(case, measured)]
    by_case = {line["case"]: line["answers_per_second"] for line in lines}
    eager = {case: case.name for case in cases if case.think == 0}
    of_processes = {case.processes: by_case[n] for case, n in eager.items() if case.database == "PostgreSQL"}
    if of_processes and of_processes[4] < of_processes[1]:
        missed.append("four processes are slower than one")
    ratio = None
    if chosen.potato:
        ratio = by_case[Case("SQLite", 1, 16, 0.0).name] / by_case[cases[-1].name]
        print(f"{ratio:.1f} times the answers per second of potato, target {RATIO:g}")
        missed += [f"{ratio:.1f} times potato, target {RATIO:g}"] if ratio < RATIO else []
    if chosen.out:
        record = {
            "command": f"python -m benchmarks.serve --runs {chosen.runs} --seconds {chosen.seconds:g}",
            "machine": machine(),
            "seconds": chosen.seconds,
            "cases": lines,
            "times_potato": ratio,
            "missed": missed,
        }
        chosen.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if missed:
        sys.exit("missed: " + "; ".join(missed))


if __name__ == "__main__":
    main()
