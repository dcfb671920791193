"""The layout of Topical-Chat's release: what is written there is read back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.collection.release import write_release
from palaver.corpora.catalogue import read_corpus
from palaver.errors import UserError
from palaver.schema import Article, Dialogue, Entity, Fact, ReadingSet, Section, Turn

Talk = Callable[..., Dialogue]
AGENTS = ("agent_1", "agent_2")
FIELDS = {"agent", "message", "sentiment", "knowledge_source", "turn_rating"}
"""Those of a turn, which the release's readers (ParlAI's among them) ask for without looking."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = texts.filter(bool)
facts = names.filter(lambda text: text.strip() and not text.startswith("t3_"))


def read(folder: Path) -> list[Dialogue]:
    return [d.model_copy(update={"source": ""}) for d in read_corpus("topical-chat", root=folder)]


@st.composite
def releases(draw: st.DrawFn) -> list[Dialogue]:
    """Conversations that the layout holds without a loss."""
    topics = draw(st.dictionaries(names, texts, min_size=1, max_size=3))
    ids = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    splits = ["train", "valid_freq", "valid_rare", "test_freq", "test_rare"]
    return [draw(conversations(id, topics, draw(st.sampled_from(splits)))) for id in ids]


@st.composite
def conversations(draw: st.DrawFn, id: str, topics: dict[str, str], split: str) -> Dialogue:
    config = draw(st.sampled_from(["A", "B", "C", "D", "my own"]))
    url = draw(names)
    parts = () if config == "C" else (*draw(st.lists(texts, max_size=3)), draw(names))
    article = Article(id=url, url=url, title=draw(texts), parts=parts) if parts else None

    def section(number: int) -> Section:
        name = draw(st.sampled_from(sorted(topics)))
        lead = draw(texts)
        form = draw(st.sampled_from(["shortened", "summarised"])) if lead else "none"
        own = [
            Fact(id=f"FS{number}-{n}", text=text, entity=name)
            for n, text in enumerate(draw(st.lists(facts, max_size=2)), start=1)
        ]
        entity = Entity(id=name, name=name, topic=topics[name])
        return Section(entity=entity, lead=lead, lead_form=form, facts=tuple(own))

    sets = tuple(
        ReadingSet(
            id=f"{id}-{agent}",
            sections=tuple(section(n + 1) for n in range(draw(st.integers(0, 3)))),
            article=article,
            configuration=config,
        )
        for agent in AGENTS
    )
    turns = [Turn(speaker=agent, text=draw(texts)) for agent in AGENTS]
    for _ in range(draw(st.integers(0, 2))):
        said: dict[str, Any] = {
            name: draw(names) for name in ("sentiment", "turn_rating") if draw(st.booleans())
        }
        sources = tuple(draw(st.lists(texts, max_size=2)))
        speaker = draw(st.sampled_from(AGENTS))
        turns.append(Turn(speaker=speaker, text=draw(texts), knowledge=sources, labels=said))
    labels = {"split": split, "config": config, "article_url": url}
    labels |= {f"rating_{agent}": draw(texts) for agent in AGENTS if draw(st.booleans())}
    knowledge = sets if draw(st.booleans()) else None
    return Dialogue(id=id, turns=tuple(turns), speakers=AGENTS, knowledge=knowledge, labels=labels)


@settings(max_examples=25, deadline=None)
@given(releases())
def test_round_trip(dialogues: list[Dialogue]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        release = write_release(dialogues, Path(folder))
        assert sum(release.conversations.values()) == len(dialogues)
        assert (release.left_out, release.lost) == ({}, {})
        assert {d.id: d for d in read(Path(folder))} == {d.id: d for d in dialogues}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.from_type(Dialogue), min_size=1, max_size=4))
