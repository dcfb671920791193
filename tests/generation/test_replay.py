"""A log as a system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.generation.replay import ReplaySystem
from palaver.generation.systems_file import open_system
from palaver.readers import write_dialogues
from palaver.schema import Dialogue, Request, Turn

Talk = Callable[..., Dialogue]


def test_by_id_and_turn(talk: Talk) -> None:
    log = ReplaySystem("log", [talk("hello", "hi", "bye", id="a"), talk("hello", "yo", id="b")])
    replies = log.reply([Request(talk("other words", id="b")), Request(talk("hello", "hi", id="a"))])
    assert [r.text for r in replies] == ["yo", "bye"]
    assert replies[0].logprob is None


def test_by_the_same_history(talk: Talk) -> None:
    log = ReplaySystem("log", [talk("hello", "hi", "bye", id="a"), talk("hello", "yo", id="b")])
    assert log.reply([Request(talk("hello ", "hi", id="new"))])[0].text == "bye"
    assert log.reply([Request(talk("hello", id="new"))])[0].text == "hi"  # the first dialogue of the two
    assert log.reply([Request(talk(id="new"))])[0].text == "hello"


def test_what_the_log_does_not_have(talk: Talk) -> None:
    log = ReplaySystem("log", [talk("hello", "hi", id="a")])
    with pytest.raises(UserError, match="dialogue 'a' ends after 2 turns"):
        log.reply([Request(talk("hello", "hi", id="a"))])
    with pytest.raises(UserError, match="no dialogue 'x', and none with these 1 turns") as caught:
        log.reply([Request(talk("good day", id="x"))])
    assert 'missing = "skip"' in caught.value.hint
    skips = ReplaySystem("log", [talk("hello", "hi", id="a")], missing="skip")
    gone, there = skips.reply([Request(talk("good day", id="x")), Request(talk("hello"))])
    assert (gone.text, there.text, there.skipped) == ("", "hi", None)
    assert gone.skipped is not None
    assert "no dialogue 'x'" in gone.skipped


def test_repeated_ids_are_noted(talk: Talk) -> None:
    log = ReplaySystem("log", [talk("a", "b"), talk("a", "c"), talk("x", "y")])
    assert log.reply([Request(talk("a"))])[0].text == "b"
    assert list(log.notes) == ["log: 2 dialogues of the log have the id of an earlier one"]


def test_a_log_takes_no_conditions(talk: Talk) -> None:
    with pytest.raises(UserError, match="log takes no speaker"):
        ReplaySystem("log", [talk("a", "b")]).reply([Request(talk("a"), speaker="Joey")])


def test_from_a_file(tmp_path: Path, talk: Talk) -> None:
    write_dialogues([talk("hello", "hi")], tmp_path / "log.jsonl")
    (tmp_path / "s.toml").write_text('[systems.log]\nkind = "replay"\npath = "log.jsonl"\n')
    system = open_system("log", tmp_path / "s.toml")
    assert system.reply([Request(talk("hello"))])[0].text == "hi"


texts = st.sampled_from(["a", "b", "ab", "", " "])


@given(st.lists(st.lists(texts, max_size=5), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_every_turn_of_the_log_comes_back(log: list[list[str]]) -> None:
    dialogues = [
        Dialogue(id=str(i), turns=tuple(Turn(speaker="s", text=text) for text in said))
        for i, said in enumerate(log)
    ]
    system = ReplaySystem("log", dialogues)
    for dialogue in dialogues:
        for place, turn in enumerate(dialogue.turns):
            asked = dialogue.model_copy(update={"turns": dialogue.turns[:place]})
            assert system.reply([Request(asked)])[0].text == turn.text
            stranger = asked.model_copy(update={"id": "none of these"})
            same = [t.text.strip() for t in asked.turns]
            first = next(
                said[place] for said in log if [t.strip() for t in said[:place]] == same and len(said) > place
            )
            assert system.reply([Request(stranger)])[0].text == first


def test_a_file_of_responses_is_a_log_of_each_system(tmp_path: Path, talk: Talk) -> None:
    rows = [
        '{"id": "1", "system": "a", "context": "hello", "response": "hi"}',
        '{"id": "1", "system": "b", "context": "hello", "response": "yo"}',
        '{"id": "2", "system": "a", "context": "bye", "response": null}',
    ]
    (tmp_path / "said.jsonl").write_text("\n".join(rows) + "\n")
    tables = [
        '[systems.a]\nkind = "replay"\npath = "said.jsonl"\nmissing = "skip"',
        '[systems.other]\nkind = "replay"\npath = "said.jsonl"\nsystem = "b"',
        '[systems.nobody]\nkind = "replay"\npath = "said.jsonl"',
        '[systems.log]\nkind = "replay"\npath = "log.jsonl"\nsystem = "b"',
    ]
    file = tmp_path / "systems.toml"
    file.write_text("\n".join(tables))
    write_dialogues([talk("hello", "hi")], tmp_path / "log.jsonl")
    a, other = open_system("a", file), open_system("other", file)
    assert [reply.text for reply in a.reply([Request(talk("hello", id="1"))])] == ["hi"]
    assert a.reply([Request(talk("bye", id="2"))])[0].skipped, "it gave no reply then, and gives none now"
    assert other.reply([Request(talk("hello", id="1"))])[0].text == "yo"
    assert a.settings != other.settings  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="holds no responses of 'nobody'"):
        open_system("nobody", file)
    with pytest.raises(UserError, match="holds dialogues"):
        open_system("log", file)
