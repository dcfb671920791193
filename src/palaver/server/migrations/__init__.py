"""The database's schema, step by step. `migrate` brings any database, new or old, to the newest one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from palaver.errors import UserError

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

    from palaver.server.database import Database

VERSION_TABLE = "palaver_version"
"""Not Alembic's own name, which another program in the same PostgreSQL database may have taken."""


def migrate(database: Database) -> None:
    """Bring the database to the newest schema, in one transaction that excludes every other process."""
    from alembic import command
    from alembic.util.exc import CommandError

    with database.writing() as connection:
        _refuse_strangers(connection)
        config = configuration()
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise UserError(
                f"this database was made by another version of Palaver: {error}",
                "serve it with a version that is at least as new as the one that made it",
            ) from None


def check_version(database: Database) -> None:
    """Raise `UserError` unless the schema is the newest: for a database that cannot be written."""
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        version = context.get_current_revision()
    if version != ScriptDirectory.from_config(configuration()).get_current_head():
        raise UserError(
            "this database was made by another version of Palaver, and it cannot be changed where it is",
            "copy it into a folder that can be written",
        )


def _refuse_strangers(connection: Connection) -> None:
    from sqlalchemy import inspect

    from palaver.server.tables import metadata

    there = set(inspect(connection).get_table_names())
    taken = sorted(there & set(metadata.tables))
    if taken and VERSION_TABLE not in there:
        raise UserError(
            f"this database has tables of another program: {', '.join(taken)}",
            "give the study a database of its own with --database",
        )


def configuration() -> Config:
    """What Alembic needs to know; also for `alembic revision` during development."""
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).parent)
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
