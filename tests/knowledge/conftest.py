"""Small conversations about three subjects, written for these tests, with what each side had read."""

from __future__ import annotations

import pytest

from palaver.schema import Article, Dialogue, Entity, Fact, ReadingSet, Section, Turn

LEAD = "The octopus is a sea animal with eight arms. It has three hearts and blue blood."
FACT = "An octopus can open a jar from the inside. Some octopuses use coconut shells as armour."
SHIP = "The ship left the harbour of Genoa in 1492. It has three hearts and blue blood."
PIANO = "A piano has eighty-eight keys. The first pianos were built in Florence around 1700."
SENTENCES = [
    "A piano has 88 keys.",
    "Genoa is an old port.",
    "An octopus has three hearts.",
    "Tea is a plant.",
]
HISTORY = ["Do you like music?", "I went to Genoa.", "Oh, an old port! Do you play the piano?"]


def reading_set(id: str, *texts: str, parts: tuple[str, ...] = ()) -> ReadingSet:
    sections = tuple(
        Section(
            entity=Entity(id=f"e{i}", name=f"e{i}"),
            lead=lead,
            facts=(Fact(id="f1", text=FACT),) if lead == LEAD else (),
        )
        for i, lead in enumerate(texts)
    )
    article = Article(id="news", parts=parts) if parts else None
    return ReadingSet(id=id, sections=sections, article=article)


def dialogue(id: str = "talk", *, sets: tuple[ReadingSet, ...] | None = None) -> Dialogue:
    said = [
        ("ann", "Do you know anything about the octopus?"),
        ("bob", "Only that ships used to leave Genoa's harbour."),
        ("ann", "An octopus can open a jar, even from the inside!"),
        ("bob", "Amazing. And I play the piano, all eighty-eight keys."),
        ("ann", "They have blue blood and three hearts."),
        ("bob", "zzz"),
    ]
    if sets is None:
        ann = reading_set(f"{id}-ann", LEAD)
        sets = (reading_set(f"{id}-bob", SHIP, PIANO, parts=("Genoa is a port. ", "It is old.")), ann)
    return Dialogue(id=id, turns=tuple(Turn(speaker=s, text=t) for s, t in said), knowledge=sets or None)


@pytest.fixture
def talk() -> Dialogue:
    """Ann knows octopuses, Bob ships and pianos. Bob's reading set comes first, Ann speaks first."""
    return dialogue()


@pytest.fixture
def talks() -> list[Dialogue]:
    """Ten of them, one without anything to read."""
    return [dialogue(f"t{i}") for i in range(9)] + [dialogue("bare", sets=())]
