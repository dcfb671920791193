"""Tokenised examples on disk: what is in them, that they come whole or not at all, in flat memory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.errors import DataError, UserError
from palaver.text.vocabulary import EOS, SEP, Vocabulary
from palaver.text.words import count_words
from palaver.training import store as store_module
from palaver.training.examples import Episode, episodes, read_source
from palaver.training.experiment import Data, Source
from palaver.training.sample import sample_dialogues
from palaver.training.store import CUT_CONTEXT, CUT_RESPONSE, Limits, Store, write_store


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    texts = [turn.text for dialogue in sample_dialogues(50) for turn in dialogue.turns]
    return Vocabulary.train(texts, kind="bpe", size=320)


@pytest.mark.parametrize("history", [0, 1, 2])
@pytest.mark.parametrize("block", [1, 7, 10_000])
def test_what_is_stored_is_what_was_said(
    vocabulary: Vocabulary, tmp_path: Path, history: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_BLOCK", block)
    dialogues = list(sample_dialogues(12))
    limits = Limits(context=30, response=20, knowledge=5)
    data = Data(history_turns=history)
    ids = {"Ada": 0, "Cleo": 1}

    def select(some):  # type: ignore[no-untyped-def]
        return ((d, [turn.text[::-1] for turn in d.turns]) for d in some)

    found = write_store(tmp_path / "s", episodes(dialogues, data, ids=ids, select=select), vocabulary, limits)
    row = n_cut = 0
    for dialogue in dialogues:
        for i, turn in enumerate(dialogue.turns):
            if i == 0 or turn.speaker not in ids:
                continue
            context: list[int] = []
            for before in dialogue.turns[max(0, i - history) if history else 0 : i]:
                context += [*vocabulary.encode(before.text), SEP]
            full = vocabulary.encode(turn.text)
            response = [*full, EOS]
            assert list(found.context[row]) == context[:-1][-30:]
            assert list(found.response[row]) == response[:20]
            assert list(found.knowledge[row]) == vocabulary.encode(turn.text[::-1])[:5]
            assert found.speaker[row] == ids[turn.speaker]
            cut = len(response) > 20
            n_cut += cut
            words = count_words(vocabulary.decode(full[:20])) if cut else count_words(turn.text) + 1
            assert found.n_words[row] == words
            row += 1
    assert row == len(found)
    assert found.cut[CUT_RESPONSE] == n_cut > 0
    if history == 0:
        assert found.cut[CUT_CONTEXT] > 0


def test_windows_follow_each_other(vocabulary: Vocabulary, tmp_path: Path) -> None:
    dialogues = list(sample_dialogues(3))
    found = write_store(tmp_path / "s", episodes(dialogues, Data()), vocabulary, Limits(8, 8, 0), window=8)
    row = 0
    for dialogue in dialogues:
        stream: list[int] = []
        for turn in dialogue.turns:
            stream += [*vocabulary.encode(turn.text), SEP]
        stream[-1] = EOS
        for start in range(8, len(stream), 8):
            assert list(found.context[row]) == stream[start - 8 : start]
            assert list(found.response[row]) == stream[start : start + 8]
            assert found.n_words[row] >= 1
            row += 1
    assert row == len(found)


def test_a_word_vocabulary_counts_its_tokens(tmp_path: Path) -> None:
    texts = ["one two three four five six", "seven, eight, nine"]
    vocabulary = Vocabulary.train(texts[:1], kind="word", size=9)
    found = write_store(
        tmp_path / "s", iter([Episode(texts, [1], [0], [-1], [""])]), vocabulary, Limits(9, 3, 0)
    )
    assert len(found.response[0]) == 3  # two unknown words and a comma
    assert found.n_words[0] == 3


def test_only_so_many(vocabulary: Vocabulary, tmp_path: Path) -> None:
    found = write_store(
        tmp_path / "s", episodes(sample_dialogues(20), Data()), vocabulary, Limits(8, 8, 0), max_examples=13
    )
    assert len(found) == 13


def test_nothing_is_left_of_a_preparation_that_fails(vocabulary: Vocabulary, tmp_path: Path) -> None:
    def broken() -> Iterator[Episode]:
        yield from episodes(sample_dialogues(5), Data())
        raise KeyError("the corpus ends here")

    with pytest.raises(KeyError):
        write_store(tmp_path / "s", broken(), vocabulary, Limits(8, 8, 0))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="no examples"):
        write_store(tmp_path / "s", iter([Episode(["alone"])]), vocabulary, Limits(8, 8, 0))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_preparation_left_is_cleared_away(vocabulary: Vocabulary, tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    leftovers = [tmp_path / f".part-{platform.node()}-{pid}-abc" for pid in (dead.pid, os.getpid())]
    for folder in leftovers:
        folder.mkdir()
    write_store(tmp_path / "s", episodes(sample_dialogues(5), Data()), vocabulary, Limits(8, 8, 0))
    assert [folder.exists() for folder in leftovers] == [False, True]  # the other may be at work


def test_full_disk_while_preparing(
    vocabulary: Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        write_store(tmp_path / "s", episodes(sample_dialogues(5), Data()), vocabulary, Limits(8, 8, 0))
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_is_named(vocabulary: Vocabulary, tmp_path: Path) -> None:
    write_store(tmp_path / "s", episodes(sample_dialogues(5), Data()), vocabulary, Limits(8, 8, 0))
    values = tmp_path / "s" / "response.values"
    values.write_bytes(values.read_bytes()[:-2])
    with pytest.raises(DataError, match="damaged"):
        Store(tmp_path / "s")
    with pytest.raises(DataError, match="no prepared examples"):
        Store(tmp_path / "nothing")


class Letters:
    """A vocabulary without a library behind it, so that all memory is seen."""

    signature = "letters"
    kind = "bpe"

    def __len__(self) -> int:
        return 300

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [[5 + ord(c) % 200 for c in text] for text in texts]

    def decode(self, ids: list[int]) -> str:
        return "x" * len(ids)


def test_memory_stays_flat_however_long_the_subtitles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_BLOCK", 2000)
    peaks = []
    for n_lines in (8_000, 32_000):
        path = tmp_path / f"opensubtitles-{n_lines}.txt"
        path.write_text("".join(f"This is line {i} of a film.\n" for i in range(n_lines)))
        source, data = Source(corpus="opensubtitles", root=path), Data(history_turns=1)
        tracemalloc.start()
        found = write_store(
            tmp_path / f"store-{n_lines}",
            episodes(read_source(source, data), data),
            Letters(),  # type: ignore[arg-type]
            Limits(50, 50, 0),
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(found) == n_lines - 1  # every two consecutive lines, none lost, none twice
    assert peaks[1] < 1.3 * peaks[0]
