"""The Self-dialogue Corpus as tables of Mechanical Turk."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.corpora.catalogue import read_corpus
from palaver.errors import DataError


def test_assignments_that_count(samples: Path) -> None:
    reader = read_corpus("self-dialogue", root=samples)
    found = {d.id: d for d in reader}
    assert list(found) == ["a1", "a4", "a5"]
    assert [(t.speaker, t.text) for t in found["a1"].turns] == [
        ("A", "Do you bake?"),
        ("B", "Only bread."),
        ("A", "Rye or wheat?"),
        ("B", "Ten, and last."),  # its column stands before that of the second sentence
    ]
    assert [t.text for t in found["a4"].turns] == ["Soup again?", 'With "love".']
    assert found["a5"].labels == {"split": "train", "topic": "sailing"}
    assert set(reader.notes) == {
        "rejected assignments, left out: 1",
        "assignments of blocked workers, left out: 1",
        "assignments that were there already, left out: 1",
        "empty sentences, left out: 2",
    }


def test_without_a_list_of_blocked_workers(spoilt: Path) -> None:
    (spoilt / "self-dialogue/blocked_workers.txt").unlink()
    assert "a3" in {d.id for d in read_corpus("self-dialogue", root=spoilt)}


def test_tables_that_are_none(spoilt: Path) -> None:
    path = spoilt / "self-dialogue/corpus/sailing/batch2.csv"
    path.write_text("Assignment,WorkerId\n1,2\n")
    with pytest.raises(DataError) as found:
        list(read_corpus("self-dialogue", root=spoilt))
    assert str(path) in found.value.message
    assert "there is no column 'AssignmentId' (did you mean 'Assignment'?)" in found.value.problems
    for file in (spoilt / "self-dialogue/corpus").glob("*/*.csv"):
        file.unlink()
    with pytest.raises(DataError, match="holds no tables"):
        list(read_corpus("self-dialogue", root=spoilt))
