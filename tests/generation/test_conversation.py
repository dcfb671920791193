"""Turns, other replies, and turns taken back; a turn that fails changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from palaver.errors import UserError
from palaver.generation.conversation import Conversation
from palaver.schema import Reply, Request


class Deaf:
    name = "deaf"
    takes: frozenset[str] = frozenset()

    def reply(self, requests: Any) -> list[Reply]:
        return [Reply(f"{len(r.dialogue.turns)} turns, speaker {r.speaker}") for r in requests]


def test_each_system_keeps_its_own_replies(echo: Callable[..., Any]) -> None:
    chat = Conversation([echo("one"), Deaf()], seed=3)
    chat.say("hello")
    chat.say(" bye ")
    one, deaf = chat.dialogues()
    assert (one.id, deaf.id) == ("chat-one", "chat-deaf")
    assert [t.text for t in deaf.turns] == ["hello", "1 turns, speaker None", "bye", "3 turns, speaker None"]
    assert [t.text for t in one.turns[::2]] == ["hello", "bye"]
    assert one.turns[1].speaker == "one"
    assert one.turns[1].labels == {"logprob": -1.5}
    assert one.labels == {"system": "one", "seed": 3}


def test_retry_draws_another_and_the_seed_decides(echo: Callable[..., Any]) -> None:
    def replies(seed: int) -> list[str]:
        chat = Conversation([echo()], seed=seed)
        found = [chat.say("hello")[0], chat.retry()[0], chat.retry()[0], chat.say("x")[0]]
        assert len(chat.dialogues()[0].turns) == 4
        assert chat.dialogues()[0].turns[1].text == found[2].reply.text
        return [said.reply.text for said in found]

    assert replies(0) == replies(0)
    assert len(set(replies(0)[:3])) == 3
    assert replies(0) != replies(1)


def test_undo(echo: Callable[..., Any]) -> None:
    chat = Conversation([echo()])
    first = chat.say("hello")
    chat.say("bye")
    assert chat.undo() == "bye"
    assert chat.undo() == "hello"
    assert chat.dialogues() == []
    for action in (chat.undo, chat.retry):
        with pytest.raises(UserError):
            action()
    assert chat.say("hello") == first


def test_a_failed_turn_changes_nothing(echo: Callable[..., Any]) -> None:
    class Broken:
        name = "broken"
        fails = False

        def reply(self, requests: Any) -> list[Reply]:
            return [Reply("", skipped="gone") if self.fails else Reply("fine") for _ in requests]

    broken = Broken()
    chat = Conversation([echo(), broken])
    chat.say("hello")
    broken.fails = True
    for action in (lambda: chat.say("again"), chat.retry):
        before = chat.dialogues()
        with pytest.raises(UserError, match="broken has no reply: gone"):
            action()
        assert chat.dialogues() == before
    with pytest.raises(UserError, match="empty"):
        chat.say("  ")


def test_conditions_reach_those_who_take_them(echo: Callable[..., Any]) -> None:
    chat = Conversation([echo("one"), Deaf()])
    assert chat.set_speaker("Joey") == ["deaf takes no speaker and goes on without"]
    one, deaf = chat.say("hi")
    assert one.reply.text.startswith("Joey heard")
    assert (one.who, deaf.who) == ("Joey (one)", "deaf")
    chat.set_ocean([4, 4, 4, 4, 4])
    assert chat.speaker is None
    assert chat.say("hi")[0].reply.text.startswith("(4.0, 4.0")
    chat.set_knowledge(lambda history: f"about {history[-1]}")
    assert [s.knowledge for s in chat.say("cheese")] == ["about cheese", None]
    with pytest.raises(UserError, match="did you mean 'Joey'"):
        chat.set_speaker("Joy")
    assert chat.ocean == (4.0,) * 5
    chat.set_ocean(None)
    assert chat.say("hi")[0].reply.text.startswith("nobody heard")


@pytest.mark.parametrize("condition", ["speaker", "ocean", "knowledge"])
def test_a_condition_that_nobody_takes(condition: str) -> None:
    chat = Conversation([Deaf()])
    values: dict[str, Any] = {"speaker": "Joey", "ocean": (4.0,) * 5, "knowledge": lambda history: "x"}
    with pytest.raises(UserError, match="deaf takes no"):
        getattr(chat, f"set_{condition}")(values[condition])
    getattr(chat, f"set_{condition}")(None)
    assert chat.say("hi")


def test_two_systems_of_one_name(echo: Callable[..., Any]) -> None:
    with pytest.raises(UserError, match="different systems"):
        Conversation([echo(), echo()])


def test_half_a_character_and_a_logprob_that_is_no_number() -> None:
    class Strange:
        name = "strange"
        takes: frozenset[str] = frozenset()

        def reply(self, requests: Sequence[Request]) -> list[Reply]:
            return [Reply(requests[0].dialogue.turns[-1].text, float("nan"))]

    conversation = Conversation([Strange()])
    (said,) = conversation.say("a\ud800b")
    assert said.reply.text == "a?b"
    (dialogue,) = conversation.dialogues()
    assert dict(dialogue.turns[-1].labels) == {}
