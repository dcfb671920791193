"""Knowledge bases: built, written, read again; the one that ships; Topical-Chat's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from palaver.corpora.catalogue import read_corpus
from palaver.errors import DataError, UserError
from palaver.knowledge.articles import is_profane
from palaver.knowledge.base import Material, read_built, read_records, read_sample
from palaver.knowledge.build import build_knowledge_base
from palaver.knowledge.conversations import read_conversations
from palaver.knowledge.leads import count_spaced_words, shorten
from palaver.schema import Article, Dialogue, Entity, Fact, ReadingSet, Section, Turn


def entity(name: str, topic: str = "Food", **changes: Any) -> dict[str, Any]:
    facts = [f"Fact {n} about {name}." for n in range(1, 9)]
    return {"name": name, "topic": topic, "lead": f"{name} is a thing.", "facts": facts, **changes}


def article(title: str, *names: str, n_words: int = 700) -> dict[str, Any]:
    sentences = [f"Somebody spoke about {name} again today." for name in names]
    filler = ["Other people went on with their work."] * (n_words // 7)
    return {"title": title, "text": " ".join(sentences + filler)}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(*rows: Any) -> Path:
        path = tmp_path / "records.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


ROWS = [entity("Tea"), entity("Salt"), entity("Owl", "Nature"), article("One", "tea", "Salt", "owl", "owl")]


def test_a_built_base_is_read_again_and_built_again(write: Any, tmp_path: Path) -> None:
    base = build_knowledge_base(read_records(write(*ROWS))).base
    assert base.articles[0].mentions == {"Owl": 2, "Tea": 1, "Salt": 1}
    assert list(base.articles[0].mentions) == ["Owl", "Tea", "Salt"]
    assert base.articles[0].id == "One"
    tea = base.by_name["Tea"]
    assert (tea.shortened, tea.summarised, tea.frequency) == ("Tea is a thing.", "Tea is a thing.", 1)
    assert tea.facts[1] == Fact(id="Tea/2", text="Fact 2 about Tea.", entity="Tea")
    base.write(tmp_path / "kb.jsonl")
    assert read_built(tmp_path / "kb.jsonl") == base
    assert build_knowledge_base(read_records(tmp_path / "kb.jsonl")).base == base


def test_what_is_wrong_is_left_out_with_the_reason_and_the_rest_goes_on(write: Any) -> None:
    rows = [
        *ROWS,
        entity("TEA"),
        entity("Bread", lead=""),
        entity("Kite", lead="", shortened="A kite."),
        entity("Drum", lead=" ".join(["word"] * 200)),
        entity(
            "Bell", facts=["One fact.", "", " ", {"text": "Another.", "source": "a book"}] + ["One fact."] * 6
        ),
        entity("Oak", "Nature", aliases=["salt", "oaks"], facts=[f"Fact {n}." for n in range(12)]),
        entity("  "),
        article("Two", "tea", "salt"),
        {"title": "Empty", "text": ""},
        article("Three", "tea", "salt", "owl", n_words=70),
        article("One", "tea", "owl", "oaks"),
    ]
    made = build_knowledge_base(read_records(write(*rows)))
    assert [e.name for e in made.base.entities] == ["Tea", "Salt", "Owl", "Oak"]
    assert made.refusals.entities == {
        "a name that is there already": ["TEA"],
        "no lead section": ["Bread"],
        "neither a summarised lead section nor a whole one to summarise": ["Kite"],
        "no sentence of the lead section is short enough for a summary": ["Drum"],
        "fewer than 8 facts": ["Bell"],
        "a name without words": ["  "],
    }
    assert made.refusals.articles == {
        "mentions fewer than 3 of the entities": ["Two"],
        "fewer than 600 words": ["Empty", "Three"],
        "there already": ["One"],
    }
    assert made.base.by_name["Oak"].aliases == ("oaks",)
    assert len(made.base.by_name["Oak"].facts) == 10
    assert "Oak: the alias 'salt' is not used, it stands for Salt" in made.notes
    assert "facts that were empty or there already: 8" in made.notes
    assert "entities of whose facts the first 10 were taken: 1" in made.notes


def test_budgets_take_the_most_frequent_of_each_topic(write: Any) -> None:
    material = read_records(write(*ROWS, entity("Oak", "Nature"), entity("Bread")))
    said = ["Salt and bread!", "More salt, salt, salt", "the tea", "an owl", "Bread?", "Salt"]
    made = build_knowledge_base(material, budgets={"Food": 2, "Nature": 1, "Books": 3}, utterances=said)
    assert {e.name: e.frequency for e in made.base.entities} == {"Salt": 3, "Owl": 1, "Bread": 2}
    assert made.refusals.entities == {"beyond the budget of its topic": ["Tea", "Oak"]}
    assert "Books: the budget is 3, there are 0" in made.notes
    assert "no article is left, so no reading sets can be made" in made.notes
    spread = build_knowledge_base(material, budgets=4, utterances=said)  # 5 of 6 are about food
    assert [e.name for e in spread.base.entities] == ["Tea", "Salt", "Owl", "Bread"]
    with pytest.raises(UserError, match="there is no budget for Nature"):
        build_knowledge_base(material, budgets={"Food": 2})


def test_articles_are_chosen_to_cover_the_topics(write: Any) -> None:
    names = ["Tea", "Salt", "Bread"]
    rows = [entity(name) for name in names] + [entity(name, "Nature") for name in ("Owl", "Oak", "Tide")]
    articles = [article(f"food {n}", *names) for n in range(4)]
    for n, one in enumerate(articles):
        one["text"] += f" Number {n}."
    made = build_knowledge_base(
        read_records(write(*rows, *articles, article("nature", "owl", "oak", "tide"))), n_articles=2
    )
    assert [one.id for one in made.base.articles] == ["food 0", "nature"]
    assert len(made.refusals.articles["not needed to cover the topics"]) == 3
    assert {one.topic: one.n_articles for one in made.coverage} == {"Food": 1, "Nature": 1}


def test_every_mistake_of_a_file_is_listed(write: Any) -> None:
    path = write(
        *ROWS, {"nam": "x"}, {"name": "x", "facts": "one"}, {"text": 5}, {"name": "x", "lede": ""}, 5
    )
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_records(path)
    assert caught.value.problems == (
        "line 5: neither an entity (`name`) nor an article (`text`)",
        "line 6: facts: expected a list, found 'one'",
        "line 7: text: expected a text, found 5",
        "line 8: lede: there is no such field (did you mean 'lead'?)",
        "line 9: neither an entity (`name`) nor an article (`text`)",
    )


def test_a_base_that_was_not_built_is_refused(write: Any) -> None:
    with pytest.raises(DataError, match="is no built knowledge base") as caught:
        read_built(write(*ROWS, entity("Tea")))
    assert caught.value.problems[0] == "the entity Tea is there 2 times"
    assert "One: nobody has looked which entities it mentions" in caught.value.problems


def test_nothing_usable_is_an_error(write: Any) -> None:
    with pytest.raises(DataError, match="no entity can be used"):
        build_knowledge_base(read_records(write(entity("Tea", facts=[]))))


def test_conversations_give_back_what_was_read() -> None:
    def section(form: Any, *facts: str) -> Section:
        tea = Entity(id="Tea", name="Tea", topic="sci_tech")
        told = tuple(Fact(id=f"FS1-{n}", text=fact) for n, fact in enumerate(facts))
        return Section(entity=tea, lead=f"{form} lead", lead_form=form, facts=told)

    paper = Article(id="u", title="T", parts=("One.", "Two."))
    one = ReadingSet(id="1-a", sections=(section("shortened", "x", "y"),), article=paper)
    two = ReadingSet(id="1-b", sections=(section("summarised", "y", "z"),))
    turns = (Turn(speaker="a", text="Tea?"), Turn(speaker="b", text="Yes."))
    material = read_conversations([Dialogue(id="1", turns=turns, knowledge=(one, two))])
    (tea,) = material.entities
    assert (tea.topic, tea.shortened, tea.summarised) == (
        "Science & Technology",
        "shortened lead",
        "summarised lead",
    )
    assert [fact.text for fact in tea.facts] == ["y", "x", "z"]
    assert [one.text for one in material.articles] == ["One.\n\nTwo."]
    assert material.utterances == ["Tea?", "Yes."]


def test_topical_chats_release(shared_data: Path) -> None:
    dialogues = read_corpus("topical-chat", root=shared_data, split="valid_freq")
    material = read_conversations(dialogues)
    assert len(material.utterances) == 11_681
    assert all(one.shortened or one.summarised for one in material.entities)
    made = build_knowledge_base(Material(material.entities, []), fewest_facts=4)
    assert "Quarterback" in made.base.by_name
    assert made.base.by_name["Quarterback"].topic == "Sports"


@pytest.fixture(scope="module")
def sample() -> Material:
    return read_sample()


def test_the_sample_is_a_whole_knowledge_base(sample: Material) -> None:
    made = build_knowledge_base(sample)
    assert not made.refusals.entities
    assert not made.refusals.articles
    assert (len(made.base.entities), len(made.base.articles)) == (24, 12)
    assert [(one.n_entities, one.n_articles >= 6) for one in made.coverage] == [(6, True)] * 4
    for one in made.base.entities:
        assert 8 <= len(one.facts) <= 10
        assert one.shortened == shorten(one.lead) != one.summarised
        assert count_spaced_words(one.summarised) <= 150
        assert not is_profane(" ".join([one.lead, *(fact.text for fact in one.facts)]))
    tops = {name for one in made.base.articles for name in list(one.mentions)[:3]}
    assert len(tops) == 24  # each entity is one of the three of some article


def test_the_sample_is_tidy(sample: Material) -> None:
    texts = [one.lead for one in sample.entities] + [one.text for one in sample.articles]
    texts += [fact.text for one in sample.entities for fact in one.facts]
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert text[-1] in '."'
        assert not re.search(r"  |[ ]\n|\n{3}| [,.;:]", text)
