"""Dialogues: who speaks, in which order, and what cannot be one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from palaver.schema import Dialogue, Turn


@given(st.lists(st.sampled_from(["ann", "bob", "Bob ", "é"]), max_size=8))
@settings(max_examples=50, deadline=None)
def test_speakers_are_read_off_the_turns_in_order_of_first_appearance(who: list[str]) -> None:
    expected: list[str] = []
    for name in who:
        if name not in expected:
            expected.append(name)
    turns = [Turn(speaker=name, text="") for name in who]
    plain = [{"speaker": name, "text": ""} for name in who]
    assert Dialogue(id="d", turns=tuple(turns)).speakers == tuple(expected)
    assert Dialogue(id="d", turns=plain) == Dialogue(id="d", turns=turns)  # type: ignore[arg-type]
    assert Dialogue(id="d", turns=turns, speakers=()).speakers == tuple(expected)  # type: ignore[arg-type]


def test_given_speakers_keep_their_order_and_may_be_silent() -> None:
    dialogue = Dialogue(id="d", turns=(Turn(speaker="b", text=""),), speakers=("silent", "b"))
    assert dialogue.speakers == ("silent", "b")


@pytest.mark.parametrize(
    ("speakers", "words"),
    [(("a",), "turns by \\['b'\\]"), (("a", "b", "a"), "named twice"), (("a", ""), "at least 1 character")],
)
def test_speakers_that_do_not_fit(speakers: tuple[str, ...], words: str) -> None:
    turns = (Turn(speaker="a", text=""), Turn(speaker="b", text=""))
    with pytest.raises(ValidationError, match=words):
        Dialogue(id="d", turns=turns, speakers=speakers)


@pytest.mark.parametrize(
    "bad",
    [
        {"turns": []},
        {"id": "", "turns": []},
        {"id": 5, "turns": []},
        {"id": "d"},
        {"id": "d", "turns": None},
        {"id": "d", "turns": "text"},
        {"id": "d", "turns": [5]},
        {"id": "d", "turns": [{"text": "no speaker"}]},
        {"id": "d", "turns": [{"speaker": "a"}]},
        {"id": "d", "turns": [{"speaker": 5, "text": "x"}]},
        {"id": "d", "turns": [{"speaker": "a", "text": None}]},
        {"id": "d", "turns": [], "speakers": "ab"},
        5,
        None,
        [],
    ],
)
def test_what_is_not_a_dialogue(bad: Any) -> None:
    with pytest.raises(ValidationError):
        Dialogue.model_validate(bad)


def test_no_knowledge_and_nothing_to_read_are_told_apart() -> None:
    none = Dialogue(id="d", turns=())
    nothing = Dialogue(id="d", turns=(), knowledge=())
    assert none != nothing
    assert Dialogue.model_validate_json(nothing.model_dump_json()).knowledge == ()
    assert Dialogue.model_validate_json(none.model_dump_json()).knowledge is None


def test_long_dialogues_are_fine() -> None:
    turns = tuple(Turn(speaker="ab"[i % 2], text="x" * 50_000) for i in range(100))
    dialogue = Dialogue(id="d", turns=turns)
    assert Dialogue.model_validate_json(dialogue.model_dump_json()) == dialogue
