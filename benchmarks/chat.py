"""Pairs of simulated people who talk on the real server: how fast a message arrives, and what was lost.

    python -m benchmarks.chat --out docs/results/chat-delivery.json     # 50 pairs, 100 messages a second
    python -m benchmarks.chat --postgres --processes 2 --out docs/results/chat-delivery-postgres.json
    python -m benchmarks.chat --soak --out docs/results/chat-soak.json  # 1,000 chats, kill -9, 30-s cuts

Each person is a page as far as the server can tell: a WebSocket, an id for each message, which is sent again
until it is acknowledged. Delivery is the time from sending a message to its arrival at the partner. It ends
with 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from benchmarks.harness import machine
from benchmarks.serve import postgres
from palaver.collection.settings import parse_collection
from palaver.server.chat_log import create_collection
from palaver.server.chat_records import conversations_of, people_of
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.settings import Settings

_SERVE = "from palaver.server.processes import serve; from palaver.server.settings import Settings; "
_SERVE += "serve(Settings.from_environment())"
TARGET = 0.150
"""Seconds within which 95 of 100 messages arrive."""
CUT_SECONDS = 30
WAVE = 50
"""Chats that are held at the same time in a soak."""
COLLECTION = """
name = "load"
[conversation]
fewest_turns = {turns}
grace_seconds = 120
wait_minutes = 30
"""


@dataclass
class Tally:
    """What happened."""

    sent_at: dict[str, float] = field(default_factory=dict)
    delivered: list[float] = field(default_factory=list)
    acknowledged: set[str] = field(default_factory=set)
    reconnections: int = 0
    kills: int = 0
    cuts: int = 0
    late: set[str] = field(default_factory=set)
    """Messages that were under way when a connection broke: their delivery says nothing about speed."""
    misplaced: int = 0
    """Turns that a page was sent twice, or too early."""


class Server:
    """The real server in a process of its own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.url = f"http://127.0.0.1:{settings.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, **self.settings.to_environment()}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE], env=environment, start_new_session=True
        )
        for _ in range(3000):
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            time.sleep(0.02)
        raise RuntimeError("the server did not come up")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            self.process.wait()
            self.process = None


class Person:
    """One page."""

    def __init__(self, url: str, pause: float, turns: int | None, tally: Tally, rng: random.Random) -> None:
        self.url, self.pause, self.turns, self.tally, self.rng = url, pause, turns, tally, rng
        self.name = uuid.uuid4().hex[:8]
        self.room = self.known = self.number = 0
        self.pending: dict[str, Any] | None = None
        self.is_done = False
        self.cut_at = 0
        self.view: dict[str, Any] = {"state": "new"}

    async def enter(self) -> None:
        async with httpx.AsyncClient(base_url=self.url, follow_redirects=True, timeout=60) as client:
            reply = await client.get("/")
            while form := re.search(r'action="(/study/(?:consent|begin))"', reply.text):
                reply = await client.post(form[1], data={"csrf": _csrf(reply.text)})
            self.token = _csrf(reply.text)
            self.cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())

    async def talk(self, until: asyncio.Event) -> None:
        while not until.is_set() and not self.is_done:
            try:
                headers = {"Cookie": self.cookies}
                address = self.url.replace("http", "ws", 1) + "/chat/socket"
                async with connect(address, origin=self.url, additional_headers=headers) as socket:
                    hello = {"type": "hello", "token": self.token, "room": self.room, "turns": self.known}
                    await socket.send(json.dumps(hello))
                    if self.pending is not None:
                        self.tally.late.add(self.pending["text"])
                        await socket.send(json.dumps(self.pending))
                    await self._page(socket, until)
            except (OSError, WebSocketException, TimeoutError, EOFError):
                self.tally.reconnections += 1
                await asyncio.sleep(0.2 + self.rng.random())

    async def _page(self, socket: Any, until: asyncio.Event) -> None:
        beat = asyncio.create_task(self._beat(socket))
        try:
            while not until.is_set() and not self.is_done:
                with contextlib.suppress(TimeoutError):
                    frame = json.loads(await asyncio.wait_for(socket.recv(), 1.0))
                    await self._heed(socket, frame)
                if self.cut_at and self.number >= self.cut_at:
                    self.cut_at = 0
                    self.tally.cuts += 1
                    beat.cancel()  # no sign of life; what the server sends meanwhile is lost
                    await asyncio.sleep(CUT_SECONDS)
                    socket.transport.abort()
                    return
        finally:
            beat.cancel()

    async def _beat(self, socket: Any) -> None:
        while True:
            await asyncio.sleep(5)
            await socket.send('{"type": "alive"}')

    async def _heed(self, socket: Any, frame: dict[str, Any]) -> None:
        if frame.get("type") == "done" and self.pending and frame.get("mark") == self.pending["mark"]:
            self.tally.acknowledged.add(self.pending["text"])
            self.pending = None
            await self._act(socket)  # the partner may have answered before the acknowledgement came
        if frame.get("type") == "refused" and not frame.get("again"):
            raise RuntimeError(str(frame))
        if frame.get("type") != "view":
            return
        self.view = frame
        now = time.perf_counter()
        for place, turn in enumerate(frame.get("turns", ()), start=self.known):
            self.tally.misplaced += turn["n"] != place
        self.room, self.known = frame.get("room", 0), frame.get("n_turns", 0)
        for turn in frame.get("turns", ()):
            if (
                not turn["mine"]
                and turn["text"] in self.tally.sent_at
                and turn["text"] not in self.tally.late
            ):
                self.tally.delivered.append(now - self.tally.sent_at[turn["text"]])
        await self._act(socket)

    async def _act(self, socket: Any) -> None:
        frame = self.view
        if frame["state"] == "invited":
            await socket.send('{"type": "ready"}')
        elif frame["state"] in ("out", "rating"):
            self.is_done = True
        elif frame.get("can_submit") and self.turns is not None:
            await socket.send('{"type": "submit"}')
        elif frame.get("can_say") and self.pending is None:
            self.view = {**frame, "can_say": False}
            await asyncio.sleep(self.pause)
            self.number += 1
            id, text = uuid.uuid4().hex, f"{self.name} says number {self.number:05d} of what there is to say"
            self.pending = {"type": "say", "id": id, "text": text, "mark": id}
            self.tally.sent_at[text] = time.perf_counter()
            await socket.send(json.dumps(self.pending))


