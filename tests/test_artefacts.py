"""Files and folders with their records: what differs is named, and work goes on only where nothing does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import artefacts
from palaver.artefacts import (
    can_go_on,
    compare_records,
    digest,
    digest_files,
    flatten,
    lock_file,
    lock_folder,
    make_record,
    open_artefact,
    read_fields,
    read_record,
    record_path,
    write_artefact,
    write_record,
)
from palaver.errors import DataError, UserError

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("abc .é", max_size=4),
)
KEYS = st.text('ab."[]é', min_size=1, max_size=3)
SETTINGS = st.dictionaries(
    KEYS,
    st.recursive(SCALARS, lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3), max_leaves=6),
    max_size=4,
)


def leaves(settings: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The oracle: every plain value by the keys that lead to it."""
    if not isinstance(settings, dict):
        return {path: settings}
    return {
        place: leaf for key, inner in settings.items() for place, leaf in leaves(inner, (*path, key)).items()
    }


@given(SETTINGS)
def test_flattening_loses_nothing(settings: dict[str, Any]) -> None:
    assert sorted(map(repr, flatten(settings).values())) == sorted(map(repr, leaves(settings).values()))


def test_what_flattened_settings_look_like() -> None:
    settings = {
        "a": {"b": 1, "c.d": 2},
        "list": [1, "x"],
        "rows": [{"k": None}, {}],
        "none": {},
        "inf": float("inf"),
    }
    assert flatten(settings) == {
        "a.b": 1,
        'a."c.d"': 2,
        "list": '[1, "x"]',
        "rows[0].k": None,
        "rows[1]": "{}",
        "none": "{}",
        "inf": "Infinity",
    }
    assert flatten({}) == {}


@given(SETTINGS, SETTINGS)
def test_every_difference_is_named(before: dict[str, Any], now: dict[str, Any]) -> None:
    old, new = leaves(before), leaves(now)
    n_different = sum(
        place not in old
        or place not in new
        or old[place] != new[place]
        or isinstance(old[place], bool) != isinstance(new[place], bool)
        for place in {*old, *new}
    )
    differences = compare_records(make_record("a", before), make_record("b", now))
    assert len(differences) == len(set(differences)) == n_different


def test_differences_in_words() -> None:
    before = make_record("x", {"decoding": {"top_p": 0.9, "k": 5}, "gone": "y"}, seed=0, data={"a": "1"})
    now = make_record("x", {"decoding": {"top_p": 0.8, "k": 5.0}, "new": [1]}, seed=1, data={"a": "2"})
    assert compare_records(before, now) == [
        "decoding.top_p: was 0.9, is 0.8",
        'gone: was "y", is nothing',
        "seed: was 0, is 1",
        "new: was nothing, is [1]",
        "a: its content has changed",
    ]
    assert compare_records(before, now, free=("decoding.*", "gone", "new", "seed")) == [
        "a: its content has changed"
    ]


def test_files_may_lie_elsewhere_but_not_change_their_parts() -> None:
    def of(**data: str) -> Any:
        return make_record("x", {}, data=data)

    assert compare_records(of(a="1", b="2"), of(c="1", d="2")) == []
    assert compare_records(of(a="1", b="1"), of(c="1")) == ["b: was read before and is not now"]
    assert compare_records(of(a="1"), of(c="1", d="1")) == ["d: was not read before"]
    swapped = compare_records(of(train="1", test="2"), of(train="2", test="1"))
    assert swapped == ["train: its content has changed", "test: its content has changed"]


@given(st.lists(st.one_of(SETTINGS, SCALARS), max_size=3), st.lists(st.one_of(SETTINGS, SCALARS), max_size=3))
def test_equal_digests_are_of_equal_values(a: list[Any], b: list[Any]) -> None:
    if a != b:
        assert digest(a, 0) != digest(b, 0)
    assert digest(a, 0) == digest(json.loads(json.dumps(a)), 0)


def test_digests() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest("ab", "c") != digest("a", "bc")
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"abc") == "ba7816bf8f01cfea"  # SHA-256, as published
    assert digest(Path("a")) == digest("a")
    with pytest.raises(TypeError, match="found object"):
        digest(object())


def test_digests_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "_WHOLE", 64)
    paths = [tmp_path / "a", tmp_path / "b"]
    content = bytes(range(100))
    for path in paths:
        path.write_bytes(content)
    first = digest_files(paths)
    assert digest_files(reversed(paths)) == first
    assert digest_files(paths[:1]) != first
    for place in (0, 99):  # both ends of a long file count
        paths[1].write_bytes(content[:place] + b"!" + content[place + 1 :])
        assert digest_files(paths) != first
    with pytest.raises(DataError, match="cannot be read"):
        digest_files([tmp_path / "c"])


