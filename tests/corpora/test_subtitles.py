"""Plain text: each pair of consecutive lines is in exactly one dialogue, and the file is never held."""

from __future__ import annotations

import gzip
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.corpora.catalogue import corpus, read_corpus
from palaver.corpora.subtitles import LINES, read_lines
from palaver.errors import DataError
from palaver.readers.shapes import Tally


def pairs_of(lines: list[str]) -> list[tuple[str, str]]:
    """The oracle: neighbours, none of them blank."""
    return [(a, b) for a, b in pairwise(lines) if a and b]


@given(
    runs=st.lists(
        st.sampled_from([1, 2, 3, LINES - 1, LINES, LINES + 1, 2 * LINES - 1, 2 * LINES]), max_size=5
    )
)
@settings(max_examples=50, deadline=None)
def test_no_pair_is_lost_or_doubled(runs: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    lines: list[str] = []
    for number, run in enumerate(runs):
        lines += [f"{number}.{i}" for i in range(run)] + [""] * (number % 2 + 1)
    path = tmp_path_factory.mktemp("lines") / "t.txt"
    path.write_text("\n".join(lines) + "\n")
    found = list(read_lines(path, None, Tally()))
    texts = [[t.text for t in d.turns] for d in found]
    assert [pair for said in texts for pair in pairs_of(said)] == pairs_of(lines)
    assert {t for said in texts for t in said} == {line for line in lines if line}
    assert all(len(said) <= LINES for said in texts)
    assert len({d.id for d in found}) == len(found)
    assert all(a.speaker != b.speaker for d in found for a, b in pairwise(d.turns))


def test_the_line_that_two_dialogues_share_has_one_speaker(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("".join(f"line {i}\n" for i in range(1, 351)))
    found = list(read_lines(path, None, Tally()))
    assert [d.id for d in found] == ["t-1", "t-100", "t-199", "t-298"]
    assert [len(d.turns) for d in found] == [100, 100, 100, 53]
    assert all(a.turns[-1] == b.turns[0] for a, b in pairwise(found))


def test_the_sample_by_name_by_file_and_by_folder(samples: Path, tmp_path: Path) -> None:
    reader = read_corpus("opensubtitles", root=samples)
    found = list(reader)
    assert [[t.text for t in d.turns] for d in found] == [
        ["Where did you put the map?", "I gave it to the driver.", "What driver?", "Exactly."],
        ["Ten years later.", "Still no map."],
    ]
    assert found[1].labels == {"line": 6}
    assert reader.notes == ("blank lines, which end a dialogue: 1",)
    packed = tmp_path / "opensubtitles" / "b.txt.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((samples / "opensubtitles/en.txt").read_bytes()))
    (packed.parent / "a.en").write_text("Alone.\n")
    ids = [d.id for d in corpus("opensubtitles").read(packed.parent)]
    assert ids == ["a.en-1", "b-1", "b-6"]
    assert [d.turns for d in corpus("opensubtitles").read(packed)] == [d.turns for d in found]


def test_a_folder_without_text(tmp_path: Path) -> None:
    (tmp_path / "opensubtitles").mkdir()
    with pytest.raises(DataError, match="holds no text file"):
        list(read_corpus("opensubtitles", root=tmp_path))


def test_a_big_file_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "en.txt.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        for i in range(60_000):
            file.write(f"This is line number {i}, and it goes on{' and on' * 80}.\n")
    tracemalloc.start()
    count = sum(len(d.turns) - 1 for d in corpus("opensubtitles").read(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 59_999
    assert peak < 24 << 20  # 36 MB unpacked; the blocks in which a file is read are 4 MB
