"""People in a served collection: their browsers, and programs that speak what the page speaks."""

from __future__ import annotations

import json
import re
import uuid
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

ANNOTATED = """
name = "small"
title = "A small talk"
consent = "You talk."
instructions = "Talk."
[conversation]
fewest_turns = {fewest}
[knowledge]
base = "sample"
[[about_own]]
criterion = "sentiment"
text = "How do you feel?"
scale = {{ kind = "choice", options = ["Happy", "Sad", "Neutral"] }}
[[about_own]]
criterion = "knowledge_source"
text = "Where does it come from?"
scale = {{ kind = "checkboxes", exclusive = [], options = ["FS1", "FS2", "AS1", "Personal Knowledge"] }}
[[about_partner]]
criterion = "turn_rating"
text = "How good is it?"
scale = {{ kind = "likert", low = 1, high = 5, labels = {grades} }}
[[about_whole]]
criterion = "rating"
text = "How good was the conversation?"
scale = {{ kind = "likert", low = 1, high = 5, labels = {grades} }}
""".replace("{grades}", '["Poor", "Not Good", "Passable", "Good", "Excellent"]')
PLAIN = 'name = "plain"\n[conversation]\nfewest_turns = {fewest}\n'
WITH_BOT = """
name = "bot"
[partners]
bots = ["parrot"]
characters_per_second = 10000
[conversation]
fewest_turns = {fewest}
bot_seconds = 20
[[about_whole]]
criterion = "rating"
text = "How good was it?"
scale = {{ kind = "likert", low = 1, high = 5 }}
"""


class Guest:
    """Somebody who talks by program. Frames are as the page sends them."""

    def __init__(self, url: str, **query: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, follow_redirects=True, timeout=30)
        reply = self.http.get("/", params=query)
        while (
            action := re.search(r'<form [^>]*action="(/study/(?:consent|begin))"', reply.text)
        ) is not None:
            reply = self.http.post(action[1], data={"csrf": self._csrf(reply.text)})
        self.token = self._csrf(reply.text)
        self.socket: ClientConnection | None = None
        self._open = ExitStack()
        for close in (self.http.close, self._open.close):
            weakref.finalize(self, close)
        self.room = self.turns = 0
        self.said: list[str] = []
        """What this page has been sent, in order."""
        self.view: dict[str, Any] = {}

    @staticmethod
    def _csrf(page: str) -> str:
        token = re.search(r'name="csrf" (?:value|content)="([^"]+)"', page)
        assert token is not None, page
        return token[1]

    @property
    def cookies(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())

    def connect(self, origin: str | None = None, token: str | None = None) -> Guest:
        address = self.url.replace("http", "ws", 1) + "/chat/socket"
        self._open.close()
        self.socket = self._open.enter_context(
            connect(
                address,
                origin=origin or self.url,
                additional_headers={"Cookie": self.cookies},
                open_timeout=20,
            )
        )
        self.send(type="hello", token=token or self.token, room=self.room, turns=self.turns)
        return self

    def send(self, **frame: Any) -> None:
        assert self.socket is not None
        self.socket.send(json.dumps(frame))

    def receive(self, timeout: float = 20) -> dict[str, Any]:
        assert self.socket is not None
        frame: dict[str, Any] = json.loads(self.socket.recv(timeout=timeout))
        if frame["type"] == "view":
            self.view = frame
            self.room, self.turns = frame.get("room", 0), frame.get("n_turns", 0)
            self.said += [turn["text"] for turn in frame.get("turns", ())]
            if frame["state"] == "invited":
                self.send(type="ready")
        return frame

    def receive_kind(self, kind: str) -> dict[str, Any]:
        """The next frame of a kind; others are taken in."""
        while (frame := self.receive())["type"] != kind:
            pass
        return frame

    def wait(self, until: Callable[[dict[str, Any]], object], timeout: float = 20) -> dict[str, Any]:
        """Take frames until a view is as it should be."""
        while not (self.view and until(self.view)):
            self.receive(timeout)
        return self.view

    def ask(self, **frame: Any) -> dict[str, Any]:
        """Send a frame and wait for the reply to it."""
        mark = frame.setdefault("mark", uuid.uuid4().hex)
        self.send(**frame)
        while True:
            reply = self.receive()
            if reply.get("mark") == mark:
                return reply

    def say(self, text: str) -> dict[str, Any]:
        return self.ask(type="say", id=uuid.uuid4().hex, text=text)

    def close(self) -> None:
        self._open.close()
        self.http.close()


def is_my_turn(view: dict[str, Any]) -> bool:
    return bool(view.get("can_say"))


def is_talking(view: dict[str, Any]) -> bool:
    return view["state"] == "talking"


def meet(url: str) -> tuple[Guest, Guest]:
    """Two people who have been paired."""
    first, second = Guest(url).connect(), Guest(url).connect()
    first.wait(lambda view: view["state"] in ("invited", "talking"))
    second.wait(is_talking)
    first.wait(is_talking)
    return first, second
