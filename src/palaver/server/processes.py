"""The processes that serve studies. Each has a listener of its own, among which connections are shared."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.context import SpawnProcess
from typing import Any

import uvicorn

from palaver.errors import UserError
from palaver.server.chat import MOST_BYTES
from palaver.server.connections import IDLE_SECONDS, MOST_CONNECTIONS, HurriedProtocol
from palaver.server.settings import Settings, to_environment

_log = logging.getLogger("palaver.server")
_SPAWN = multiprocessing.get_context("spawn")
_PAUSE = 0.2
SOCKETS: dict[str, Any] = {
    "ws": "websockets-sansio",
    "ws_max_size": MOST_BYTES,
    "ws_per_message_deflate": False,  # messages are short
}
"""How uvicorn treats WebSockets."""
_GRACE = 5
"""Seconds that requests under way have when the server is stopped."""


def serve(studies: Sequence[Settings]) -> None:
    """Serve studies, which share an address, until SIGINT or SIGTERM."""
    if studies[0].workers == 1:
        _serve_alone(studies)
    else:
        _supervise(studies)


def _serve_alone(studies: Sequence[Settings]) -> None:
    os.environ.update(to_environment(studies))
    config = uvicorn.Config(
        "palaver.server.overview:app_from_environment",
        factory=True,
        log_level="warning",
        access_log=False,  # it would keep raters' platform ids and the admin's token
        proxy_headers=False,  # `security.client_address` knows when to believe them
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=IDLE_SECONDS,
        limit_concurrency=MOST_CONNECTIONS,
        http=HurriedProtocol,
        **SOCKETS,
    )
    server = uvicorn.Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets=_listen(studies[0]))
    if not server.started:
        sys.exit(1)


def _listen(settings: Settings) -> list[socket.socket]:
    """Sockets of this process alone. Of those that say TCP, asyncio sends small replies at once."""
    kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
    addresses = socket.getaddrinfo(settings.host, settings.port, type=kind, proto=protocol)
    listeners = []
    for family, _, _, _, address in addresses:
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if settings.workers > 1:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listeners.append(listener)
    return listeners


def _supervise(studies: Sequence[Settings]) -> None:
    """Keep as many processes at work as there are to be."""
    if not hasattr(socket, "SO_REUSEPORT"):
        raise UserError("this system cannot share a port among processes", "serve with --processes 1")
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    processes = [_start(studies) for _ in range(studies[0].workers)]
    began = time.monotonic()
    while not stopping.wait(_PAUSE):
        for place, process in enumerate(processes):
            if process.is_alive():
                continue
            if time.monotonic() < began + 10:  # it could not begin; it has said why
                stopping.set()
                break
            _log.error("a server process ended with %s: another one begins", process.exitcode)
            time.sleep(1)
            processes[place] = _start(studies)
    failed = any(process.exitcode for process in processes)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(2 * _GRACE)
        process.kill()
    if failed:
        sys.exit(1)


def _start(studies: Sequence[Settings]) -> SpawnProcess:
    process = _SPAWN.Process(target=_serve_for_parent, args=(tuple(studies),))
    process.start()
    return process


def _serve_for_parent(studies: Sequence[Settings]) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    _serve_alone(studies)
