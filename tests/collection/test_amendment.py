"""What may change in a collection while it runs."""

from __future__ import annotations

import pytest

from palaver.collection.amendment import compare_collections
from palaver.collection.settings import Collection, parse_collection, preset_text

BEFORE = preset_text("topical-chat")


def changed(old: str, new: str) -> Collection:
    assert old in BEFORE
    return parse_collection(BEFORE.replace(old, new, 1), "collection.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("wait_minutes = 5 ", "wait_minutes = 8 ", "conversation.wait_minutes: 5.0 becomes 8.0"),
        ("Read what stands beside", "Please read what stands beside", "instructions is changed"),
        ("How good is this message?", "How good was this message?", "turn_rating: the wording"),
        ("[partners]", '[partners]\nsubstitute = "default"', "partners.substitute: None becomes default"),
        ("[knowledge]", "[pay]\nconversation = 3\n[knowledge]", "pay is changed"),
    ],
)
def test_these_may_change(old: str, new: str, said: str) -> None:
    amendment = compare_collections(parse_collection(BEFORE, "collection.toml"), changed(old, new))
    assert amendment.refusals == ()
    assert len(amendment.changes) == 1
    assert amendment.changes[0].startswith(said)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seed = 0", "seed = 1", "seed cannot change"),
        ("fewest_turns = 20", "fewest_turns = 10", "conversation.fewest_turns cannot change"),
        ("most_uses = 4", "most_uses = 5", "knowledge cannot change"),
        ("# wanted = 40", "wanted = 40", "conversation.wanted cannot change: reading sets"),
        ("[partners]", "[partners]\ndisclosed = false", "partners.disclosed cannot change"),
        ('"Neutral",', '"Neutral", "Bored",', "sentiment: another scale"),
        ("How good is this message?", "Is it true?", "turn_rating: this is another question"),
        ('criterion = "turn_rating"', 'criterion = "grade"', "about_partner: questions cannot be added"),
    ],
)
def test_these_may_not(old: str, new: str, said: str) -> None:
    amendment = compare_collections(parse_collection(BEFORE, "collection.toml"), changed(old, new))
    assert [refusal for refusal in amendment.refusals if refusal.startswith(said)]
