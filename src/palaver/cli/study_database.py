"""The database of a served study, by the study file, the database file or the URL.

What is needed of the server is imported in the functions: `study analyse` mostly reads files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.errors import UserError
from palaver.files import check_writable

if TYPE_CHECKING:
    from palaver.server.database import Database

ServedStudy = Annotated[
    str,
    typer.Argument(help="The study file, its database (study.db), or the database's URL.", metavar="STUDY"),
]


def url_beside(file: Path) -> str:
    """The URL of the SQLite file that belongs to a study file."""
    from palaver.server.database import sqlite_url

    return sqlite_url(file.resolve().with_suffix(".db"))


def database_url(named: str) -> str | None:
    """The URL of a study's database, however it is named; None if it is no database."""
    if "://" in named:
        return named
    path = Path(named)
    if path.suffix == ".toml":
        return url_beside(path)
    if path.suffix in (".db", ".sqlite", ".sqlite3"):
        from palaver.server.database import sqlite_url

        return sqlite_url(path.resolve())
    return None


@contextmanager
def open_database(url: str, *, new: bool = False, read_only: bool = False) -> Iterator[Database]:
    """A database; `new` if it may have to be made, `read_only` if it cannot be written."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DatabaseError, OperationalError

    from palaver.server.database import Database

    if url.startswith("sqlite"):
        name = make_url(url).database
        if not name or name == ":memory:":
            raise UserError(f"{url} is kept in memory, where answers would be lost", "use sqlite:///study.db")
        path = Path(name)
        if new:
            try:
                check_writable(path.parent)
            except UserError as error:
                raise UserError(error.message, "choose another place with --database sqlite:///…") from None
        elif not path.is_file():
            raise UserError(
                f"there is no database {path}", "serving the study or collection makes it, beside its file"
            )
    try:
        database = Database(url, read_only=read_only)
        try:
            yield database
        finally:
            database.close()
    except OperationalError as error:
        raise UserError(f"the database {shown_url(url)} cannot be used: {error.orig}") from None
    except DatabaseError as error:
        raise UserError(f"{shown_url(url)} is not a study's database: {error.orig}") from None


@contextmanager
def open_study(named: str) -> Iterator[Database]:
    """The database of a study that was served, brought to the newest schema if it can be written."""
    from palaver.server.database import can_be_written
    from palaver.server.migrations import check_version, migrate
    from palaver.server.study_state import StudyState

    url = database_url(named)
    if url is None:
        raise UserError(
            f"{named} is neither a study file nor a database",
            "expected study.toml, study.db, or a URL such as postgresql+psycopg://user@host/name",
        )
    file = sqlite_file(url)
    read_only = file is not None and file.is_file() and not can_be_written(file)
    with open_database(url, read_only=read_only) as database:
        if read_only:
            check_version(database)
        else:
            migrate(database)
        StudyState(database)  # says so if there is no study in it
        yield database


def refuse_collection(database: Database, instead: str) -> None:
    """A collection of conversations looks like a study that nobody has answered; `instead` is its command."""
    from palaver.server.chat_log import is_collection

    with database.reading() as connection:
        if is_collection(connection):
            raise UserError("this database holds a collection of conversations", f"try: {instead}")


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite URL."""
    from sqlalchemy.engine import make_url

    return Path(make_url(url).database or "") if url.startswith("sqlite:") else None


def shown_url(url: str) -> str:
    """A URL as it may be printed: without the password."""
    from sqlalchemy.engine import make_url

    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return str(parsed.database)
    return parsed.render_as_string(hide_password=True)
