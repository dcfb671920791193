"""`palaver collect stats`, `split` and `export`, from a file to a release and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.collection.records import Conversation, Participant, write_conversations
from palaver.readers import read_dialogues, write_dialogues
from palaver.schema import Dialogue, Entity, ReadingSet, Section, Turn

Palaver = Callable[..., Any]


def conversation(number: int) -> Dialogue:
    turns = (Turn(speaker="agent_1", text="Tea?"), Turn(speaker="agent_2", text="Yes, two cups."))
    name = f"Rare {number}" if number < 4 else "Tea"
    sections = (Section(entity=Entity(id=name, name=name)), Section(entity=Entity(id="Cup", name="Cup")))
    labels = {
        "config": "AB"[number % 2],
        "article": f"a{number // 2}",
        "participant_agent_1": f"W{number % 5}",
    }
    sets = tuple(ReadingSet(id=side, sections=sections) for side in ("agent_1", "agent_2"))
    return Dialogue(id=f"c{number}", turns=turns, knowledge=sets, labels=labels)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "conversations.jsonl"
    write_dialogues([conversation(number) for number in range(40)], path)
    return path


def test_from_a_file_to_a_release(palaver: Palaver, file: Path, tmp_path: Path) -> None:
    parted = palaver("collect", "split", file, "--seed", 1, "--out", tmp_path / "split.jsonl", "--json")
    assert (parted.code, parted.err) == (0, "")
    rows = {row["split"]: row for row in json.loads(parted.out)["splits"]}
    assert rows["train"]["conversations"] == 32
    assert rows["test_rare"]["unseen_entities"] == 2  # of c0 to c3, which share two articles
    assert rows["test_freq"]["shared_articles"] == 0
    assert rows["test_freq"]["shared_people"] == 2
    made = palaver("collect", "export", tmp_path / "split.jsonl", "--out", tmp_path / "release")
    assert made.code == 0
    assert "wrote 40 conversations to" in made.out
    assert "train 32, valid_freq 2, valid_rare 2, test_freq 2, test_rare 2" in made.out
    assert "note: the layout has no place for: conversations' label participant_agent_1: 40" in made.out
    counted = palaver("collect", "stats", tmp_path / "release", "--json")
    sizes = {(size["split"], size["configuration"]): size for size in json.loads(counted.out)["sizes"]}
    assert sizes["train", None]["utterances"] == 64
    assert sizes["train", None]["length"] == 2
    shown = palaver("collect", "stats", tmp_path / "release")
    assert "utterances              total             64" in shown.out
    assert "article in train" in shown.out


def test_participants_stay_at_home(palaver: Palaver, file: Path, tmp_path: Path) -> None:
    palaver("collect", "export", file, "--format", "jsonl", "--out", tmp_path / "out.jsonl")
    people = {str(d.labels["participant_agent_1"]) for d in read_dialogues(tmp_path / "out.jsonl")}
    assert people == {"p1", "p2", "p3", "p4", "p5"}
    kept = palaver(
        *("collect", "export", file, "--format", "parquet", "--out", tmp_path / "kept"), "--keep-participants"
    )
    assert kept.code == 0
    first = next(iter(read_dialogues(tmp_path / "kept" / "data" / "train.parquet")))
    assert first.labels["participant_agent_1"] == "W0"
    assert "# Conversations" in (tmp_path / "kept" / "README.md").read_text()


def test_what_a_collection_wrote(palaver: Palaver, tmp_path: Path) -> None:
    people = (
        Participant(id="ann", seat="agent_1", n_turns=1),
        Participant(id="bob", seat="agent_2", n_turns=1),
    )
    endings = ["complete", "incomplete", "open"]
    held = [
        Conversation(id=f"c{n}", dialogue=conversation(n), participants=people, ending=ending, began_at=0)  # type: ignore[arg-type]
        for n, ending in enumerate(endings)
    ]
    write_conversations(held, tmp_path / "held.jsonl")
    counted = json.loads(palaver("collect", "stats", tmp_path / "held.jsonl", "--json").out)
    assert counted["notes"] == ["left out, open: 1"]
    made = palaver(
        *("collect", "export", tmp_path / "held.jsonl", "--format", "jsonl", "--out", tmp_path / "out.jsonl")
    )
    assert "wrote 1 conversation to" in made.out
    assert "note: left out, incomplete: 1" in made.out
    [dialogue] = read_dialogues(tmp_path / "out.jsonl")
    assert dialogue.labels["participant_agent_2"] == "p2"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("stats", "nothing.jsonl"), 1, "there is no nothing.jsonl"),
        (("stats", "topicalchat"), 1, "did you mean 'topical-chat'?"),
        (("stats", "."), 1, "holds no release"),
        (("split", "FILE", "--together", "artikle", "--out", "x.jsonl"), 2, "(did you mean 'article'?)"),
        (
            ("split", "FILE", "--together", "none", "--least-seen", "99", "--out", "x.jsonl"),
            1,
            "--least-seen",
        ),
        (("split", "FILE", "--out", "x.doc"), 1, "x.doc"),
        (("split", "EMPTY", "--out", "x.jsonl"), 1, "none is frequent or rare"),
        (("stats", "EMPTY"), 1, "there are no turns"),
        (("export", "EMPTY", "--format", "jsonl", "--out", "x.jsonl"), 1, "there are no turns"),
        (("export", "EMPTY", "--out", "folder"), 1, "no turns: 1"),
        (("export", "FILE", "--format", "jsonl", "--out", "x.csv"), 2, "x.jsonl"),
        (("export", "FILE", "--format", "parket", "--out", "x"), 2, "(did you mean 'parquet'?)"),
        (("export", "FILE", "--out", "FILE"), 1, "is there already"),
    ],
)
def test_what_goes_wrong(
    palaver: Palaver,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: Any,
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_dialogues([Dialogue(id="d", turns=(), speakers=("a", "b"))], tmp_path / "empty.jsonl")
    places = {"FILE": file, "EMPTY": tmp_path / "empty.jsonl"}
    ran = palaver("collect", *(places.get(word, word) for word in words))
    assert ran.code == code
    assert said in ran.err
    assert not (tmp_path / "folder").exists()
