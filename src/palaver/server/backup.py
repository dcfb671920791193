"""A whole study in one file, and back: into an empty database of either kind, also the other one.

The file is gzipped JSON lines: a header, then for every table its columns and its rows, and at the end the
number of rows of each, so that a file that was cut short is recognised. All of it is one moment's picture,
taken without stopping anybody.
"""

from __future__ import annotations

import base64
import gzip
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Table, insert, select, text

from palaver import __version__
from palaver.errors import DataError, UserError
from palaver.files import check_readable, check_unpacked, write_atomically
from palaver.server.database import Database
from palaver.server.tables import metadata
from palaver.server.tables import study as study_table

FORMAT = 1
_BATCH = 1000
_LONGEST = 2**30  # bytes of a line: no database holds a longer text
_BYTES = "base64"
"""What is no text stands in an object of this key."""
_HINT = "take another backup, or another copy of this one"


@dataclass(frozen=True, slots=True)
class Backup:
    """What a backup holds."""

    study: str
    taken_at: float
    rows: dict[str, int]


def backup(database: Database, path: Path) -> Backup:
    """Write everything in the database to `path`, whole or not at all."""
    counts: dict[str, int] = {}
    now = time.time()
    with database.settled() as connection, write_atomically(path, "wb") as file:
        packed = path.name.lower().endswith(".gz")  # then `write_atomically` packs
        out: Any = file if packed else gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
        held = connection.execute(select(study_table.c.name, study_table.c.hash)).first()
        if held is None:
            raise UserError("there is nothing to back up: this database holds no study")
        header = {"palaver": "backup", "format": FORMAT, "version": __version__, "taken_at": now}
        _write(out, {**header, "study": held.name, "hash": held.hash})
        for table in metadata.sorted_tables:
            _write(out, {"table": table.name, "columns": [column.name for column in table.columns]})
            counts[table.name] = 0
            for row in connection.execute(select(table).execution_options(yield_per=_BATCH)):
                _write(out, list(row))
                counts[table.name] += 1
        _write(out, {"rows": counts})
        if not packed:
            out.close()
    path.chmod(0o600)  # it holds the key that signs cookies, and who the raters are
    return Backup(held.name, now, counts)


def _write(out: IO[bytes], value: object) -> None:
    out.write(json.dumps(value, ensure_ascii=True, default=_as_base64).encode() + b"\n")


def _as_base64(content: bytes) -> dict[str, str]:
    return {_BYTES: base64.b64encode(content).decode()}


def _value(value: Any) -> Any:
    return base64.b64decode(value[_BYTES]) if isinstance(value, dict) else value


def restore(path: Path, database: Database) -> Backup:
    """Put a backup into an empty database, all of it or nothing."""
    from palaver.server.migrations import migrate

    check_readable(path)
    header = next(_lines(path), None)
    if not isinstance(header, dict) or header.get("palaver") != "backup":
        raise DataError(f"{path} is not a backup of a study", "make one with: palaver study backup")
    if header["format"] > FORMAT:
        raise DataError(f"{path} was made by palaver {header['version']}, which is newer", "update palaver")
    migrate(database)
    with database.writing() as connection:
        held = connection.execute(select(study_table.c.name)).scalar()
        if held is not None:
            raise UserError(
                f"the database holds the study {held!r} already, and nothing is overwritten",
                "restore into a new database, then serve with --database",
            )
        counts = _fill(connection, path)
        if not database.is_sqlite:
            _continue_numbering(connection)
    return Backup(header["study"], header["taken_at"], counts)


def _fill(connection: Connection, path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    said: dict[str, int] | None = None
    table: Table | None = None
    columns: list[str] = []
    batch: list[dict[str, Any]] = []

    def flush() -> None:
        if batch and table is not None:
            connection.execute(insert(table), batch)
            counts[table.name] += len(batch)
            batch.clear()

    lines = _lines(path)
    next(lines)
    for line in lines:
        if isinstance(line, list):
            batch.append(dict(zip(columns, map(_value, line), strict=True)))
            if len(batch) == _BATCH:
                flush()
            continue
        flush()
        if "rows" in line:
            said = line["rows"]
            break
        table, columns = metadata.tables.get(line["table"]), line["columns"]
        known = [column.name for column in table.columns] if table is not None else []
        if table is None or not set(columns) <= set(known):
            raise DataError(f"{path} holds something this version of palaver does not know: {line['table']}")
        counts[table.name] = 0
    if said is None or said != counts:
        raise DataError(f"{path} is cut short", _HINT)
    return counts


def _continue_numbering(connection: Connection) -> None:
    """PostgreSQL counts on its own; rows that came with their numbers did not move its counters."""
    columns = [(t.name, t.autoincrement_column) for t in metadata.sorted_tables]
    counted = [(table, column.name) for table, column in columns if column is not None]
    for table, column in (*counted, ("answer", "number")):
        connection.execute(
            text(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
                f"(SELECT COALESCE(MAX({column}), 0) + 1 FROM {table}), false)"
            )
        )


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as raw:
        if raw.read(2) != b"\x1f\x8b":  # how every gzip file begins
            raise DataError(f"{path} is not a backup of a study", "make one with: palaver study backup")
    try:
        with gzip.open(path, "rb") as file:
            size = 0
            while line := file.readline(_LONGEST):
                size += len(line)
                check_unpacked(size, path)
                yield json.loads(line)
    except (EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise DataError(f"{path} is damaged or cut short: {error}", _HINT) from None