RECORD = make_record("test", {"a": 1}, seed=0, data={"in": "00"})
OTHER = make_record("test", {"a": 2}, seed=1, data={"in": "11"})


def test_a_file_goes_on_with_the_same_record(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "out.jsonl"
    for round_ in range(3):
        with open_artefact(path, RECORD) as file:
            assert file.read() == b"row\n" * round_
            file.write(b"row\n")
    assert read_record(path) == RECORD
    with pytest.raises(UserError, match="begun with other settings") as caught, open_artefact(path, OTHER):
        pass
    assert caught.value.problems == ("a: was 1, is 2", "seed: was 0, is 1", "in: its content has changed")
    assert "--force" in caught.value.hint
    assert path.read_bytes() == b"row\n" * 3
    with open_artefact(path, OTHER, force=True) as file:
        assert file.read() == b""
    assert read_record(path) == OTHER
    with open_artefact(path, RECORD):  # an empty file is not begun
        pass
    assert read_record(path) == RECORD


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("precious\n")
    with pytest.raises(UserError, match=r"out.jsonl.json, which would say how it was made, is not"):
        can_go_on(path, RECORD)
    for text in ("{", "[]", "{}", '{"command": 1}', "[" * 100_000):
        record_path(path).write_text(text)
        with pytest.raises(DataError, match=r"out.jsonl.json is damaged"):
            can_go_on(path, RECORD)
    assert path.read_text() == "precious\n"
    with pytest.raises(UserError, match="it is no file"), open_artefact(tmp_path, RECORD):
        pass
    with pytest.raises(UserError, match="is a file, not a folder"), open_artefact(path / "below", RECORD):
        pass


def test_a_folder_is_done_when_its_record_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    assert not can_go_on(folder, RECORD)
    folder.mkdir()
    (folder / "arrays").write_text("half of it")
    assert not can_go_on(folder, RECORD)
    write_record(folder, RECORD, seconds=1.5)
    assert can_go_on(folder, RECORD)
    assert not can_go_on(folder, RECORD, force=True)
    assert (read_fields(folder)["seconds"], record_path(folder)) == (1.5, folder / "run.json")
    with pytest.raises(UserError, match="was begun with other settings"):
        can_go_on(folder, OTHER)
    assert can_go_on(folder, OTHER.model_copy(update={"data": RECORD.data}), free=("a", "seed"))


def test_a_record_never_stands_beside_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with write_artefact(path, RECORD) as file:
        file.write(b"old")
    assert can_go_on(path, RECORD)
    with pytest.raises(KeyboardInterrupt), write_artefact(path, OTHER) as file:
        file.write(b"ne")
        raise KeyboardInterrupt
    assert not can_go_on(path, OTHER)
    assert not can_go_on(path, RECORD)


@pytest.mark.skipif(os.name == "nt", reason="needs locks of Unix")
def test_locks_exclude(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with open_artefact(path, RECORD) as file:
        file.write(b"row\n")
        file.flush()
        for force in (False, True):
            with pytest.raises(UserError, match="another run"), open_artefact(path, RECORD, force=force):
                pass
        assert path.read_bytes() == b"row\n"
        with open(path) as other:
            assert not lock_file(other)
    with open(path) as other:
        assert lock_file(other, wait=True)
    run = tmp_path / "run"
    with lock_folder(run), pytest.raises(UserError, match="another process"), lock_folder(run):
        pass
    assert not (tmp_path / "run").exists()  # nothing came of it
    with lock_folder(tmp_path / "run"):
        (tmp_path / "run" / "x").touch()
    assert (tmp_path / "run" / "x").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from palaver.artefacts import make_record, open_artefact
with open_artefact(Path(sys.argv[1]), make_record("test", {"a": 1}, seed=0, data={"in": "00"})) as file:
    for number in range(3):
        file.write(b"row\\n")
        file.flush()
    file.write(b"lost")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs kill -9")
def test_a_killed_writer_leaves_the_record_and_whole_rows(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == -signal.SIGKILL
    with open_artefact(path, RECORD) as file:
        assert file.read() == b"row\n" * 3
    with pytest.raises(UserError, match="other settings"):
        can_go_on(path, OTHER)
