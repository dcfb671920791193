"""Vectors on disk: each text encoded once, whatever interrupts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.models.encoders import Encoder
from palaver.probes import vectors
from palaver.probes.vectors import Store, encode_texts, text_hash


class Counting:
    """Gives (length, first letter) and remembers what it was asked."""

    def __init__(self, fail_after: int = 10**9) -> None:
        self.asked: list[str] = []
        self.fail_after = fail_after

    def __call__(self, texts: list[str]) -> Any:
        if len(self.asked) + len(texts) > self.fail_after:
            raise RuntimeError("stopped")
        self.asked += texts
        return [[len(t), ord(t[0]) if t else 0] for t in texts]


def encoder(function: Any, signature: str = "abc") -> Encoder:
    return Encoder("E", signature, "a test", function)


def test_each_distinct_text_is_encoded_once(tmp_path: Path) -> None:
    count = Counting()
    texts = ["a", "bb", "a", "", "bb"]
    first = encode_texts(encoder(count), texts, folder=tmp_path)
    assert sorted(count.asked) == ["", "a", "bb"]
    assert first.n_new == 3
    again = encode_texts(encoder(count), ["bb", "ccc"], folder=tmp_path)
    assert sorted(count.asked) == ["", "a", "bb", "ccc"]
    assert again.n_new == 1
    assert again.vectors["bb"].tolist() == [2, ord("b")]


def test_another_signature_and_no_folder_keep_apart(tmp_path: Path) -> None:
    count = Counting()
    for folder, signature in ((tmp_path, "one"), (tmp_path, "two"), (None, "one"), (tmp_path, "")):
        encode_texts(encoder(count, signature), ["a"], folder=folder)
    assert count.asked == ["a"] * 4
    assert len(list(tmp_path.iterdir())) == 2


def test_what_was_done_before_a_stop_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_CHUNK", 10)
    texts = [f"text {n}" for n in range(35)]
    first = Counting(fail_after=25)
    with pytest.raises(RuntimeError):
        encode_texts(encoder(first), texts, folder=tmp_path)
    second = Counting()
    found = encode_texts(encoder(second), texts, folder=tmp_path)
    assert len(first.asked) == 20
    assert len(second.asked) == 15
    assert len(found.vectors) == 35


@settings(max_examples=50, deadline=None)
@given(cut=st.integers(0, 400), flip=st.integers(-1, 399))
def test_a_damaged_end_is_cut_off_and_made_again(cut: int, flip: int, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("v")
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    encode_texts(encoder(Counting()), texts, folder=folder)
    (path,) = folder.iterdir()
    data = bytearray(path.read_bytes())[:cut] if cut else bytearray(path.read_bytes())
    head = path.read_bytes().index(b"\n") + 1
    if head <= flip < len(data):
        data[flip] ^= 255
    path.write_bytes(bytes(data))
    found = encode_texts(encoder(Counting()), texts, folder=folder)
    for text in texts:
        assert found.vectors[text].tolist() == [len(text), ord(text[0])]
    count = Counting()
    encode_texts(encoder(count), texts, folder=folder)
    assert count.asked == []


def test_other_sizes_and_other_files_are_refused(tmp_path: Path) -> None:
    encode_texts(encoder(Counting()), ["a"], folder=tmp_path)
    with pytest.raises(UserError, match="before it gave 2"):
        encode_texts(encoder(lambda texts: np.ones((len(texts), 3))), ["b"], folder=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text("something else\n")
    with pytest.raises(DataError, match="not a file of vectors"):
        encode_texts(encoder(Counting()), ["a"], folder=tmp_path)


def test_half_written_chunks_of_two_processes_do_not_mix(tmp_path: Path) -> None:
    one, two = Store(tmp_path, encoder(None)), Store(tmp_path, encoder(None))
    one.append([text_hash("a")], np.ones((1, 2), np.float32))
    two.append([text_hash("b")], np.zeros((1, 2), np.float32))
    one.append([text_hash("c")], np.ones((1, 2), np.float32))
    assert len(one.read()) == 3


def test_odd_texts_have_a_hash() -> None:
    assert len({text_hash(t) for t in ("", " ", "\ud800", "é", "e\u0301")}) == 5


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cache=None"):
        encode_texts(encoder(Counting()), ["a"], folder=tmp_path / "file" / "in")
