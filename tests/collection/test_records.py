"""Conversations as records: written and read back, with every mistake named."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver.collection.records import (
    Conversation,
    Participant,
    Person,
    read_conversations,
    write_conversations,
)
from palaver.errors import DataError
from palaver.schema import Dialogue, Turn


def conversation(id: str = "1") -> Conversation:
    turns = (
        Turn(speaker="agent_1", text="Hi", knowledge=("FS1",), labels={"sentiment": "Happy", "at": 3.5}),
        Turn(speaker="agent_2", text="Hello", labels={"turn_rating": "Good"}),
    )
    return Conversation(
        id=id,
        dialogue=Dialogue(id=id, turns=turns, labels={"config": "A"}),
        participants=(
            Participant(id="p1", seat="agent_1", n_turns=1, exit="finished"),
            Participant(id="default", seat="agent_2", is_bot=True, n_turns=1),
        ),
        ending="complete",
        configuration="A",
        began_at=100.0,
        ended_at=160.0,
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    held = [conversation("1"), conversation("2")]
    assert write_conversations(held, tmp_path / "held.jsonl") == 2
    assert list(read_conversations(tmp_path / "held.jsonl")) == held
    assert [p.id for p in held[0].bots] == ["default"]
    assert [p.id for p in held[0].people] == ["p1"]


def test_mistakes_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "held.jsonl"
    path.write_text('{"id": "1", "ending": "over"}\n', encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(read_conversations(path))
    assert any("ending" in problem for problem in caught.value.problems)


def test_somebody_who_only_came_is_a_person() -> None:
    person = Person(id="p", entered_at=1.0)
    assert (person.exit, person.pay, dict(person.qualifications)) == ("here", "open", {})
