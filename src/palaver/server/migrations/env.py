"""Run by Alembic: the connection is the one that `migrate` opened, and `migrate` commits."""

from __future__ import annotations

from alembic import context

from palaver.server.migrations import VERSION_TABLE
from palaver.server.tables import metadata


def run() -> None:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        render_as_batch=True,  # SQLite cannot alter a table in place
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # only while Alembic runs this file, not when somebody imports it
    run()
