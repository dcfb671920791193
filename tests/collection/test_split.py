"""Splits by how frequent entities are, and what leaks from training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.collection.split import TOGETHER, describe_split, split_conversations
from palaver.errors import UserError
from palaver.schema import Dialogue, Entity, ReadingSet, Section, Turn

Talk = Callable[..., Dialogue]
SPLITS = {"train", "valid_freq", "valid_rare", "test_freq", "test_rare"}


def conversation(number: int, entities: list[int], article: int, people: list[int]) -> Dialogue:
    turns = tuple(Turn(speaker=side, text="Hm.") for side in ("agent_1", "agent_2"))
    sections = tuple(Section(entity=Entity(id=f"e{e}", name=f"e{e}")) for e in entities)
    labels = {"article": f"a{article}", "original_split": "old"}
    labels |= {f"participant_agent_{n}": f"p{one}" for n, one in enumerate(people, start=1)}
    knowledge = (ReadingSet(id=f"{number}", sections=sections),)
    return Dialogue(id=f"c{number}", turns=turns, knowledge=knowledge, labels=labels)


collections = st.lists(
    st.tuples(
        st.lists(st.integers(0, 12), min_size=1, max_size=3, unique=True),
        st.integers(0, 30),
        st.lists(st.integers(0, 40), max_size=2, unique=True),
    ),
    min_size=5,
    max_size=60,
)


@settings(max_examples=25, deadline=None)
@given(collections, st.sets(st.sampled_from(TOGETHER)), st.integers(0, 3), st.integers(0, 3))
def test_every_conversation_is_in_one_split_and_groups_are_whole(
    rows: list[tuple[list[int], int, list[int]]], together: set[str], least_seen: int, seed: int
) -> None:
    dialogues = [conversation(n, *row) for n, row in enumerate(rows)]
    try:
        parted = split_conversations(
            dialogues, share=0.1, together=sorted(together), least_seen=least_seen, seed=seed
        )
    except UserError as error:
        assert "cannot be split" in error.message
        return
    assert [d.id for d in parted] == [d.id for d in dialogues]
    assert [d.turns for d in parted] == [d.turns for d in dialogues]
    split_of = {d.id: d.labels["split"] for d in parted}
    assert set(split_of.values()) == SPLITS
    assert "original_split" not in parted[0].labels
    report = {row.split: row for row in describe_split(parted).rows}
    if "article" in together:
        assert not any(row.shared_articles for row in report.values())
    if "participant" in together:
        assert not any(row.shared_people for row in report.values())
    kept = Counter(e for d in parted if d.labels["split"] == "train" for e in names_of(d))
    for dialogue in parted:
        if str(dialogue.labels["split"]).endswith("freq"):
            assert all(kept[entity] >= least_seen for entity in names_of(dialogue))
    again = split_conversations(
        dialogues, share=0.1, together=sorted(together), least_seen=least_seen, seed=seed
    )
    assert again == parted


def names_of(dialogue: Dialogue) -> list[str]:
    return [section.entity.name for one in dialogue.knowledge or () for section in one.sections]


def test_the_rarest_are_rare(talk: Talk) -> None:
    common = [talk(f"c{n}", entities=("Owl", "Tea"), article=f"a{n}") for n in range(36)]
    rare = [talk(f"r{n}", entities=("Owl", f"Rare {n}"), article=f"r{n}") for n in range(4)]
    parted = split_conversations([*common, *rare], share=0.05)
    assert {d.labels["split"] for d in parted if d.id.startswith("r")} == {"valid_rare", "test_rare"}
    report = {row.split: row for row in describe_split(parted).rows}
    assert {name: row.conversations for name, row in report.items()} == dict.fromkeys(SPLITS, 2) | {
        "train": 32
    }
    assert report["test_rare"].unseen_entities == 2
    assert report["test_rare"].seen < report["test_freq"].seen == 32


def test_leaks_are_counted(talk: Talk) -> None:
    first = talk("1", split="train", article="x", participant_agent_1="ann", participant_agent_2="bob")
    second = talk("2", split="test_freq", article="x", participant_agent_1="cid", participant_agent_2="bob")
    third = talk("3", split="test_freq", article="y", entities=("Tea",), participant_agent_1="cid|ann")
    rows = {row.split: row for row in describe_split([first, second, third]).rows}
    test = rows["test_freq"]
    assert (test.shared_articles, test.shared_people, test.unseen_entities) == (1, 2, 1)
    assert (rows["train"].shared_articles, rows["train"].shared_people) == (None, None)
    unknown = describe_split([talk("1", split="train"), talk("2", split="valid_rare")])
    assert unknown.rows[1].shared_people is None
    assert unknown.notes == (
        "2 conversations with no participants: whether they are in training is not known",
    )


def test_what_cannot_be_split(talk: Talk) -> None:
    same_article = [talk(f"c{n}") for n in range(30)]
    with pytest.raises(UserError, match="30 conversations in 1 group cannot be split"):
        split_conversations(same_article)
    with pytest.raises(UserError, match="the same id"):
        split_conversations([talk(), talk()])
    plain = Dialogue(id="d", turns=(Turn(speaker="a", text="x"),))
    with pytest.raises(UserError, match="none is frequent or rare"):
        split_conversations([plain])
    with pytest.raises(UserError, match="between 0 and 0.25"):
        split_conversations(same_article, share=0.3)


def test_on_the_release_articles_leak_unless_kept_together(valid_rare: list[Dialogue]) -> None:
    rows = {row.split: row for row in describe_split(split_conversations(valid_rare, share=0.1)).rows}
    assert rows["test_rare"].seen < rows["test_freq"].seen / 3
    assert not any(row.shared_articles for row in rows.values())
    mixed = split_conversations(valid_rare, share=0.1, together=())
    leaks = {row.split: row.shared_articles for row in describe_split(mixed).rows}
    assert (leaks["test_freq"] or 0) > 10