def test_whatever_is_written_can_be_read_and_written_again(dialogues: list[Dialogue]) -> None:
    """Any dialogue is either in the release, with all its messages, or left out with a reason."""
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        try:
            release = write_release(dialogues, first)
        except UserError as error:
            assert error.problems
            return
        back = read(first)
        assert len(back) + sum(map(len, release.left_out.values())) == len(dialogues)
        messages = {(d.id, tuple(turn.text for turn in d.turns)) for d in dialogues}
        assert {(d.id, tuple(turn.text for turn in d.turns)) for d in back} <= messages
        write_release(back, second)
        for path in first.rglob("*.json"):
            assert path.read_bytes() == (second / path.relative_to(first)).read_bytes()


def test_every_field_of_the_release_is_there(talk: Talk, tmp_path: Path) -> None:
    write_release([talk(), talk("c2", config="C", article="far", split="test_freq")], tmp_path)
    for split in ("train", "valid_freq", "valid_rare", "test_freq", "test_rare"):
        conversations = json.loads((tmp_path / "conversations" / f"{split}.json").read_text())
        reading_sets = json.loads((tmp_path / "reading_sets" / "post-build" / f"{split}.json").read_text())
        for id, conversation in conversations.items():
            assert conversation.keys() == {"article_url", "config", "content", "conversation_rating"}
            assert conversation["conversation_rating"].keys() == set(AGENTS)
            assert all(turn.keys() == FIELDS for turn in conversation["content"])
            record = reading_sets[id]
            assert record.keys() == {"config", *AGENTS, "article"}
            assert record["agent_1"]["FS1"]["fun_facts"] == ["A fact about Owl."]
            assert set(record["article"]) == {"url", "headline", "AS1", "AS2", "AS3", "AS4"}
    assert json.loads((tmp_path / "entity_to_topic.json").read_text()) == {"Owl": "Nature"}


def test_what_the_layout_cannot_hold_is_said(talk: Talk, tmp_path: Path) -> None:
    alone = Dialogue(id="alone", turns=(Turn(speaker="a", text="Hello?"),))
    turns = (Turn(speaker="Ann", text="Hi", labels={"seconds": 3}), Turn(speaker="Bob", text="Ho"))
    renamed = Dialogue(id="renamed", turns=turns, labels={"rating_Bob": "Good", "participant_Ann": "x"})
    one_sided = talk("one-sided")
    first, second = one_sided.knowledge or ()
    without = second.model_copy(update={"article": None})
    blank = Fact(id="blank", text=" ")
    section = first.sections[0].model_copy(update={"facts": (*first.sections[0].facts, blank)})
    first = first.model_copy(update={"sections": (section, *first.sections[1:])})
    one_sided = one_sided.model_copy(update={"knowledge": (first, without)})
    release = write_release(
        [talk(), talk(), talk("c2", split="valid"), talk("c3", []), alone, renamed, one_sided], tmp_path
    )
    assert release.left_out == {
        "the id of an earlier conversation": ("c1",),
        "the split 'valid', which is none of train, valid_freq, valid_rare, test_freq, test_rare": ("c2",),
        "no turns": ("c3",),
        "one side alone speaks": ("alone",),
    }
    assert release.lost == {
        "turns' label seconds": 1,
        "conversations' label participant_Ann": 1,
        "articles of one side, which the layout shows to both": 1,
        "facts without a word": 1,
    }
    back = {dialogue.id: dialogue for dialogue in read(tmp_path)}
    assert [turn.speaker for turn in back["renamed"].turns] == list(AGENTS)
    assert back["renamed"].labels["rating_agent_2"] == "Good"
    assert back["renamed"].knowledge is None


def test_nothing_to_write_is_an_error(talk: Talk, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no conversation that the layout can hold") as error:
        write_release([talk("c1", [])], tmp_path)
    assert error.value.problems == ("no turns: 1",)


def test_the_real_release_comes_back(valid_rare: list[Dialogue], tmp_path: Path) -> None:
    whole = [
        d.model_copy(update={"source": ""})
        for d in valid_rare[:80]
        if all(r.article is None or len(r.article.parts) <= 4 for r in d.knowledge or ())
    ]
    assert len(whole) > 60
    write_release(whole, tmp_path)
    assert read(tmp_path) == whole
