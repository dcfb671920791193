"""Whether a server of a study is running: a lock that ends with its process, however that ends.

SQLite: a lock on an empty file beside the database (the database file itself is locked by SQLite in another
way, which some network drives mix up). PostgreSQL: an advisory lock of a connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from palaver.artefacts import lock_file
from palaver.errors import UserError
from palaver.server.database import GATE, Database

_SERVING = GATE + 1
_RUNNING = UserError(
    "this study is being served: nothing was changed", "stop the server first, with Ctrl+C or systemctl stop"
)


class ServingMark:
    """Held by every process that serves a study. Waits while somebody has the study alone."""

    def __init__(self, database: Database) -> None:
        self._held: IO[Any] | Connection
        if database.is_sqlite:
            self._held = _file_of(database)
            lock_file(self._held, shared=True)
        else:
            self._held = database.engine.connect()
            self._held.execute(text(f"SELECT pg_advisory_lock_shared({_SERVING})"))

    def close(self) -> None:
        if isinstance(self._held, Connection):
            with suppress(DBAPIError):  # the database may be away
                self._held.execute(text(f"SELECT pg_advisory_unlock_shared({_SERVING})"))
        self._held.close()


@contextmanager
def without_servers(database: Database) -> Iterator[None]:
    """Raises `UserError` if a server is running; until the block ends none begins."""
    if database.is_sqlite:
        with _file_of(database) as file:
            if not lock_file(file):
                raise _RUNNING
            yield
        return
    with database.engine.connect() as connection:
        if not connection.execute(text(f"SELECT pg_try_advisory_lock({_SERVING})")).scalar():
            raise _RUNNING
        try:
            yield
        finally:
            connection.execute(text(f"SELECT pg_advisory_unlock({_SERVING})"))


def _file_of(database: Database) -> IO[Any]:
    return Path(f"{database.engine.url.database}-serving").open("ab")
