"""Switchboard and Deal or No Deal as marked text."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.corpora.catalogue import corpus, read_corpus
from palaver.errors import DataError


def test_switchboard(samples: Path) -> None:
    train, valid = read_corpus("switchboard", root=samples)
    assert [(t.speaker, t.text, t.labels["act"]) for t in train.turns] == [
        ("A", "Hello, uh,", "fp"),
        ("A", "do you garden?", "qy"),
        ("B", "Yes, a|b little.", "ny"),
    ]
    assert valid.labels == {"split": "valid", "original_split": "val"}
    reader = corpus("switchboard").read(samples / "switchboard/swda_data", "train", merge_turns=True)
    (merged,) = reader
    assert [t.text for t in merged.turns] == ["Hello, uh, do you garden?", "Yes, a|b little."]
    assert (reader.n_merged, reader.notes) == (1, ("turns joined to the one before, of the same speaker: 1",))


def test_a_negotiation_is_read_once(samples: Path) -> None:
    reader = read_corpus("deal-or-no-deal", root=samples)
    train, valid = reader
    assert [(t.speaker, t.text) for t in train.turns] == [
        ("YOU", "i need the hat : please"),
        ("THEM", "take it"),
    ]
    assert (train.id, valid.id) == ("dnd-train-0", "dnd-val-0")
    assert reader.notes == ("negotiations as the other side saw them, left out: 1",)


@pytest.mark.parametrize(
    ("name", "file", "text", "said"),
    [
        (
            "switchboard",
            "swda_data/train/9001.txt",
            "A|x|sd\nB|no tag\n",
            "line 2: expected speaker|text|act",
        ),
        ("deal-or-no-deal", "src/data/negotiate/train.txt", "<input> 1\n", "line 1: there is no <dialogue>"),
        (
            "deal-or-no-deal",
            "src/data/negotiate/val.txt",
            "<dialogue> ME: x <eos> </dialogue>\n",
            "line 1: expected 'YOU: …' or 'THEM: …'",
        ),
    ],
)
def test_a_broken_line_is_named(name: str, file: str, text: str, said: str, spoilt: Path) -> None:
    (spoilt / name / file).write_text(text)
    with pytest.raises(DataError) as found:
        list(read_corpus(name, root=spoilt))
    assert f"{spoilt / name / file}, {said}" in str(found.value)
