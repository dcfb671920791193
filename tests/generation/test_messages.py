"""Who is user and who assistant."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.generation.messages import chat_messages, prompt_fields, prompt_mistakes
from palaver.schema import Dialogue, Request, Turn


def roles(*turns: str, speaker: str | None = None) -> list[tuple[str, str]]:
    said = tuple(Turn(speaker=turn[0], text=turn[1:]) for turn in turns)
    messages = chat_messages(Request(Dialogue(id="d", turns=said), speaker=speaker), "", "x")
    return [(m["role"], m["content"]) for m in messages]


def test_the_one_who_spoke_last_is_the_user() -> None:
    assert roles("a1", "b2", "a3") == [("user", "1"), ("assistant", "2"), ("user", "3")]
    assert roles("b1", "a2") == [("assistant", "1"), ("user", "2")]


def test_neighbours_are_joined_and_empty_turns_left_out() -> None:
    assert roles("a1", "a2", "b ", "a 3 ") == [("user", "1\n2\n3")]


def test_the_speaker_asked_for_is_the_assistant() -> None:
    said = ("a1", "b2", "c3", "a4")
    assert [r for r, _ in roles(*said)] == ["user", "assistant", "user"]
    assert roles(*said, speaker="c") == [("user", "1\n2"), ("assistant", "3"), ("user", "4")]
    assert roles(*said, speaker="nobody") == roles(*said)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y z", " "])), min_size=1, max_size=8)
)
@settings(max_examples=50, deadline=None)
def test_roles_alternate_and_nothing_is_lost(turns: list[tuple[str, str]]) -> None:
    messages = roles(*(speaker + text for speaker, text in turns))
    assert all(a[0] != b[0] for a, b in itertools.pairwise(messages))
    texts = [text.strip() for _, text in turns if text.strip()]
    assert "\n".join(content for _, content in messages) == "\n".join(texts)
    assert not messages or messages[-1][0] == "user"


@pytest.mark.parametrize(
    ("template", "word"),
    [
        ("{speker}", "did you mean 'speaker'"),
        ("{", "braces"),
        ("{speaker.name}", "no field"),
        ("{}", "no field"),
    ],
)
def test_prompts_that_are_wrong(template: str, word: str) -> None:
    assert any(word in mistake for mistake in prompt_mistakes(template))


def test_prompts_that_are_right(talk: Callable[..., Dialogue]) -> None:
    assert prompt_mistakes("{{a}} {speaker} {ocean} {knowledge}") == []
    assert prompt_fields("{speaker} {knowledge}") == {"speaker", "knowledge"}
    (prompt, _) = chat_messages(Request(talk("hi")), "Use: {knowledge}", "x")
    assert prompt == {"role": "system", "content": "Use: none"}
