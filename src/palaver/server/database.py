"""One study's database: SQLite in WAL mode beside the study file, or PostgreSQL by URL.

A change is one transaction, of two kinds. `writing()` lets nobody else write meanwhile. `step()` is for what
raters do all the time: on PostgreSQL steps of different raters run beside each other and lock the rows they
change, in this order: the rater, the assignment, the screen (several screens by their id). SQLite has one
writer in any case. What either has left without an error is on disk.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from palaver.errors import UserError, require

GATE = 0x70616C61  # "pala": the same for every process of a study, as a database holds one study
_BEGIN = {
    "sqlite": {"look": "BEGIN", "step": "BEGIN IMMEDIATE", "write": "BEGIN IMMEDIATE"},
    "postgresql": {
        "look": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        # One message each: a round trip costs more than what it asks for.
        "step": f"BEGIN; SELECT pg_advisory_xact_lock_shared({GATE})",
        "write": f"BEGIN; SELECT pg_advisory_xact_lock({GATE})",
    },
}
"""How transactions begin: we do it ourselves, the drivers never."""
_PATIENCE = 30.0
"""Seconds that a connection waits for others."""


class Database:
    """Connections to one study's database."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = url
        self.engine = _engine(url, read_only)
        self.is_sqlite = self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent look at what is committed."""
        with self._begin("look") as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def settled(self) -> Iterator[Connection]:
        """A look at a moment when no step is under way.

        Of two answers that arrive together, PostgreSQL may commit the one with the higher number first. Here
        every answer is there that will ever have a number below the highest one.
        """
        with self._begin("look") as connection:
            if not self.is_sqlite:
                with self._begin("write") as gate:
                    connection.exec_driver_sql("SELECT 1")  # from here on it sees this moment
                    gate.rollback()
            yield connection
            connection.rollback()

    @contextmanager
    def step(self) -> Iterator[Connection]:
        """One transaction of one rater; committed when the block ends without an error."""
        with self._begin("step") as connection:
            yield connection
            connection.commit()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction that excludes all others that change something; committed as a step is."""
        with self._begin("write") as connection:
            yield connection
            connection.commit()

    @contextmanager
    def _begin(self, kind: str) -> Iterator[Connection]:
        """A transaction that is rolled back, unless the block commits it."""
        beginning = _BEGIN[self.engine.dialect.name][kind]
        with self.engine.connect() as connection:
            try:
                connection.exec_driver_sql(beginning)
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
                connection.rollback()  # the server was restarted meanwhile: this takes a new connection
                connection.exec_driver_sql(beginning)
            yield connection

    def note_sizes(self, connection: Connection) -> None:
        """Let PostgreSQL look at the screens: it plans badly for tables that it takes to be empty."""
        if not self.is_sqlite:
            connection.execute(text("ANALYZE screen"))

    def check_writing(self) -> None:
        """Raise what the database says if it cannot be written; nothing is changed."""
        with self.writing() as connection:
            connection.execute(text("UPDATE study SET id = id"))

    def close(self) -> None:
        self.engine.dispose()


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def can_be_written(path: Path) -> bool:
    """Whether SQLite can write this file: it needs the file, and its folder for what it keeps beside it."""
    effective = os.access in os.supports_effective_ids
    return all(os.access(place, os.W_OK, effective_ids=effective) for place in (path, path.parent))


def _engine(url: str, read_only: bool) -> Engine:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UserError(
            f"not a database URL: {url!r}",
            "expected sqlite:///study.db or postgresql+psycopg://user@host/name",
        ) from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return _sqlite_reader(Path(parsed.database or "")) if read_only else _sqlite(url)
    if backend == "postgresql":
        require("psycopg", "postgres")
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_size=20,
            max_overflow=20,
            isolation_level="AUTOCOMMIT",
        )
        try:
            engine.connect().close()
        except OperationalError as error:
            raise UserError(
                f"cannot reach {parsed.render_as_string(hide_password=True)}: {error.orig}"
            ) from None
        return engine
    raise UserError(f"{backend} is not supported", "use sqlite:///study.db or postgresql+psycopg://…")


def _use_wal(cursor: Any) -> None:
    """Of connections that open a new file at once, one may make the switch and the others are told that it is
    locked, at once and whatever their time-out: SQLite sees a deadlock there. They ask again."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _make_private(path: str | None) -> None:
    """A new file that only its owner can read: it holds the key that signs cookies, and who the raters are.

    What SQLite keeps beside it (the WAL) gets the same permissions.
    """
    if path and path != ":memory:":
        with suppress(OSError):  # it is there already, or SQLite says better why it cannot be
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sqlite_reader(path: Path) -> Engine:
    """A file that cannot be written, on a read-only medium for example.

    What was not yet moved from the WAL into the file must be read as well, and then SQLite needs both.
    Without a WAL nothing beside the file is needed, if SQLite is told that nobody changes it.
    """
    wal = path.with_name(f"{path.name}-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    ending = "mode=ro" if has_wal else "mode=ro&immutable=1"
    engine = create_engine(f"sqlite:///file:{quote(str(path))}?{ending}&uri=true")

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None

    return engine


def _sqlite(url: str) -> Engine:
    _make_private(make_url(url).database)
    engine = create_engine(
        url, pool_size=20, max_overflow=20, connect_args={"timeout": _PATIENCE, "check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # transactions are begun by us, as readers or as writers
        cursor = connection.cursor()
        _use_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")  # an acknowledged answer survives a power cut
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")
        cursor.close()

    return engine
