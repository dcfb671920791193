"""`palaver generate --selector`: a reply's knowledge comes from the reading set of the one who replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn")
Palaver = Callable[..., Any]
SAID = ["Do you play the piano?", "It has 88 keys.", "An octopus has three hearts.", "Genoa is a port."]
FACTS = {
    "a": ["Octopuses have three hearts.", "Tea is a plant."],
    "b": ["A piano has 88 keys.", "Genoa is old."],
}


def dialogue(id: str, facts: dict[str, list[str]]) -> dict[str, Any]:
    sets = [
        {
            "id": f"{id}-{speaker}",
            "sections": [
                {
                    "entity": {"id": "e", "name": "things"},
                    "facts": [{"id": f"f{i}", "text": text} for i, text in enumerate(texts)],
                }
            ],
        }
        for speaker, texts in facts.items()
    ]
    turns = [{"speaker": "ab"[i % 2], "text": text} for i, text in enumerate(SAID)]
    return {"id": id, "turns": turns, "knowledge": sets}


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    (tmp_path / "own_selector.py").write_text(
        "def reply(text, knowledge=None):\n    return knowledge or 'nothing'\n"
        "def longest(history, sentences):\n    return [len(s) for s in sentences]\n"
    )
    path = tmp_path / "talks.jsonl"
    path.write_text(
        "\n".join(json.dumps(d) for d in [dialogue("t", FACTS), dialogue("bare", {"a": [], "b": []})])
    )
    return path


def run(palaver: Palaver, talks: Path, *words: str) -> Any:
    return palaver(
        "generate", "--system", "own_selector:reply", "--contexts", talks, "--out", "o.jsonl", *words
    )


def knowledge(talks: Path) -> dict[str, Any]:
    lines = (talks.parent / "o.jsonl").read_text().splitlines()
    return {row["id"]: row.get("knowledge") for row in map(json.loads, lines)}


def test_the_oracle_of_every_turn(palaver: Palaver, talks: Path) -> None:
    ran = run(palaver, talks, "--selector", "oracle", "--every-turn")
    assert ran.code == 0, ran.err
    assert knowledge(talks) == {
        "t#1": "A piano has 88 keys.", "t#2": "Octopuses have three hearts.", "t#3": "Genoa is old.",
        "bare#1": None, "bare#2": None, "bare#3": None,
    }  # fmt: skip
    assert "3 of 6 replies have no knowledge: their speaker had no sentence to read" in ran.err


@pytest.mark.parametrize("name", ["tfidf", "bm25", "trained"])
def test_the_history_alone(name: str, palaver: Palaver, talks: Path) -> None:
    ran = run(palaver, talks, "--selector", name, "--every-turn", "--limit", "1")
    assert ran.code == 0, ran.err
    assert knowledge(talks) == {"t#1": "A piano has 88 keys."}


def test_a_function_and_whole_dialogues(palaver: Palaver, talks: Path) -> None:
    ran = run(palaver, talks, "--selector", "own_selector:longest")
    assert ran.code == 0, ran.err
    assert knowledge(talks) == {"t": "Octopuses have three hearts.", "bare": None}


def test_another_selector_does_not_go_on(palaver: Palaver, talks: Path) -> None:
    assert run(palaver, talks, "--selector", "tfidf").code == 0
    assert run(palaver, talks, "--selector", "tfidf").code == 0
    ran = run(palaver, talks, "--selector", "bm25")
    assert ran.code == 1
    assert "knowledge" in ran.err


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("--selector", "oracle"), "--every-turn", 2),
        (("--selector", "tfdif"), "did you mean 'tfidf'", 1),
        (("--selector", "nowhere:f"), "there is no Python module 'nowhere'", 1),
        (("--selector", "tfidf", "--knowledge", "talks.jsonl"), "both given", 2),
        (("--selector", "tfidf", "--contexts", "lines.txt"), "there is no sentence in the reading sets", 1),
        (("--selector", "tfidf", "--contexts", "empty.jsonl"), "there is no sentence in the reading sets", 1),
        (("--selector", "tfidf", "--contexts", "silent.jsonl"), "a dialogue needs a turn with text", 1),
    ],
)
def test_mistakes(words: tuple[str, ...], message: str, code: int, palaver: Palaver, talks: Path) -> None:
    (talks.parent / "lines.txt").write_text("Do you play the piano?\n")
    (talks.parent / "empty.jsonl").write_text(json.dumps(dialogue("bare", {"a": [], "b": []})))
    (talks.parent / "silent.jsonl").write_text(json.dumps({**dialogue("t", FACTS), "turns": []}))
    ran = run(palaver, talks, *words)
    assert ran.code == code, ran.err
    assert message in ran.err
    assert not (talks.parent / "o.jsonl").exists()
