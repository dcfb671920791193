"""Clients that connect and do not speak."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from palaver.server import connections


async def app(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    config = uvicorn.Config(app, http=connections.HurriedProtocol, lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(10)


REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("said", [b"", REQUEST[:20]], ids=["nothing", "half a request"])
def test_who_does_not_ask_is_shown_out(address: tuple[str, int], said: bytes) -> None:
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(said)
        assert client.recv(100) == b""


def test_who_asks_is_answered_however_long_it_takes(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as client:
        for _ in range(2):
            client.sendall(REQUEST)
            reply = b""
            while not reply.endswith(b"ok"):
                reply += client.recv(1000)
        client.sendall(REQUEST[:20])
        assert client.recv(100) == b""


def test_headers_without_an_end_are_not_kept(address: tuple[str, int]) -> None:
    with socket.create_connection(address, timeout=10) as client:
        client.sendall(REQUEST[:-2])
        with pytest.raises(ConnectionError):
            for n in range(10_000):
                client.sendall(b"X-%d: %s\r\n" % (n, b"x" * 1000))