def _csrf(page: str) -> str:
    token = re.search(r'name="csrf" (?:value|content)="([^"]+)"', page)
    assert token is not None, page[:500]
    return token[1]


async def run_load(server: Server, pairs: int, seconds: float) -> Tally:
    """Everybody says something every second, in turn with the partner."""
    tally, rng, until = Tally(), random.Random(0), asyncio.Event()
    people = [Person(server.url, 0.5, None, tally, rng) for _ in range(2 * pairs)]
    for person in people:
        await person.enter()
    tasks = [asyncio.create_task(person.talk(until)) for person in people]
    await asyncio.sleep(5)
    tally.delivered.clear()  # while everybody comes in it is not yet what is measured
    await asyncio.sleep(seconds)
    until.set()
    await asyncio.gather(*tasks)
    return tally


async def run_soak(server: Server, chats: int, turns: int) -> Tally:
    """Chats in waves. In each wave the server is killed twice; every tenth person loses the network."""
    tally, rng = Tally(), random.Random(0)

    async def kill() -> None:
        for _ in range(2):
            await asyncio.sleep(rng.uniform(4, 12))
            server.end(signal.SIGKILL)
            tally.kills += 1
            await asyncio.to_thread(server.start)

    began = 0
    while began < chats:
        wave = min(WAVE, chats - began)
        people = [Person(server.url, 0.8, turns, tally, rng) for _ in range(2 * wave)]
        for person in people:
            if rng.random() < 0.1:
                person.cut_at = rng.randrange(1, turns // 2)
            await person.enter()
        talks = [person.talk(asyncio.Event()) for person in people]
        await asyncio.wait_for(asyncio.gather(kill(), *talks), 600)
        began += wave
        print(f"{began:,} chats, {tally.kills} kills, {tally.cuts} cuts", flush=True)
    return tally


def check(database: Database, tally: Tally) -> dict[str, int]:
    """Whether what was acknowledged is there, once and in order."""
    held = list(conversations_of(database))
    texts = [turn.text for conversation in held for turn in conversation.dialogue.turns]
    order = 0
    for conversation in held:
        for seat in conversation.dialogue.speakers:
            own = [turn.text for turn in conversation.dialogue.turns if turn.speaker == seat]
            order += own != sorted(own)
    return {
        "messages": len(texts),
        "acknowledged": len(tally.acknowledged),
        "lost": len(tally.acknowledged - set(texts)),
        "doubled": len(texts) - len(set(texts)),
        "out_of_order": order,
        "conversations": len(held),
        "complete": sum(conversation.ending == "complete" for conversation in held),
        "people_unexplained": sum(p.pay == "open" and bool(p.conversations) for p in people_of(database)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--postgres", action="store_true", help="in a PostgreSQL server of our own, not SQLite"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--soak", action="store_true")
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    load_before = os.getloadavg()[0]
    with contextlib.ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        url = opened.enter_context(postgres()) if asked.postgres else f"sqlite:///{folder}/chat.db"
        database = Database(url)
        migrate(database)
        text = COLLECTION.format(turns=asked.turns if asked.soak else 1000)
        create_collection(database, parse_collection(text, "load"), text, Path())
        settings = Settings(database=url, port=asked.port, workers=asked.processes, rate_limits=False)
        server = Server(settings)
        server.start()
        try:
            if asked.soak:
                tally = asyncio.run(run_soak(server, asked.chats, asked.turns))
            else:
                tally = asyncio.run(run_load(server, asked.pairs, asked.seconds))
        finally:
            server.end()
        counts = check(database, tally)
        database.close()
    cuts = quantiles(tally.delivered, n=100)
    result: dict[str, Any] = {
        "command": "python -m benchmarks.chat " + " ".join(sys.argv[1:]),
        "machine": machine(),
        "load_before": round(load_before, 1),
        "database": "PostgreSQL" if asked.postgres else "SQLite",
        "processes": asked.processes,
        "people": 2 * (asked.chats if asked.soak else asked.pairs),
        "delivery_ms": {f"p{p}": round(1000 * cuts[p - 1], 1) for p in (50, 95, 99)},
        "deliveries": len(tally.delivered),
        "kills": tally.kills,
        "cuts": tally.cuts,
        "reconnections": tally.reconnections,
        "misplaced_on_pages": tally.misplaced,
        **counts,
    }
    if not asked.soak:
        result["messages_per_second"] = round(len(tally.delivered) / asked.seconds, 1)
        result["target_ms"] = 1000 * TARGET
    print(json.dumps(result, indent=2))
    if asked.out is not None:
        asked.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    is_whole = not (counts["lost"] or counts["doubled"] or counts["out_of_order"] or tally.misplaced)
    return 0 if is_whole and (asked.soak or cuts[94] < TARGET) else 1


if __name__ == "__main__":
    sys.exit(main())
