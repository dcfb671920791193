"""Known items and broken outputs: careful raters pass, whatever the scale and the text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.schema import Dialogue, Item, Output, Turn
from palaver.schema.delivery import Expected
from palaver.studies.checks import broken_output, can_degrade, degrade, met, rated_lower

relaxed = settings(max_examples=100, deadline=None)


def expect(**fields: object) -> Expected:
    return Expected.model_validate({"criterion": "c", "system": "s", **fields})


@pytest.mark.parametrize(
    ("fields", "right", "wrong"),
    [
        ({"low": 3}, ["3", "4", "3.0"], ["2", "2.99", "win", "", "nan"]),
        ({"high": 3}, ["3", "-1"], ["4", "x", "nan"]),
        ({"low": 2, "high": 3}, ["2", "3"], ["1", "4"]),
        ({"values": ["win", "tie"]}, ["win", "tie"], ["loss", "WIN", ""]),
        ({"values": ["5"], "low": 1}, ["5"], ["1"]),
    ],
)
def test_what_is_expected(fields: dict[str, object], right: list[str], wrong: list[str]) -> None:
    expected = expect(**fields)
    assert [expected.met_by(v) for v in right] == [True] * len(right)
    assert [expected.met_by(v) for v in wrong] == [False] * len(wrong)


def test_no_answer_does_not_meet_an_expectation() -> None:
    expected = [expect(low=1), expect(system="other", low=1), expect(criterion="other", low=1)]
    assert met(expected, {("c", "s", None): "1", ("other", "s", None): "0"}) == [True, False, False]
    assert met([], {("c", "s", None): "1"}) == []


def item_of(*texts: str) -> Item:
    return Item(id="i", outputs=tuple(Output(system=f"s{n}", text=t) for n, t in enumerate(texts)))


words = st.lists(
    st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=5), max_size=12
).map(" ".join)


@relaxed
@given(texts=st.lists(words, min_size=1, max_size=4), seed=st.integers())
def test_exactly_one_output_is_broken_and_always_the_same_way(texts: list[str], seed: int) -> None:
    item = item_of(*texts)
    broken = degrade(item, seed)
    assert broken == degrade(item, seed)
    which = broken_output(item, seed)
    for n, (before, after) in enumerate(zip(item.outputs, broken.outputs, strict=True)):
        assert after.system == before.system
        if n != which:
            assert after == before
    sound, spoiled = (i.outputs[which].text or "" for i in (item, broken))
    assert set(spoiled.split()) <= set(sound.split())
    assert can_degrade(item, seed) == (broken != item)


@relaxed
@given(text=words, seed=st.integers())
def test_a_text_of_different_words_never_comes_out_sound(text: str, seed: int) -> None:
    parts = text.split()
    if len(set(parts)) == len(parts) >= 2:
        assert degrade(item_of(text), seed).outputs[0].text != text


@pytest.mark.parametrize("text", ["", "yes", "yes yes", "no no "])
def test_what_cannot_be_broken_is_not_used(text: str) -> None:
    item = item_of(text)
    spoiled = degrade(item, 0).outputs[0].text
    assert not can_degrade(item, 0)
    assert (spoiled or "").split() == text.split()


@pytest.mark.parametrize("text", ["yes ", "  yes", "two  words words"])
def test_lost_spaces_alone_break_nothing(text: str) -> None:
    """A rater cannot see them."""
    item = item_of(text)
    if (degrade(item, 0).outputs[0].text or "").split() == text.split():
        assert not can_degrade(item, 0)


def test_a_dialogue_is_broken_turn_by_turn() -> None:
    turns = (
        Turn(speaker="a", text="how do you do today"),
        Turn(speaker="b", text="very well and how are you"),
    )
    item = Item(id="i", outputs=(Output(system="s", dialogue=Dialogue(id="d", turns=turns)),))
    after = degrade(item, 3).outputs[0].dialogue
    assert after is not None
    assert [t.speaker for t in after.turns] == ["a", "b"]
    for before, turn in zip(turns, after.turns, strict=True):
        assert turn.text != before.text
        assert len(turn.text.split()) == len(before.text.split()) - len(before.text.split()) // 3


def test_every_output_gets_its_turn() -> None:
    chosen = {broken_output(Item(id=f"i{n}", outputs=item_of("a", "b", "c").outputs), 1) for n in range(50)}
    assert chosen == {0, 1, 2}


LOWEST = {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("before", "after", "passed"),
    [
        ({"a": "5"}, {"a": "2"}, True),
        ({"a": "5"}, {"a": "5"}, False),
        ({"a": "2"}, {"a": "5"}, False),
        ({"a": "5", "b": "5"}, {"a": "4", "b": "5"}, True),
        ({"a": "5", "b": "4"}, {"a": "4", "b": "5"}, False),
        ({"a": "1"}, {"a": "1"}, True),  # nothing is lower than the lowest
        ({"a": "1"}, {"a": "2"}, False),
        ({"a": "1", "b": "5"}, {"a": "1", "b": "5"}, False),
        ({"a": "1", "b": "5"}, {"a": "1", "b": "4"}, True),
        ({}, {}, True),
        ({"a": "5"}, {}, True),
        ({"word": "win"}, {"word": "loss"}, True),
        ({"word": "win", "a": "3"}, {"word": "win", "a": "3"}, False),
        ({"a": "100"}, {"a": "99.5"}, True),
    ],
)
def test_the_broken_copy_must_be_rated_lower(
    before: dict[str, str], after: dict[str, str], passed: bool
) -> None:
    assert rated_lower(before, after, LOWEST) is passed
