"""Whose reading set it is and which sentences it holds."""

from __future__ import annotations

import pytest

from palaver.knowledge.candidates import candidates, candidates_of, reading_sentences, reading_set_of
from palaver.schema import Dialogue, Entity, ReadingSet, Section, Turn


def a_set(id: str, lead: str = "One. Two.") -> ReadingSet:
    return ReadingSet(id=id, sections=(Section(entity=Entity(id="e", name="e"), lead=lead),))


def with_sets(*ids: str) -> Dialogue:
    turns = (Turn(speaker="agent_2", text="hello"), Turn(speaker="agent_1", text="hi"))
    return Dialogue(id="d", turns=turns, knowledge=tuple(a_set(id) for id in ids) or None)


def test_leads_facts_and_article_parts_in_reading_order(talk: Dialogue) -> None:
    assert candidates(talk, 0) == [
        "The octopus is a sea animal with eight arms.",
        "It has three hearts and blue blood.",
        "An octopus can open a jar from the inside.",
        "Some octopuses use coconut shells as armour.",
    ]
    assert candidates(talk, 1)[-2:] == ["Genoa is a port.", "It is old."]
    assert candidates(talk, 3) == candidates(talk, 1)


def test_a_sentence_that_comes_twice_counts_once_and_is_counted() -> None:
    found = candidates_of(a_set("x", "One. Two. One. One."))
    assert (found.sentences, found.n_duplicates) == (("One.", "Two."), 2)
    assert candidates_of(None).sentences == ()


@pytest.mark.parametrize(
    ("ids", "of_agent_2"),
    [
        (["d-agent_1", "d-agent_2"], "d-agent_2"),
        (["agent_2", "agent_1"], "agent_2"),
        (["first", "second"], "first"),  # no names: in the order of the speakers, and agent_2 spoke first
        (["for everybody"], "for everybody"),
        (["d-agent_1", "other"], None),
        (["d-subagent_2", "d-agent_1"], None),
        (["a", "b", "c"], None),
        ([], None),
    ],
)
def test_whose_reading_set(ids: list[str], of_agent_2: str | None) -> None:
    found = reading_set_of(with_sets(*ids), "agent_2")
    assert (found.id if found else None) == of_agent_2


def test_all_sentences_once(talks: list[Dialogue]) -> None:
    found = reading_sentences(talks)
    assert len(found) == len(set(found)) == 9
    assert set(found) == {s for talk in talks for i in (0, 1) for s in candidates(talk, i)}
