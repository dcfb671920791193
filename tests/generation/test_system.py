"""What all kinds share: checks of OCEAN scores, speakers and contexts, and stable keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.generation.system import (
    Conditioned,
    Notes,
    check_context,
    check_ocean,
    check_speaker,
    check_takes,
    parse_ocean,
    request_key,
    stable_key,
    takes,
)
from palaver.schema import Dialogue, Reply, Request, System


def test_five_numbers_are_taken() -> None:
    assert parse_ocean("6.5,3.5, 3.5,1,7") == (6.5, 3.5, 3.5, 1.0, 7.0)
    assert check_ocean([1, 2, 3, 4, 5]) == (1.0, 2.0, 3.0, 4.0, 5.0)


def test_all_mistakes_in_scores_are_said() -> None:
    with pytest.raises(UserError) as caught:
        parse_ocean("0.5,x,3,nan,8,4")
    assert caught.value.problems == (
        "expected five numbers, found 6",
        "number 1 (openness): expected a number from 1 to 7, found 0.5",
        "number 2 (conscientiousness): expected a number from 1 to 7, found 'x'",
        "number 4 (agreeableness): expected a number from 1 to 7, found nan",
        "number 5 (neuroticism): expected a number from 1 to 7, found 8.0",
    )
    assert "openness" in caught.value.hint


@given(st.lists(st.floats() | st.integers(-3, 10), max_size=7))
@settings(max_examples=50, deadline=None)
def test_scores_pass_only_if_five_from_1_to_7(scores: list[float]) -> None:
    fine = len(scores) == 5 and all(1 <= s <= 7 for s in scores)
    try:
        assert check_ocean(scores) == tuple(map(float, scores))
        assert fine
    except UserError as error:
        assert not fine
        assert error.problems


def test_an_unknown_speaker_is_told_the_nearest_and_all() -> None:
    assert check_speaker("Ross", ["Joey", "Ross"], "x") == 1
    with pytest.raises(UserError, match="did you mean 'Joey'") as caught:
        check_speaker("joe", ["Joey", "Ross"], "friends")
    assert "friends does not know the speaker 'joe'" in caught.value.message
    assert caught.value.hint == "it knows Joey, Ross"


def test_an_empty_context_is_an_error(talk: Callable[..., Dialogue]) -> None:
    check_context(talk("", "hi"))
    with pytest.raises(UserError, match="it has no turns"):
        check_context(talk())
    with pytest.raises(UserError, match="its turns are empty"):
        check_context(talk("  ", "\n"))


class Deaf:
    name = "deaf"
    takes: frozenset[str] = frozenset()

    def reply(self, requests: Any) -> list[Reply]:
        return [Reply(str(r.speaker)) for r in requests]


@pytest.mark.parametrize(
    ("condition", "value", "word"),
    [
        ("speaker", "Joey", "default-speaker"),
        ("ocean", (4.0,) * 5, "personality"),
        ("knowledge", "x", "knowledge"),
    ],
)
def test_a_condition_nobody_heeds_is_an_error(
    condition: str, value: Any, word: str, talk: Callable[..., Dialogue]
) -> None:
    with pytest.raises(UserError, match="deaf takes no") as caught:
        check_takes(Deaf(), Request(talk("hi"), **{condition: value}))
    assert word in caught.value.hint


def test_anything_with_a_name_that_replies_is_a_system(echo: Callable[..., System]) -> None:
    assert isinstance(Deaf(), System)
    assert takes(Deaf()) == frozenset()
    assert takes(echo()) == {"speaker", "ocean", "knowledge"}


def test_a_fixed_speaker_gives_way_to_the_request(
    echo: Callable[..., Any], talk: Callable[..., Dialogue]
) -> None:
    joey = Conditioned(echo("friends"), speaker="Joey", ocean=None)
    texts = [r.text for r in joey.reply([Request(talk("hi")), Request(talk("hi"), speaker="Ross")])]
    assert texts[0].startswith("Joey heard")
    assert texts[1].startswith("Ross heard")
    assert joey.name == "friends"
    assert joey.speakers == ("Joey", "Ross")
    assert joey.settings["speaker"] == "Joey"


def test_notes_are_said_once() -> None:
    notes = Notes()
    notes.add("a", "first")
    notes.add("a", "second")
    notes.add("b", "other")
    assert list(notes) == ["first", "other"]


def test_keys_do_not_depend_on_the_process(talk: Callable[..., Dialogue]) -> None:
    code = "from palaver.generation.system import stable_key; print(stable_key('d', 2))"
    runs = {subprocess.check_output([sys.executable, "-c", code]) for _ in range(2)}
    assert runs == {f"{stable_key('d', 2)}\n".encode()}
    assert request_key(Request(talk("hi", "you", id="d"))) == stable_key("d", 2)
    assert request_key(Request(talk("hi"), key=7)) == 7


@given(
    st.lists(st.text(max_size=3), min_size=1, max_size=3),
    st.lists(st.text(max_size=3), min_size=1, max_size=3),
)
@settings(max_examples=50, deadline=None)
def test_keys_tell_parts_apart(left: list[str], right: list[str]) -> None:
    assert (stable_key(*left) == stable_key(*right)) is (left == right)
    assert 0 <= stable_key(*left) < 1 << 64


def test_the_package_starts_without_torch() -> None:
    code = (
        "import sys, palaver, palaver.generation.replay, palaver.generation.openai;"
        "palaver.generate, palaver.open_system; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("scores", [(10**400, 1, 1, 1, 1), (1, 2, 3, 4, float("nan")), "12345", (None,) * 5])
def test_scores_no_computer_can_use(scores: Any) -> None:
    with pytest.raises(UserError, match="these are not OCEAN scores"):
        check_ocean(scores)


def test_a_key_of_half_a_character() -> None:
    assert stable_key("\ud800") != stable_key("?")
