"""Backup, restore, equal export: on both databases, from one to the other, while the study is in use."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sham
from sqlalchemy import select

from palaver.errors import DataError, UserError
from palaver.schema import Study
from palaver.server.backup import backup, restore
from palaver.server.database import Database
from palaver.server.export import Selection, rater_lines, stream
from palaver.server.migrations import migrate
from palaver.server.oversight import decide, status
from palaver.server.study_state import StudyState
from palaver.server.tables import metadata

MakeStudy = Callable[..., Study]


def export_of(database: Database) -> tuple[bytes, list[bytes]]:
    answers = b"".join(stream(database, "jsonl", Selection(all_screens=True)))
    return answers, list(rater_lines(database))


def contents(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.reading() as connection:
        return {
            t.name: sorted((tuple(row) for row in connection.execute(select(t))), key=repr)
            for t in metadata.sorted_tables
        }


@pytest.fixture
def used(database: Database, make_study: MakeStudy) -> StudyState:
    """A study in the middle of things: answers, an open screen, an excluded rater, a comment."""
    study_state = StudyState.create(database, make_study(n_items=4, comments=True), "# the file\n")
    rng = random.Random(5)
    first, second, third = (sham.come_in(study_state) for _ in range(3))
    sham.work(study_state, first, rng)
    sham.work(study_state, second, rng, screens=2)
    task = study_state.visit(third).task
    assert task is not None
    study_state.submit(third, task.assignment, sham.answers_to(task, rng)[:1], 'half of it – 😀\n"x"')
    decide(database, second, "exclude")
    return study_state


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    else:
        database = Database(request.getfixturevalue("postgres").new())
    try:
        yield database
    finally:
        database.close()


@pytest.mark.parametrize("name", ["b.gz", "b.backup"])
def test_all_comes_back(used: StudyState, empty: Database, tmp_path: Path, name: str) -> None:
    taken = backup(used.database, tmp_path / name)
    put = restore(tmp_path / name, empty)
    assert taken.rows == put.rows
    assert put.rows["answer"] > 5
    assert contents(used.database) == contents(empty)
    assert export_of(used.database) == export_of(empty)
    assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_a_restored_study_goes_on(used: StudyState, empty: Database, tmp_path: Path) -> None:
    """Also new numbers: PostgreSQL's counters know about the rows that came with theirs."""
    backup(used.database, tmp_path / "b.gz")
    restore(tmp_path / "b.gz", empty)
    study_state = StudyState(empty)
    assert (study_state.secret, study_state.source, study_state.hash) == (used.secret, used.source, used.hash)
    rng = random.Random(9)
    for _ in range(4):
        sham.work(study_state, sham.come_in(study_state), rng)
    now = status(empty)
    assert now.done + now.open == now.target


def test_while_in_use(database: Database, make_study: MakeStudy, tmp_path: Path) -> None:
    """Whatever is committed meanwhile, the backup is one moment's picture: every answer's screen is in it."""
    study_state = StudyState.create(database, make_study(n_items=60, raters_per_item=9), "")
    stop = threading.Event()

    def rate() -> None:
        rng = random.Random(threading.get_ident())
        while not stop.is_set():
            me = sham.come_in(study_state)
            sham.work(study_state, me, rng, screens=3)

    workers = [threading.Thread(target=rate) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        saved = [backup(database, tmp_path / f"{n}.gz") for n in range(4)]
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    for n, taken in enumerate(saved):
        copy = Database(f"sqlite:///{tmp_path / f'{n}.db'}")
        try:
            assert restore(tmp_path / f"{n}.gz", copy).rows == taken.rows
            with copy.reading() as connection:
                assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
                numbers = connection.exec_driver_sql("SELECT number FROM answer ORDER BY 1").scalars().all()
                assert list(numbers) == list(range(1, len(numbers) + 1))
        finally:
            copy.close()


def test_nothing_is_overwritten(used: StudyState, tmp_path: Path) -> None:
    backup(used.database, tmp_path / "b.gz")
    before = contents(used.database)
    with pytest.raises(UserError, match="holds the study 'small' already"):
        restore(tmp_path / "b.gz", used.database)
    assert contents(used.database) == before


def test_a_database_without_a_study_has_no_backup(sqlite: Database, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to back up"):
        backup(sqlite, tmp_path / "b.gz")
    assert list(tmp_path.glob("*.gz")) == []


@pytest.fixture
def saved(sqlite: Database, make_study: MakeStudy, tmp_path: Path) -> Path:
    study_state = StudyState.create(sqlite, make_study(), "")
    sham.work(study_state, sham.come_in(study_state), random.Random(1))
    backup(sqlite, tmp_path / "b.gz")
    return tmp_path / "b.gz"


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    return data[:-20] + bytes([data[-20] ^ 255]) + data[-19:]


def shorter(data: bytes) -> bytes:
    return gzip.compress(b"".join(gzip.decompress(data).splitlines(keepends=True)[:-3]))


def without_a_row(data: bytes) -> bytes:
    lines = gzip.decompress(data).splitlines(keepends=True)
    return gzip.compress(b"".join([*lines[:-2], lines[-1]]))


def newer(data: bytes) -> bytes:
    return gzip.compress(gzip.decompress(data).replace(b'"format": 1', b'"format": 99', 1))


def unknown(data: bytes) -> bytes:
    return gzip.compress(gzip.decompress(data).replace(b'"external"', b'"eternal"', 1))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (cut, "damaged or cut short"),
        (flip, "damaged or cut short"),
        (shorter, "cut short"),
        (without_a_row, "cut short"),
        (newer, "newer"),
        (unknown, "does not know: rater"),
        (lambda data: b"PK nonsense", "not a backup"),
        (lambda data: gzip.compress(b"{}\n"), "not a backup"),
        (lambda data: gzip.compress(b""), "not a backup"),
        (lambda data: b"", "is empty"),
    ],
)
def test_spoilt_files_leave_the_database_empty(
    saved: Path, tmp_path: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    bad = tmp_path / "bad.gz"
    bad.write_bytes(spoil(saved.read_bytes()))
    target = Database(f"sqlite:///{tmp_path / 'target.db'}")
    try:
        with pytest.raises(DataError, match=said):
            restore(bad, target)
        migrate(target)
        assert not any(contents(target).values())
    finally:
        target.close()


def test_a_file_that_would_fill_the_disk(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("palaver.files.MOST_UNPACKED", 500)
    target = Database(f"sqlite:///{tmp_path / 'target.db'}")
    try:
        with pytest.raises(DataError, match="when unpacked"):
            restore(saved, target)
    finally:
        target.close()
