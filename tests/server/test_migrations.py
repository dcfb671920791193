"""A database that was migrated step by step is the one that `tables` describes, on both kinds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import sham
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from palaver.errors import UserError
from palaver.server.database import Database
from palaver.server.migrations import VERSION_TABLE, configuration, migrate
from palaver.server.tables import metadata


def plain_index(index: Any) -> dict[str, Any]:
    conditions = {key: str(value) for key, value in index.get("dialect_options", {}).items()}
    return {**index, "dialect_options": conditions}


def described(database: Database) -> dict[str, Any]:
    """Everything the database itself says about its tables."""
    look = sa.inspect(database.engine)
    return {
        name: {
            "columns": {
                c["name"]: (str(c["type"]), c["nullable"], c["default"]) for c in look.get_columns(name)
            },
            "key": look.get_pk_constraint(name),
            "foreign": sorted(look.get_foreign_keys(name), key=str),
            "unique": sorted(look.get_unique_constraints(name), key=str),
            "indexes": sorted(map(plain_index, look.get_indexes(name)), key=str),
            "checks": look.get_check_constraints(name),
        }
        for name in sorted(look.get_table_names())
        if name != VERSION_TABLE
    }


def created_at_once(like: Database, request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if like.is_sqlite:
        return Database(f"sqlite:///{tmp_path / 'other.db'}")
    return Database(request.getfixturevalue("postgres").new())


def test_migrating_from_nothing_gives_the_described_tables(
    database: Database, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    other = created_at_once(database, request, tmp_path)
    try:
        with other.writing() as connection:
            metadata.create_all(connection)
        assert described(database) == described(other)
    finally:
        other.close()


def test_alembic_finds_nothing_to_do(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"version_table": VERSION_TABLE, "compare_type": True, "compare_server_default": True},
        )
        assert compare_metadata(context, metadata) == []


def test_the_comparison_would_notice(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(sa.text("DROP INDEX ix_screen_order"))
        connection.execute(sa.text("ALTER TABLE rater ADD COLUMN surplus INTEGER"))
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found = {difference[0] for difference in compare_metadata(context, metadata)}
    assert found >= {"add_index", "remove_column"}


def test_migrating_again_changes_nothing(database: Database) -> None:
    before = described(database)
    with database.writing() as connection:
        connection.execute(sa.text("INSERT INTO event (at, kind, detail) VALUES (1.5, 'entered', 'kept')"))
    migrate(database)
    migrate(database)
    assert described(database) == before
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT detail FROM event")).scalars().all() == ["kept"]


def test_comments_of_the_first_schema_are_kept(database_url: str) -> None:
    from alembic import command

    database = Database(database_url)
    try:
        with database.writing() as connection:
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            for statement in (
                "INSERT INTO rater VALUES ('r', NULL, 'link', '{}', 'done', "
                "1, 1, 0, 0, 0, FALSE, FALSE, 'C', NULL)",
                "INSERT INTO screen VALUES (1, 'main', 'i', '[]', 0, 0, 0, 1, 1)",
                "INSERT INTO assignment VALUES (1, 1, 'r', 'done', 0, 1, 2, 1)",
                "INSERT INTO comment VALUES (1, 'r', 'so so', 1.5)",
            ):
                connection.execute(sa.text(statement))
        migrate(database)
        with database.reading() as connection:
            kept = connection.execute(sa.text("SELECT assignment_id, rater_id, system, text FROM comment"))
            assert kept.all() == [(1, "r", None, "so so")]
    finally:
        database.close()


def test_many_processes_may_migrate_at_once(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(4)]
    errors = sham.at_once(migrate, databases)
    try:
        assert errors == []
        assert set(described(databases[0])) == set(metadata.tables)
    finally:
        for database in databases:
            database.close()


def test_a_failing_step_leaves_nothing_behind(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import command

    def breaks(config: Any, revision: str) -> None:
        config.attributes["connection"].execute(sa.text("CREATE TABLE half (id INTEGER)"))
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(command, "upgrade", breaks)
    database = Database(database_url)
    try:
        with pytest.raises(RuntimeError):
            migrate(database)
        assert sa.inspect(database.engine).get_table_names() == []
    finally:
        database.close()


def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    with database.writing() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(UserError, match="another version") as caught:
        migrate(database)
    assert caught.value.hint


def test_tables_of_another_program_are_left_alone(database_url: str) -> None:
    database = Database(database_url)
    try:
        with database.writing() as connection:
            connection.execute(sa.text("CREATE TABLE study (colour TEXT)"))
        with pytest.raises(UserError, match="another program: study"):
            migrate(database)
        assert sa.inspect(database.engine).get_table_names() == ["study"]
    finally:
        database.close()


def test_the_steps_are_one_line_with_a_described_end() -> None:
    scripts = ScriptDirectory.from_config(configuration())
    assert len(scripts.get_heads()) == 1
    assert scripts.get_bases() == ["0001"]
    for step in scripts.walk_revisions():
        assert re.fullmatch(r"\d{4}", step.revision)
        assert step.doc
