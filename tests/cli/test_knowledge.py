"""`palaver knowledge agreement`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Conversations with reading sets, as our own JSON lines."""
    pytest.importorskip("sklearn")
    facts = ["A piano has 88 keys.", "Octopuses have three hearts.", "Genoa is an old port."]
    said = ["Do you play the piano?", "It has 88 keys.", "An octopus has three hearts.", "Genoa is a port."]
    entity = {"id": "e", "name": "things"}
    section = {"entity": entity, "facts": [{"id": f"f{i}", "text": fact} for i, fact in enumerate(facts)]}
    lines = []
    for split in ("train", "valid"):
        for n in range(3):
            turns = [{"speaker": "ab"[i % 2], "text": text} for i, text in enumerate(said)]
            lines.append(
                {
                    "id": f"{split}{n}",
                    "turns": turns,
                    "knowledge": [{"id": "both", "sections": [section]}],
                    "labels": {"split": split},
                }
            )
    path = tmp_path / "talks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_the_table(palaver: Palaver, talks: Path) -> None:
    ran = palaver("knowledge", "agreement", "--corpus", talks, "--replicates", 20)
    assert (ran.code, ran.err) == (0, "")
    for word in ("tfidf", "bm25", "guessing", "0.333", "18 turns of 6 dialogues", "left out: 6 turns"):
        assert word in ran.out


def test_json_of_one_split(palaver: Palaver, talks: Path) -> None:
    words = ["--corpus", talks, "--split", "valid", "--selector", "bm25", "--replicates", 20, "--json"]
    ran = palaver("knowledge", "agreement", *words)
    found = json.loads(ran.out)
    assert (found["split"], found["n_sentences"]) == ("valid", 3)
    (one,) = found["selectors"]
    assert (one["selector"], one["n_dialogues"], one["n_turns"]) == ("bm25", 3, 9)
    assert 0 <= one["top1"]["low"] <= one["top1"]["value"] <= one["top1"]["high"] <= 1
    assert palaver("knowledge", "agreement", *words).out == ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--corpus", "topical-chaat"], "topical-chat"),
        (["--corpus", "nowhere.jsonl"], "nowhere.jsonl"),
        (["--selector", "encoder", "--encoder", "."], "no sentence encoder in"),
        (["--selector", "encoder", "--device", "toaster"], "toaster"),
    ],
)
def test_mistakes(palaver: Palaver, talks: Path, words: list[str], message: str) -> None:
    given = words if "--corpus" in words else ["--corpus", str(talks), *words]
    ran = palaver("knowledge", "agreement", *given)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("tfidf,bm52", "did you mean 'bm25'"),
        ("oracle", "those that need the history alone: tfidf, bm25, encoder"),
        ("none", "those that need the history alone"),
        (",", "names nothing"),
    ],
)
def test_selectors_that_cannot_be_used(palaver: Palaver, talks: Path, selector: str, message: str) -> None:
    ran = palaver("knowledge", "agreement", "--corpus", talks, "--selector", selector)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_dialogues_without_reading_sets(palaver: Palaver, tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    turns = [{"speaker": "a", "text": "hi"}, {"speaker": "b", "text": "ho"}]
    path.write_text(json.dumps({"id": "x", "turns": turns}))
    ran = palaver("knowledge", "agreement", "--corpus", path)
    assert ran.code == 1
    assert "reading sets" in ran.err
