"""Who is the user, who the system."""

from __future__ import annotations

from collections import Counter

import pytest

from palaver.readers.roles import GUESSED, is_silent, with_roles, without_empty_turns
from palaver.schema import Dialogue, Turn


def talk(*speakers: str) -> Dialogue:
    return Dialogue(id="d", turns=tuple(Turn(speaker=who, text="x") for who in speakers))


@pytest.mark.parametrize(
    ("speakers", "roles", "guessed"),
    [
        (("Human", "Bot"), ("user", "system"), 0),
        (("assistant", "Ann"), ("system", "user"), 0),
        (("Ann", "you"), ("system", "user"), 0),
        (("Ann", "Zed", "Ann"), ("user", "system", "user"), 1),
        (("Ann",), ("user",), 0),
        (("user", "bot", "Eve"), ("user", "system", "Eve"), 0),
        (("user", "human"), ("user", "user"), 0),
        ((), (), 0),
    ],
)
def test_by_name_or_who_is_left_or_who_began(
    speakers: tuple[str, ...], roles: tuple[str, ...], guessed: int
) -> None:
    tally: Counter[str] = Counter()
    dialogue = with_roles(talk(*speakers), tally)
    assert tuple(turn.speaker for turn in dialogue.turns) == roles
    assert dialogue.speakers == tuple(dict.fromkeys(roles))
    assert tally[GUESSED] == guessed
    assert Dialogue.model_validate(dialogue.model_dump()) == dialogue


def test_turns_that_say_nothing_can_be_left_out() -> None:
    said = (Turn(speaker="a", text="x"), Turn(speaker="b", text=" \n"), Turn(speaker="a", text="y"))
    tally: Counter[str] = Counter()
    dialogue = without_empty_turns(Dialogue(id="d", turns=said), tally)
    assert dialogue == Dialogue(id="d", turns=(said[0], said[2]))
    assert tally == {"turns without text, left out": 1}
    assert without_empty_turns(dialogue) is dialogue


@pytest.mark.parametrize(
    ("turns", "silent"),
    [
        ((("user", "hi"), ("bot", " "), ("user", "hello?")), True),
        ((("Ann", "hi"), ("Zed", "")), True),
        ((("user", "hi"), ("bot", "\u200b\ufeff ")), True),  # nothing of it can be seen
        ((("user", "hi"), ("user", "hello?")), True),
        ((("Ann", "hi"), ("Ann", "hello?")), False),  # who knows who Ann is
        ((("bot", "hi"), ("bot", "hello?")), False),
        ((("user", "hi"), ("bot", "hello")), False),
        ((("user", ""), ("bot", "")), False),
        ((), False),
    ],
)
def test_a_silent_system(turns: tuple[tuple[str, str], ...], silent: bool) -> None:
    dialogue = Dialogue(id="d", turns=tuple(Turn(speaker=who, text=text) for who, text in turns))
    assert is_silent(dialogue) is silent
