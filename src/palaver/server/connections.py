"""Connections that are not used are closed: to hold one open costs a client nothing, and us a place."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MOST_CONNECTIONS = 2000
"""Of one process; more are told to come back later."""
IDLE_SECONDS = 15
"""A connection that is kept between two requests."""
HEADER_SECONDS = 10.0
"""From the first byte of a request, or from the beginning of the connection, to the end of its headers."""
MOST_HEADERS = 65_536
"""Bytes; browsers send about a thousand."""


class HurriedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's own, which waits for ever for the headers of a request, with limits to that."""

    _deadline: asyncio.TimerHandle | None = None
    _n_received = 0
    _is_socket = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_socket:
            return
        self._n_received = 0 if self._has_request() else self._n_received + len(data)
        if self._n_received > MOST_HEADERS:
            self._give_up()
        elif self._has_request():
            self._stop_waiting()
        elif self._deadline is None:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, *args: Any) -> None:
        self._is_socket = True  # from here on it is another protocol's
        self._stop_waiting()
        super().handle_websocket_upgrade(*args)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_headers(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if not self._has_request():
            self.transport.close()
