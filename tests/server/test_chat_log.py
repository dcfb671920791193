"""The log in its database: what cannot be stored has not happened; all processes hold the same picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chatting import PLAIN

from palaver.collection.settings import parse_collection
from palaver.errors import UserError
from palaver.server.chat_log import ChatLog, create_collection, next_state
from palaver.server.database import Database
from palaver.server.study_state import StudyState


@pytest.fixture
def collection(database: Database, clock: Any) -> Database:
    text = PLAIN.format(fewest=2)
    create_collection(database, parse_collection(text, "x"), text, Path(), clock)
    return database


def come_in(database: Database, clock: Any) -> str:
    state = StudyState(database, clock)
    person = state.enter()
    state.begin(person)
    return person


def join(person: str) -> Any:
    return lambda host, now: host.join(person, now)


def ready(person: str) -> Any:
    return lambda host, now: host.say_ready(person, now)


def say(person: str, text: str) -> Any:
    return lambda host, now: host.say(person, text, text, now)


def pair(database: Database, clock: Any) -> tuple[ChatLog, ChatLog, str, str]:
    """Two processes with one person each, who have been paired."""
    first, second = ChatLog(database, clock), ChatLog(database, clock)
    ann, bob = come_in(database, clock), come_in(database, clock)
    first.run([join(ann)])
    second.run([join(bob)])
    first.run([ready(ann)])
    second.run([ready(bob)])
    return first, second, ann, bob


def test_two_processes_hold_the_same_picture(collection: Database, clock: Any) -> None:
    first, second, ann, bob = pair(collection, clock)
    assert first.run([say(ann, "one")])[0] == [0]
    assert second.run([say(bob, "two"), say(bob, "three")])[0][0] == 1
    first.look()
    assert [turn.text for turn in first.host.lobby.rooms[1].turns] == ["one", "two"]
    assert first.host.lobby.rooms == second.host.lobby.rooms
    assert first.host.lobby.visitors == second.host.lobby.visitors


def test_one_refusal_does_not_hold_the_others_up(collection: Database, clock: Any) -> None:
    first, _, ann, bob = pair(collection, clock)
    results, _ = first.run([say(ann, "one"), say(ann, "again"), say("stranger", "x"), say(bob, "two")])
    assert [isinstance(result, UserError) for result in results] == [False, True, True, False]


def test_what_cannot_be_stored_has_not_happened(
    collection: Database, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, ann, _ = pair(collection, clock)

    def fail(connection: object, events: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(first, "_store", fail)
        with pytest.raises(OSError, match="full"):
            first.run([say(ann, "one")])
    assert first.host.lobby.rooms[1].turns == []
    assert first.run([say(ann, "one")])[0] == [0]
    assert [turn.text for turn in ChatLog(collection, clock).host.lobby.rooms[1].turns] == ["one"]


def test_signs_of_life_reach_the_other_process(collection: Database, clock: Any) -> None:
    """Each process hears one of the two: neither takes the other one for lost."""
    first, second, ann, bob = pair(collection, clock)
    for _ in range(60):
        clock.sleep(5)
        first.run([], {ann: clock()})
        second.run([], {bob: clock()})
    assert not [v for v in first.host.lobby.visitors.values() if v.is_away]
    for _ in range(30):  # now one of them goes
        clock.sleep(5)
        first.run([], {ann: clock()})
        second.run([])
    first.look()
    assert first.host.lobby.visitors[bob].exit == "lost"
    assert first.host.lobby.visitors[ann].state == "seated"


def test_a_restart_gives_everybody_the_grace_time(collection: Database, clock: Any) -> None:
    *_, ann, _ = pair(collection, clock)
    clock.sleep(3600)
    again = ChatLog(collection, clock)
    again.run([])
    assert again.host.lobby.visitors[ann].state == "seated"
    for _ in range(20):
        clock.sleep(5)
        again.run([])
    assert again.host.lobby.visitors[ann].exit == "lost"


@pytest.mark.parametrize(
    ("exit", "pay", "has_survey", "state"),
    [
        ("finished", "full", False, "done"),
        ("finished", "full", True, "survey"),
        ("partner left", "partial", False, "done"),
        ("waited", "waiting", True, "survey"),
        ("unneeded", "none", True, "unneeded"),
        ("lost", "none", False, None),
        ("left", "none", True, "withdrawn"),
    ],
)
def test_where_somebody_goes_from_here(exit: str, pay: str, has_survey: bool, state: str | None) -> None:
    assert next_state({"exit": exit, "pay": pay}, has_survey=has_survey) == state
