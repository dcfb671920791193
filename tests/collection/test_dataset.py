"""A dataset to pass on: Parquet with a card, and participants without their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from palaver.collection.dataset import number_participants, write_parquet
from palaver.collection.labels import as_conversation, as_dialogue, grade_number, people_in
from palaver.collection.records import Conversation, Participant
from palaver.errors import UserError
from palaver.readers import read_dialogues
from palaver.schema import Dialogue

Talk = Callable[..., Dialogue]


def test_participants_are_numbered_across_conversations(talk: Talk) -> None:
    first = talk("1", participant_agent_1="A1XX", participant_agent_2="B2YY")
    second = talk("2", participant_agent_1="B2YY|C3", bot_agent_2="echo")
    one, two, three = number_participants([first, second, talk("3")])
    assert (one.labels["participant_agent_1"], one.labels["participant_agent_2"]) == ("p1", "p2")
    assert (two.labels["participant_agent_1"], two.labels["bot_agent_2"]) == ("p2|p3", "echo")
    assert three == talk("3")


def test_parquet_and_its_card(talk: Talk, tmp_path: Path) -> None:
    dialogues = [talk("1", split="train"), talk("2", split="test_rare"), talk("3")]
    splits = write_parquet(dialogues, tmp_path, name='Tea: "talk"', licence="cc-by-4.0")
    assert splits == ["train", "test_rare"]
    assert list(read_dialogues(tmp_path / "data" / "train.parquet")) == [dialogues[0], dialogues[2]]
    card = (tmp_path / "README.md").read_text()
    assert card.startswith('---\npretty_name: "Tea: \\"talk\\""\nlicense: "cc-by-4.0"\n')
    assert "  - split: test_rare\n    path: data/test_rare.parquet\n" in card
    assert "| test_rare | all | 1 | 2 | 2.000 | " in card
    with pytest.raises(UserError, match="cannot be the name of a split"):
        write_parquet([talk(split="../x")], tmp_path, name="x")


def test_without_a_licence_the_card_says_so(talk: Talk, tmp_path: Path) -> None:
    write_parquet([talk()], tmp_path, name="x")
    card = (tmp_path / "README.md").read_text()
    assert "license" not in card
    assert "Not stated" in card


def test_a_conversation_as_a_dialogue_and_back(talk: Talk) -> None:
    people = (
        Participant(id="ann", seat="agent_1", n_turns=1, exit="left"),
        Participant(id="bob", seat="agent_2", n_turns=1),
        Participant(id="echo", seat="agent_1", is_bot=True, first_turn=2),
    )
    held = Conversation(id="c1", dialogue=talk(), participants=people, ending="incomplete", began_at=1)
    dialogue = as_dialogue(held)
    assert people_in(dialogue) == {"ann", "bob"}
    assert (dialogue.labels["bot_agent_1"], dialogue.labels["ending"]) == ("echo", "incomplete")
    back = as_conversation(dialogue)
    assert [(p.id, p.seat, p.is_bot) for p in back.participants] == [
        ("ann", "agent_1", False),
        ("echo", "agent_1", True),
        ("bob", "agent_2", False),
    ]
    assert (back.ending, back.configuration) == ("incomplete", "D")


def test_grades() -> None:
    assert [grade_number(word) for word in ("Poor", "not good", " EXCELLENT ", "", None, "fine")] == [
        1,
        2,
        5,
        None,
        None,
        None,
    ]
