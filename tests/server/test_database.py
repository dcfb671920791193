"""What `Database` promises: one writer at a time, all or nothing, a reader's look that does not move."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import sham
import sqlalchemy as sa

from palaver.errors import UserError
from palaver.server.database import Database, sqlite_url
from palaver.server.migrations import migrate
from palaver.server.tables import event


def add(connection: sa.Connection, detail: str) -> None:
    connection.execute(sa.insert(event).values(at=1.0, kind="note", detail=detail))


def details(database: Database) -> list[str]:
    with database.reading() as connection:
        return list(connection.execute(sa.select(event.c.detail).order_by(event.c.id)).scalars())


def test_what_was_written_is_there_for_others(database: Database) -> None:
    with database.writing() as connection:
        add(connection, "one")
    other = Database(database.url)
    try:
        assert details(other) == ["one"]
    finally:
        other.close()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_undoes_everything(database: Database, error: type[BaseException]) -> None:
    with pytest.raises(error), database.writing() as connection:
        add(connection, "one")
        raise error
    assert details(database) == []
    with database.writing() as connection:  # and the lock is free again
        add(connection, "two")
    assert details(database) == ["two"]


def test_a_reader_sees_one_moment(database: Database) -> None:
    with database.reading() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(event)).scalar_one() == 0
        with database.writing() as writer:
            add(writer, "meanwhile")
        assert connection.execute(sa.select(sa.func.count()).select_from(event)).scalar_one() == 0
    assert details(database) == ["meanwhile"]


def test_after_a_reader_the_connection_is_as_it_was(database: Database) -> None:
    """A pooled connection must not carry the reader's isolation into a writer, who needs the newest state."""
    for n in range(3):
        details(database)
        with database.writing() as connection:
            before = connection.execute(sa.select(sa.func.count()).select_from(event)).scalar_one()
            assert before == n
            add(connection, str(n))


def test_a_reader_who_fails_leaves_no_transaction_open(database: Database) -> None:
    for _ in range(50):  # more than there are connections
        with pytest.raises(ValueError), database.reading() as connection:
            connection.execute(sa.select(event.c.id)).all()
            raise ValueError
    with database.writing() as connection:
        add(connection, "free")
    assert details(database) == ["free"]


def test_writers_take_turns(database: Database) -> None:
    """Each reads a count and writes the next: a lost update would show. Own engines, as processes have."""
    errors: list[BaseException] = []

    def count_up() -> None:
        own = Database(database.url)
        try:
            for _ in range(10):
                with own.writing() as connection:
                    seen = connection.execute(sa.select(sa.func.count()).select_from(event)).scalar_one()
                    add(connection, str(seen))
        except BaseException as error:
            errors.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=count_up) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert details(database) == [str(n) for n in range(60)]


def test_sqlite_waits_for_the_disk(sqlite: Database) -> None:
    with sqlite.engine.connect() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_foreign_keys_hold(database: Database) -> None:
    with pytest.raises(sa.exc.IntegrityError), database.writing() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO assignment (screen_id, rater_id, status, turn, given_at, expires_at)"
                " VALUES (99, 'nobody', 'open', 0, 0, 0)"
            )
        )


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://a/b", "oracle://x", "://"])
def test_other_databases_are_refused_in_words(url: str) -> None:
    with pytest.raises(UserError) as caught:
        Database(url)
    assert "sqlite:///" in (caught.value.hint or "")


def test_a_server_that_is_not_there_is_an_error_without_the_password(unused_port: int) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(UserError, match="cannot reach") as caught:
        Database(f"postgresql+psycopg://me:geheim@127.0.0.1:{unused_port}/x")
    assert "geheim" not in str(caught.value)


def test_a_short_postgresql_address_will_do(postgres: Any) -> None:
    database = Database(postgres.new().replace("postgresql+psycopg", "postgresql"))
    try:
        migrate(database)
        assert details(database) == []
    finally:
        database.close()


def test_sqlite_addresses_come_from_paths(tmp_path: Path) -> None:
    database = Database(sqlite_url(tmp_path / "a b ü.db"))
    try:
        migrate(database)
    finally:
        database.close()
    assert (tmp_path / "a b ü.db").exists()


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    """Switching to WAL does not wait by itself; about one opening in a hundred failed here."""
    errors: list[BaseException] = []

    def open_it(database: Database) -> None:
        with database.writing():
            pass

    for round in range(20):
        databases = [Database(sqlite_url(tmp_path / f"{round}.db")) for _ in range(8)]
        errors += sham.at_once(open_it, databases)
        for database in databases:
            database.close()
    assert errors == []
