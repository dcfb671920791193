"""The store of cells: what is kept, what is not, and files that are no store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.evaluation.store import FILE, Step, Store, cell_key, owner_of
from palaver.schema import Rating, Reply


def rating(value: float = 1.0) -> Rating:
    return Rating(item="1", system="a", rater="j", criterion="c", value=value, kind="metric", signature="s")


def test_cells_come_back_as_they_were(tmp_path: Path) -> None:
    replies = {b"a": Reply("Hi\n„ä“", -1.25, 3), b"b": Reply("", skipped="why")}
    with Store(tmp_path) as store:
        store.put_replies(b"o", replies, ["cut"])
        store.put_judgements(b"j", {b"k": [rating(0.1), rating(2)], b"none": []}, ["a note", "a note"])
    with Store(tmp_path) as store:
        assert store.replies([b"a", b"b", b"c"]) == replies
        kept = store.judgements([b"k", b"none", b"other"])
        assert [Rating.model_validate(fields) for fields in kept[b"k"]] == [rating(0.1), rating(2)]
        assert kept[b"none"] == []
        assert b"other" not in kept
        assert store.notes(b"j") == ["a note"]
        assert store.notes(b"o") == ["cut"]
        assert store.count("reply", [b"a", b"c"]) == 1


def test_many_keys_at_once(tmp_path: Path) -> None:
    keys = [number.to_bytes(4, "big") for number in range(3000)]
    with Store(tmp_path) as store:
        store.put_replies(b"o", {key: Reply(str(key)) for key in keys[::2]})
        assert set(store.replies(keys)) == set(keys[::2])


def test_begin_anew(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_replies(b"o", {b"a": Reply("x")})
    with Store(tmp_path, fresh=True) as store:
        assert store.replies([b"a"]) == {}


def test_a_store_of_another_version(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="another version of Palaver: format 99, not 1"):
        Store(tmp_path)
    Store(tmp_path, fresh=True).close()


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run in"):
        Store(tmp_path, read_only=True)
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("CREATE TABLE x (y)")
    with pytest.raises(UserError, match="is no store of an evaluation"):
        Store(tmp_path)
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to be read as one" * 30)
    with pytest.raises(UserError, match="is damaged"):
        Store(tmp_path)


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store._db.execute("PRAGMA max_page_count = 20")
        with pytest.raises(UserError, match=r"full.*cannot|cannot be written.*full"):
            store.put_replies(b"o", {bytes([n]): Reply("x" * 10_000) for n in range(50)})
        assert store.replies([bytes([n]) for n in range(50)]) == {}, "a batch is there or it is not"


def test_steps(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.tell("replies", 4, 10)
        store.tell("ratings", 0, 5)
        store.tell("replies", 7, 10, "gone")
        with Store(tmp_path, read_only=True) as watcher:
            steps = watcher.steps()
        assert [(s.name, s.done, s.total, s.done_before, s.error) for s in steps] == [
            ("replies", 7, 10, 4, "gone"),
            ("ratings", 0, 5, 0, ""),
        ]
        store.begin_steps()
        assert store.steps() == []


def test_time_left_is_by_the_speed_of_this_run() -> None:
    step = Step("x", total=100, done=50, done_before=40, began=0.0, updated=20.0, error="")
    assert step.seconds_left == pytest.approx(100.0)
    assert Step("x", 100, 40, 40, 0.0, 1.0, "").seconds_left is None
    assert Step("x", 100, 100, 40, 0.0, 1.0, "").seconds_left is None


parts = st.recursive(st.text(max_size=4) | st.integers() | st.none(), lambda some: st.lists(some, max_size=3))


@given(parts, parts)
def test_another_owner_has_other_keys(a: object, b: object) -> None:
    assert (owner_of(a) == owner_of(b)) == (a == b)
    assert (cell_key(owner_of(a), b"x") == cell_key(owner_of(b), b"x")) == (a == b)
