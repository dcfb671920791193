"""Table 2 of Topical-Chat: counts by hand, and those of the release as it lies on the disk."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

from palaver.collection.stats import count_conversations
from palaver.schema import Dialogue

Talk = Callable[..., Dialogue]


def test_counts_by_configuration_and_split(talk: Talk) -> None:
    counted = count_conversations(
        [
            talk("1", ["Hello there", "Hi!", "Hello, you"], split="test_rare", config="A"),
            talk("2", ["One two three four"], split="train", config="B"),
            talk("3", ["Five", "five"], split="train", config="A"),
            talk("4", [], split="train"),
            talk("4x", ["Six"], split="mine", config="Total"),
        ]
    )
    assert counted.splits == ["train", "test_rare", "mine"]
    assert counted.configurations == ["A", "B", "Total"]
    train = counted.size("train")
    assert train is not None
    assert (train.conversations, train.utterances, train.turns, train.length) == (2, 3, 1.5, 2.0)
    assert train.distinct_words == 5
    rare = counted.size("test_rare", "A")
    assert rare is not None
    assert (rare.length, rare.distinct_words) == (5 / 3, 4)  # hello, there, hi, you
    assert counted.size("test_rare", "B") is None
    assert counted.notes == ("left out, without turns: 1",)
    assert "4 conversations, 7 utterances in 3 splits" in repr(counted)


def test_ids_that_come_twice_are_said(talk: Talk) -> None:
    assert count_conversations([talk("1"), talk("1")]).notes == ("counted with the id of an earlier one: 1",)


def test_the_release_has_what_its_files_hold(shared_data: Path, valid_rare: list[Dialogue]) -> None:
    folder = shared_data / "topical_chat"
    with gzip.open(folder / "conversations" / "valid_rare.json.gz") as file:
        raw = json.load(file)
    counted = count_conversations(valid_rare)
    for name in (None, "A", "B", "C", "D"):
        own = [one for one in raw.values() if name in (None, one["config"])]
        messages = [turn["message"] for one in own for turn in one["content"]]
        size = counted.size("valid_rare", name)
        assert size is not None
        assert (size.conversations, size.utterances) == (len(own), len(messages))
        assert size.length == sum(len(message.split()) for message in messages) / len(messages)
    total = counted.size("valid_rare")
    assert total is not None
    assert (total.conversations, total.utterances) == (539, 11692)
