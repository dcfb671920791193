"""A study begun anew: what people did is taken out of the database, after a backup."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import delete, select, update

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.backup import Backup, backup
from palaver.server.chat_log import read_collection
from palaver.server.database import Database
from palaver.server.editions import begin_study
from palaver.server.records import log
from palaver.server.serving_mark import without_servers
from palaver.server.tables import metadata
from palaver.server.tables import study as study_table

KEPT = ("admin", "media_file", "media_piece")
"""Tables that stay: who may run the study, and what it shows."""


@dataclass(frozen=True, slots=True)
class Reset:
    """What was taken out, and where it is kept."""

    saved: Backup
    path: Path


def check_resettable(database: Database) -> None:
    """Raise `UserError` for what cannot begin anew."""
    with database.reading() as connection:
        if read_collection(connection) is not None:
            raise UserError(
                "this is a collection, and nothing was changed", "serve it with another --database"
            )
    with without_servers(database):
        pass


def reset_study(
    database: Database, study: Study, source: str, path: Path, folder: Path | None = None
) -> Reset:
    """Save everything to `path`, then begin anew with this study, whose file is in `folder`.

    The key that signs cookies is a new one: raters come in as new ones, and admins sign in again.
    """
    check_resettable(database)
    with without_servers(database):
        saved = backup(database, path)
        now = time.time()
        with database.writing() as connection:
            address = connection.execute(select(study_table.c.address)).scalar()
            for table in reversed(metadata.sorted_tables):
                if table.name not in KEPT:
                    connection.execute(delete(table))
            begin_study(connection, study, source, now, folder)
            connection.execute(update(study_table).values(address=address))
            log(connection, now, None, "reset", f"what was there is in {path}")
            database.note_sizes(connection)
    return Reset(saved, path)
