"""Corpora that come as JSON: what is in the samples is read, and what is spoilt is a clear error."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.corpora.catalogue import corpus, read_corpus
from palaver.errors import DataError
from palaver.schema import Dialogue

JSON_CORPORA = {
    "cmu-dog": "Conversations/train/f00.json",
    "dream": "data/train.json",
    "commonsense-dialogues": "data/valid.json",
    "taskmaster4": "TM-4-2024/data/data_00.json",
    "sgd": "train/dialogues_001.json",
    "mutual": "data/mutual/dev/dev_7.txt",
    "topical-chat": "reading_sets/post-build/train.json",
    "topical-chat ": "conversations/train.json",
    "topical-chat  ": "reading_sets/pre-build/valid_freq.json",
    "topical-chat   ": "src/wiki/wiki.json",
}


def said(dialogue: Dialogue) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in dialogue.turns]


def test_cmu_dog(samples: Path) -> None:
    train, valid = read_corpus("cmu-dog", root=samples)
    assert said(train) == [
        ("user1", "It is about a lost map."),
        ("user1", "And a driver."),
        ("user2", "Sounds fun."),
    ]
    assert [t.labels["doc"] for t in train.turns] == [0, 0, 1]
    assert train.labels == {"split": "train", "rating": 3, "wikiDocumentIdx": 7, "who": '["user1"]'}
    assert (valid.id, valid.labels["split"]) == ("f01", "valid")
    (merged, _) = reader = list(read_corpus("cmu-dog", root=samples, merge_turns=True))
    assert said(merged)[0] == ("user1", "It is about a lost map. And a driver.")
    assert len(reader) == 2


def test_dream(samples: Path) -> None:
    reader = read_corpus("dream", root=samples)
    train, valid = reader
    assert said(train) == [("M", "Is it far: the station?"), ("W", "Ten minutes.")]
    assert said(valid) == [("W", "Good night."), ("(unknown)", "(They leave.)")]
    assert valid.labels == {"split": "valid", "original_split": "dev"}
    assert reader.notes == ("turns without a speaker, called (unknown) here: 1",)


def test_commonsense(samples: Path) -> None:
    (only,) = read_corpus("commonsense-dialogues", root=samples)
    assert said(only) == [("A", "I found a wallet."), ("B", "Whose is it?"), ("A", "No name inside.")]
    assert (only.id, only.labels["context"]) == ("valid1", "Kim found a wallet.")


def test_taskmaster(samples: Path) -> None:
    (only,) = read_corpus("taskmaster4", root=samples, split="train")
    assert said(only) == [("user", "a flat white"), ("assistant", "coming up")]


def test_sgd(samples: Path) -> None:
    train, valid = read_corpus("sgd", root=samples)
    assert [train.id, valid.id] == ["train_1_00000", "dev_1_00007"]
    assert said(valid) == [("USER", "Book a ferry."), ("SYSTEM", "For when?")]


def test_mutual_ends_with_the_right_answer(samples: Path) -> None:
    reader = read_corpus("mutual", root=samples)
    valid, test = reader
    assert said(valid) == [
        ("f", "when does the ferry leave ?"),
        ("m", "ask me later ."),
        ("f", "it is later ."),
        ("m", "at noon ."),
    ]
    assert said(test) == [("m", "how many ?")]
    assert reader.notes == ("dialogues whose answer is not given, which end before it: 1",)


values = st.sampled_from([None, 0, 1.5, True, "", "x", "m : x", [], {}, [None], {"x": 1}, [[]], "\ud800"])


def replaced(value: Any, at: int, new: Any) -> Any:
    """`value` with its `at`-th node, counted from the outside, replaced."""
    count = -1

    def walk(node: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            return new
        if isinstance(node, dict):
            return {key: walk(child) for key, child in node.items()}
        return [walk(child) for child in node] if isinstance(node, list) else node

    return walk(value)


def n_nodes(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(n_nodes(child) for child in children)


@pytest.mark.parametrize("name", JSON_CORPORA)
def test_whatever_is_spoilt_is_a_clear_error(
    name: str, samples: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("spoilt") / name.strip()
    shutil.copytree(samples / name.strip(), home)
    path = home / JSON_CORPORA[name]
    good = json.loads(path.read_text())
    outcomes = set()

    @given(at=st.integers(0, n_nodes(good) - 1), new=values)
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    def spoil(at: int, new: Any) -> None:
        path.write_text(json.dumps(replaced(good, at, new)))
        try:
            outcomes.add(all(isinstance(d, Dialogue) for d in corpus(name.strip()).read(home)))
        except DataError as error:
            said = str(error)
            outcomes.add(str(path.parent) in said or "conversation" in said or "wiki" in said)

    spoil()
    assert outcomes == {True}


def test_a_list_where_dream_has_triples(spoilt: Path) -> None:
    (spoilt / "dream/data/train.json").write_text('[[["M: x"], [], "1"], [["M: x"], []]]')
    with pytest.raises(DataError, match=r"train.json, dialogue 2: expected \[turns, questions, id\]"):
        list(read_corpus("dream", root=spoilt))
