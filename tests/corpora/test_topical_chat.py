"""Topical-Chat as it is released, before and after its build, and the copy with recovered facts."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import read_corpus
from palaver.errors import DataError, UserError
from palaver.schema import Article, Entity, Fact, ReadingSet, Section, Turn


def read(root: Path, split: str | None = None) -> dict[str, Any]:
    return {d.id: d for d in read_corpus("topical-chat", root=root, split=split)}


def test_turns_and_labels(samples: Path) -> None:
    dialogue = read(samples, "train")["t_1"]
    assert dialogue.turns[0] == Turn(
        speaker="agent_1",
        text="Did you ever climb a lighthouse?",
        knowledge=("FS1", "Personal Knowledge"),
        labels={"sentiment": "Neutral", "turn_rating": "Good"},
    )
    assert "turn_rating" not in dialogue.turns[2].labels  # nobody rated it
    assert dialogue.labels == {
        "split": "train",
        "config": "A",
        "article_url": "https://news.example/lighthouse",
        "rating_agent_1": "Good",
        "rating_agent_2": "Excellent",
    }


def test_reading_sets_after_the_build(samples: Path) -> None:
    found = read(samples)
    facts = ("Some lamps are visible for 40 km.", "Keepers grew vegetables.")
    expected = ReadingSet(
        id="t_1-agent_1",
        sections=(
            Section(
                entity=Entity(id="Lighthouse", name="Lighthouse", topic="travel"),
                lead="A lighthouse is a tower with a lamp.",
                lead_form="shortened",
                facts=tuple(
                    Fact(id=f"FS1-{n}", text=text, entity="Lighthouse")
                    for n, text in enumerate(facts, start=1)
                ),
            ),
        ),
        article=Article(
            id="https://news.example/lighthouse",
            title="Lighthouse for sale",
            parts=("It has no lift.", "The town sells it.", "", "Bids close in May."),  # AS3 is not there
            url="https://news.example/lighthouse",
        ),
        configuration="A",
    )
    assert found["t_1"].knowledge[0] == expected
    assert [k.id for k in found["t_1"].knowledge] == ["t_1-agent_1", "t_1-agent_2"]
    assert found["t_2"].knowledge[0].article is None  # configuration C has none
    assert len(found["t_2"].knowledge[0].sections[0].facts) == 1
    assert found["t_4"].knowledge is None


def test_reading_sets_before_the_build(samples: Path) -> None:
    one, two = read(samples, "valid_freq")["t_3"].knowledge
    assert (one.sections[0].lead, one.sections[0].lead_form) == ("A kite flies on a string.", "shortened")
    assert (two.sections[0].lead, two.sections[0].lead_form) == ("Kites fly.", "summarised")
    assert one.sections[0].facts == ()


def test_what_is_missing_is_counted(samples: Path) -> None:
    reader = read_corpus("topical-chat", root=samples)
    list(reader)
    assert set(reader.notes) == {
        "facts without their text: 5",
        "articles without their text: 1",
        "conversations without reading sets: 1",
    }


def test_recovered_facts_and_a_part_of_the_training_conversations(spoilt: Path) -> None:
    home = spoilt / "topical-chat"
    (home / "conversations/train.json").rename(home / "conversations/train_partial.json")
    section = {
        "entity": "Kite",
        "summarized_wiki_lead_section": "Kites fly.",
        "fun_facts_recovered": ["Kites carried cameras."],
        "fun_fact_ids": ["t3_a", "t3_b", "t3_c"],
    }
    record = {"config": "B", "agent_1": {"FS1": section}, "agent_2": {"FS1": section}}
    record["article_segments_recovered"] = ["A segment."]
    content = json.dumps({"t_2": {**record, "article_url": "https://x"}}).encode()
    (home / "reading_sets/train_partial.json.gz").write_bytes(gzip.compress(content))
    reader = read_corpus("topical-chat", root=spoilt, split="train")
    one, two = reader
    assert two.labels["split"] == "train"
    assert two.labels["original_split"] == "train_partial"
    assert two.knowledge is not None
    assert [f.text for f in two.knowledge[0].sections[0].facts] == ["Kites carried cameras."]
    assert two.knowledge[0].article == Article(id="https://x", url="https://x", parts=("A segment.",))
    assert set(reader.notes) == {
        "facts without their text: 4",
        "conversations without reading sets: 1",
        "articles of which a few parts were recovered, in no known order: 1",
    }
    assert one.knowledge is None


def test_splits(samples: Path) -> None:
    assert list(read(samples, "valid")) == ["t_3", "t_4"]
    assert list(read(samples, "validation")) == ["t_3", "t_4"]
    assert list(read(samples, "valid_rare")) == ["t_4"]
    with pytest.raises(UserError, match="no split 'valid_rar' .did you mean 'valid_rare'"):
        read(samples, "valid_rar")
    with pytest.raises(DataError, match="holds no conversations of test"):
        read(samples, "test")


def test_a_cut_file_is_named_with_line_and_column(spoilt: Path) -> None:
    path = spoilt / "topical-chat/reading_sets/post-build/train.json"
    path.write_text(path.read_text()[:200])
    with pytest.raises(DataError, match=r"train.json, line \d+, column \d+: not JSON"):
        read(spoilt, "train")


def test_the_real_conversations(shared_data: Path) -> None:
    reader = read_corpus("topical-chat", root=shared_data)
    counts: Counter[Any] = Counter()
    turns: Counter[Any] = Counter()
    for dialogue in reader:
        split = dialogue.labels["split"]
        counts[split] += 1
        turns[split] += len(dialogue.turns)
        assert dialogue.knowledge is not None
        assert all(len(k.sections) == 3 for k in dialogue.knowledge)
        assert all(s.lead for k in dialogue.knowledge for s in k.sections)
    assert counts == {"train": 1524, "valid_freq": 539, "valid_rare": 539, "test_freq": 539, "test_rare": 539}
    assert [turns[s] for s in counts] == [33_305, 11_681, 11_692, 11_760, 11_770]
