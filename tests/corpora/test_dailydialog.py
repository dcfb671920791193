"""DailyDialog as its authors pack it."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.corpora.catalogue import corpus, read_corpus
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn


def test_the_splits(samples: Path) -> None:
    reader = read_corpus("dailydialog", root=samples)
    train, valid, test = reader
    labels = [("question", "no emotion"), ("inform", "no emotion"), ("directive", "surprise")]
    said = ["Is the bakery open ?", "Until six .", "Then run !"]
    assert train == Dialogue(
        id="dailydialog-train-0",
        turns=tuple(
            Turn(speaker=("user", "system")[i % 2], text=text, labels={"act": act, "emotion": emotion})
            for i, (text, (act, emotion)) in enumerate(zip(said, labels, strict=True))
        ),
        source="dailydialog",
        labels={"split": "train"},
    )
    assert valid.labels == {"split": "valid", "original_split": "validation"}
    assert test.turns[0].labels == {"emotion": "no emotion"}
    assert reader.notes == ("dialogues with another number of act labels than of turns, left without: 1",)
    assert [d.id for d in read_corpus("dailydialog", root=samples, split="dev")] == [
        "dailydialog-validation-0"
    ]


def test_the_whole_with_its_topics(samples: Path) -> None:
    path = samples / "dailydialog/dialogues_text.txt"
    found = list(corpus("dailydialog").read(path))
    assert [d.labels["topic"] for d in found] == ["Ordinary Life", "Relationship", "Ordinary Life"]
    assert [t.labels["act"] for t in found[2].turns] == ["question", "commissive"]
    with pytest.raises(DataError, match="no dialogue of split 'train'"):
        list(corpus("dailydialog").read(path, "train"))


def test_text_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "dialogues_text.txt"
    path.write_text("Hello . __eou__ __eou__ Bye . __eou__\n")
    reader = corpus("dailydialog").read(path)
    (only,) = reader
    assert [(t.speaker, t.text) for t in only.turns] == [("user", "Hello ."), ("system", "Bye .")]
    assert reader.notes == ("utterances without a text, left out: 1",)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("dialogues_text.txt", "Fine . __eou__\nNo end\n", "dialogues_text.txt, line 2: expected utterances"),
        ("dialogues_act.txt", "2 1 3\n1 1\n", "dialogues_text.txt: the files beside it have another number"),
        ("dialogues_act.txt", "2 1 3\n1 x\n2 4\n", "dialogues_act.txt, line 2: expected numbers"),
        ("dialogues_act.txt", "2 1 9\n1 1\n2 4\n", "line 1: 9 is none of the labels"),
        ("dialogues_topic.txt", "1\n\n1\n", "line 2: 0 is none of the labels"),
    ],
)
def test_broken_lines(name: str, text: str, said: str, spoilt: Path) -> None:
    (spoilt / "dailydialog" / name).write_text(text)
    with pytest.raises(DataError) as found:
        list(corpus("dailydialog").read(spoilt / "dailydialog/dialogues_text.txt"))
    assert said in str(found.value)
