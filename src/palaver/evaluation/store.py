"""The cells of an evaluation, each under the digest of all that it depends on: one SQLite file in its folder.

A reply is one cell, and so is what one judge says about one response. A cell is kept once it was made, in one
transaction with its batch, and never changed; what failed is not kept. So a run that was killed has lost at
most the batch in its hands, and a changed experiment asks only for cells that are not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palaver.errors import UserError
from palaver.schema import Rating, Reply

FILE = "cells.db"
VERSION = 1
_APPLICATION = 0x50414C56
"""Tells our files from other SQLite files."""
_AT_ONCE = 500
"""Keys in one question to SQLite."""
_TABLES = """
CREATE TABLE reply (
    key BLOB PRIMARY KEY, text TEXT, logprob REAL, n_tokens INTEGER, skipped TEXT
) WITHOUT ROWID;
CREATE TABLE judgement (key BLOB PRIMARY KEY, ratings TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE note (owner BLOB, text TEXT, PRIMARY KEY (owner, text)) WITHOUT ROWID;
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE step (
    name TEXT PRIMARY KEY, total INTEGER NOT NULL, done INTEGER NOT NULL, done_before INTEGER NOT NULL,
    began REAL NOT NULL, updated REAL NOT NULL, error TEXT NOT NULL DEFAULT ''
);
"""


def cell_key(owner: bytes, content: bytes) -> bytes:
    """The key of a cell: `owner` is the digest of a system's settings or a judge's signature."""
    return hashlib.blake2b(content, digest_size=16, key=owner).digest()


def owner_of(*parts: Any) -> bytes:
    """A digest of settings or signatures, to be the owner of cells."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Step:
    """How far one part of a run is. `done_before` were there when it began."""

    name: str
    total: int
    done: int
    done_before: int
    began: float
    updated: float
    error: str

    @property
    def seconds_left(self) -> float | None:
        """By the speed so far; None while nothing is known."""
        made = self.done - self.done_before
        if made <= 0 or self.done >= self.total:
            return None
        return (self.updated - self.began) / made * (self.total - self.done)


class Store:
    """The cells in a folder. `fresh` begins anew; `read_only` looks at one that another process fills."""

    def __init__(self, folder: Path, *, fresh: bool = False, read_only: bool = False) -> None:
        self.path = folder / FILE
        if fresh:
            for ending in ("", "-wal", "-shm"):
                self.path.with_name(FILE + ending).unlink(missing_ok=True)
        is_new = not self.path.exists()
        if read_only and is_new:
            raise UserError(f"there is no run in {folder}", "start it: palaver evaluate experiment.toml")
        with self._told():
            if read_only:
                self._db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True, timeout=10)
            else:
                self._db = sqlite3.connect(self.path, timeout=10)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing with WAL
        try:
            with self._told():
                empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                if empty and not read_only:
                    self._create()
            self._check_version()
        except UserError:
            self._db.close()
            raise

    def _create(self) -> None:
        marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION};"
        self._db.executescript(f"BEGIN; {_TABLES} {marks} COMMIT;")

    def _check_version(self) -> None:
        with self._told():
            application = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            raise UserError(f"{self.path} is no store of an evaluation", "choose another folder with --out")
        if version != VERSION:
            raise UserError(
                f"{self.path} was written by another version of Palaver: format {version}, not {VERSION}",
                "choose another folder with --out, or add --force to ask for every reply again",
            )

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite complains about, as an error that a user can mend."""
        try:
            yield
        except sqlite3.OperationalError as error:
            hint = "is the disk full? what was made so far is kept; the same command goes on"
            raise UserError(f"{self.path} cannot be written: {error}", hint) from None
        except sqlite3.DatabaseError as error:
            hint = "choose another folder with --out, or add --force to begin anew"
            raise UserError(f"{self.path} is damaged: {error}", hint) from None

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # Cells -----------------------------------------------------------------------------------------------

    def replies(self, keys: Sequence[bytes]) -> dict[bytes, Reply]:
        """Those of the replies that are there."""
        return {key: Reply(*fields) for key, *fields in self._rows("reply", keys)}

    def put_replies(self, owner: bytes, replies: Mapping[bytes, Reply], notes: Iterable[str] = ()) -> None:
        """What a system said, and what is to be known about it; `owner` is the system's digest."""
        rows = [(key, r.text, r.logprob, r.n_tokens, r.skipped) for key, r in replies.items()]
        with self._told(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?, ?)", rows)
            self._put_notes(owner, notes)

    def judgements(self, keys: Sequence[bytes]) -> dict[bytes, list[dict[str, Any]]]:
        """Those of the judgements that are there, each a list of ratings (fields of `Rating`)."""
        return {key: json.loads(ratings) for key, ratings in self._rows("judgement", keys)}

    def put_judgements(
        self, owner: bytes, judgements: Mapping[bytes, Sequence[Rating]], notes: Iterable[str] = ()
    ) -> None:
        """What a judge said, and what is to be known about it; `owner` is the judge's digest."""
        rows = []
        for key, ratings in judgements.items():
            fields = [rating.model_dump(mode="json", exclude_defaults=True) for rating in ratings]
            rows.append((key, json.dumps(fields, ensure_ascii=False)))
        with self._told(), self._db:
            self._db.executemany("INSERT OR REPLACE INTO judgement VALUES (?, ?)", rows)
            self._put_notes(owner, notes)

    def _put_notes(self, owner: bytes, notes: Iterable[str]) -> None:
        told = [(owner, note) for note in notes]
        self._db.executemany("INSERT OR IGNORE INTO note VALUES (?, ?)", told)

    def notes(self, owner: bytes) -> list[str]:
        """What is to be known about the cells of a system or a judge, in a fixed order."""
        query = "SELECT text FROM note WHERE owner = ? ORDER BY text"
        with self._told():
            rows = self._db.execute(query, (owner,)).fetchall()
        return [text for (text,) in rows]

    def count(self, table: str, keys: Sequence[bytes]) -> int:
        """How many of the cells are there."""
        return sum(1 for _ in self._rows(table, keys, "key"))

    def _rows(self, table: str, keys: Sequence[bytes], columns: str = "*") -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._told():
                query = f"SELECT {columns} FROM {table} WHERE key IN ({marks})"
                rows = self._db.execute(query, some).fetchall()
            yield from rows

    def _put(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._told(), self._db:
            self._db.executemany(statement, rows)

    # Facts and steps -------------------------------------------------------------------------------------

    def fact(self, name: str) -> str | None:
        """A small thing to remember from one run to the next."""
        with self._told():
            row = self._db.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        self._put("INSERT OR REPLACE INTO fact VALUES (?, ?)", [(name, value)])

    def begin_steps(self) -> None:
        """Forget how far an earlier run was."""
        self._put("DELETE FROM step WHERE ?", [(1,)])

    def tell(self, name: str, done: int, total: int, error: str = "") -> None:
        """How far a step is, for those who watch."""
        now = time.time()
        self._put(
            "INSERT INTO step VALUES (?1, ?2, ?3, ?3, ?4, ?4, ?5) ON CONFLICT (name) DO UPDATE SET "
            "total = ?2, done = ?3, updated = ?4, error = ?5",
            [(name, total, done, now, error)],
        )

    def steps(self) -> list[Step]:
        """The steps of the latest run, in the order in which they began."""
        with self._told():
            rows = self._db.execute(
                "SELECT name, total, done, done_before, began, updated, error FROM step ORDER BY began, rowid"
            ).fetchall()
        return [Step(*row) for row in rows]
