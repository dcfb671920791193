"""Conversations that the tests of this room share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import read_corpus
from palaver.schema import Article, Dialogue, Entity, Fact, ReadingSet, Section, Turn

Talk = Callable[..., Dialogue]


def make_talk(
    id: str = "c1",
    texts: Sequence[str] = ("Do owls fly at night?", "Most of them do, I have read."),
    *,
    entities: Sequence[str] = ("Owl",),
    article: str = "night",
    turn_labels: Sequence[dict[str, Any]] = (),
    knowledge: Sequence[tuple[str, ...]] = (),
    **labels: Any,
) -> Dialogue:
    """A conversation of two who speak in turn, with reading sets about `entities`."""
    turns = [
        Turn(
            speaker=f"agent_{1 + n % 2}",
            text=text,
            labels=turn_labels[n] if n < len(turn_labels) else {},
            knowledge=knowledge[n] if n < len(knowledge) else (),
        )
        for n, text in enumerate(texts)
    ]
    sections = tuple(
        Section(
            entity=Entity(id=name, name=name, topic="Nature"),
            lead=f"{name} is a thing of nature.",
            lead_form="shortened",
            facts=(Fact(id=f"FS{n}-1", text=f"A fact about {name}.", entity=name),),
        )
        for n, name in enumerate(entities, start=1)
    )
    text = Article(id=article, title="By night", parts=("One.", "Two.", "Three.", "Four."), url=article)
    return Dialogue(
        id=id,
        turns=tuple(turns),
        speakers=("agent_1", "agent_2"),
        knowledge=tuple(
            ReadingSet(id=f"{id}-{side}", sections=sections, article=text, configuration="D")
            for side in ("agent_1", "agent_2")
        ),
        labels={"config": "D", "article_url": article, **labels},
    )


@pytest.fixture
def talk() -> Talk:
    return make_talk


@pytest.fixture(scope="session")
def valid_rare(shared_data: Path) -> list[Dialogue]:
    """A split of the real release."""
    return list(read_corpus("topical-chat", root=shared_data, split="valid_rare"))
