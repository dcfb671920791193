"""Pairs of reading sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import ConfigError, UserError
from palaver.knowledge.base import ArticleRecord, EntityRecord, KnowledgeBase
from palaver.knowledge.candidates import candidates_of, reading_set_of
from palaver.knowledge.reading_sets import (
    SIDES,
    Choice,
    Configuration,
    count_uses,
    make_pair,
    make_reading_sets,
    pair_fault,
    parts_by_name,
    plan_pairs,
    read_configurations,
)
from palaver.readers import read_dialogues, write_dialogues
from palaver.schema import Dialogue, Fact, ReadingSet, Section

PAPER = read_configurations()


def base_of(n_articles: int, facts: list[int] | None = None) -> KnowledgeBase:
    """Entities with so many facts each, and articles that mention them in turn, the first one most often."""
    facts = facts or [8, 9, 10, 8]
    entities = [
        EntityRecord(
            name=f"e{n}",
            shortened=f"Short lead {n}.",
            summarised=f"Summary {n}.",
            facts=tuple(Fact(id=f"e{n}/{k}", text=f"Fact {k}.") for k in range(size)),
        )
        for n, size in enumerate(facts)
    ]
    articles = [
        ArticleRecord(
            id=f"article {n}",
            text=" ".join(f"Sentence {k} of article {n}." for k in range(8)),
            mentions={f"e{(n + k) % len(facts)}": 9 - k for k in range(4)},
        )
        for n in range(n_articles)
    ]
    return KnowledgeBase(tuple(entities), tuple(articles))


def shared(one: ReadingSet, two: ReadingSet) -> list[set[str]]:
    """The facts that both sides have, by section."""
    return [
        {fact.id for fact in a.facts} & {fact.id for fact in b.facts}
        for a, b in zip(one.sections, two.sections, strict=True)
    ]


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.data())
@settings(max_examples=60, deadline=None)
def test_pairs_are_balanced_and_each_is_its_configuration(n_articles: int, seed: int, data: Any) -> None:
    base = base_of(n_articles)
    number = data.draw(st.integers(1, 4 * n_articles))
    plan = plan_pairs(base, number, seed=seed)
    dialogues = make_reading_sets(base, plan, seed=seed)
    assert dialogues == make_reading_sets(base, plan_pairs(base, number, seed=seed), seed=seed)
    configurations = Counter(dict.fromkeys(PAPER, 0))
    configurations.update(choice.configuration for choice in plan.choices)
    assert max(configurations.values()) - min(configurations.values()) <= 1
    uses = Counter({article.id: 0 for article in base.articles})
    for (article_id, _), n in count_uses(dialogues).items():
        uses[article_id] += n
    assert max(uses.values()) <= 4
    assert max(uses.values()) - min(uses.values()) <= 1
    for dialogue in dialogues:
        check_pair(dialogue, base)


def check_pair(dialogue: Dialogue, base: KnowledgeBase) -> None:
    assert (dialogue.turns, dialogue.speakers) == ((), SIDES)
    one, two = dialogue.knowledge or ()
    kind = str(dialogue.labels["config"])
    assert one.configuration == two.configuration == kind
    article = next(a for a in base.articles if a.id == dialogue.labels["article"])
    for side in (one, two):
        assert [s.entity.name for s in side.sections] == list(article.mentions)[:3]
        for section in side.sections:
            assert 4 <= len(section.facts) <= 5
            ids = [fact.id for fact in section.facts]
            assert ids == sorted(set(ids))
        if kind == "C":
            assert side.article is None
        else:
            assert side.article is not None
            assert len(side.article.parts) == 4
            assert " ".join(side.article.parts) == article.text
    forms = sorted({s.lead_form for s in one.sections} | {s.lead_form for s in two.sections})
    assert forms == (["shortened", "summarised"] if kind == "B" else ["shortened"])
    assert all(
        s.lead == base.by_name[s.entity.name].shortened for s in one.sections if s.lead_form == "shortened"
    )
    assert one.article == two.article
    if kind == "A":
        assert shared(one, two) == [set()] * 3
    else:
        assert [s.facts for s in one.sections] == [s.facts for s in two.sections]


def test_the_summaries_go_to_each_side_equally_often() -> None:
    base = base_of(8)
    plan = plan_pairs(base, 32, seed=3)
    sets = [d.knowledge for d in make_reading_sets(base, plan, seed=3) if d.labels["config"] == "B"]
    summarised = Counter(
        s.id[-7:] for pair in sets for s in pair or () if s.sections[0].lead_form == "summarised"
    )
    assert summarised == {"agent_1": 4, "agent_2": 4}


def test_an_article_meets_other_configurations_before_one_comes_again() -> None:
    plan = plan_pairs(base_of(8), 32)
    assert len({(choice.article.id, choice.configuration) for choice in plan.choices}) >= 28


def test_another_seed_gives_other_sets() -> None:
    base = base_of(8)
    one, two = (make_reading_sets(base, plan_pairs(base, 8, seed=s), seed=s) for s in (1, 2))
    assert [d.labels for d in one] != [d.labels for d in two]


def test_accepted_conversations_count() -> None:
    base = base_of(3)
    uses = {("article 0", "A"): 2, ("article 0", ""): 2, ("article 1", "B"): 2, ("gone", "C"): 9}
    plan = plan_pairs(base, 6, uses=uses)
    totals = Counter(c.configuration for c in plan.choices) + Counter(A=2, B=2)
    assert sorted(totals.values()) == [2, 2, 3, 3]  # what was held counts
    assert Counter(c.article.id for c in plan.choices) == {"article 1": 2, "article 2": 4}
    with pytest.raises(UserError, match="7 pairs were asked for, the articles allow 6"):
        plan_pairs(base, 7, uses=uses)
    assert len(plan_pairs(base, 30, most_uses=10).choices) == 30


def test_too_few_facts_for_a_configuration_and_the_rest_goes_on() -> None:
    base = base_of(4, [7, 8, 8, 8])  # e0 is missing in the article that begins with e1
    plan = plan_pairs(base, 12)
    assert plan.refusals == {"configuration A: an entity with fewer than 8 facts": 3}
    of_a = {choice.article.id for choice in plan.choices if choice.configuration == "A"}
    assert of_a == {"article 1"}
    assert Counter(c.configuration for c in plan.choices) == dict.fromkeys(PAPER, 3)
    with pytest.raises(UserError, match="cannot carry configuration A: an entity with fewer than 8 facts"):
        choice = Choice(base.articles[0], "A", False)
        make_pair(base, choice, PAPER["A"], id="x", rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("base", "kind", "fault"),
    [
        (base_of(1, [3, 8, 8, 8]), "D", "an entity with fewer than 4 facts"),
        (base_of(1, [8, 8]), "D", "fewer than 3 known entities"),
        (base_of(1), "D", None),
    ],
)
def test_what_an_article_cannot_carry(base: KnowledgeBase, kind: str, fault: str | None) -> None:
    assert pair_fault(base, base.articles[0], PAPER[kind]) == fault


def test_empty_sections_are_refused() -> None:
    base = base_of(1)
    short = base.articles[0].model_copy(update={"text": "One. Two."})
    assert pair_fault(base, short, PAPER["D"]) == "fewer than 4 sentences"
    assert pair_fault(base, short, PAPER["C"]) is None  # nobody gets the article
    entities = tuple(e.model_copy(update={"summarised": ""}) for e in base.entities)
    without = KnowledgeBase(entities, base.articles)
    assert pair_fault(without, base.articles[0], PAPER["B"]) == "an entity without its lead section"
    assert pair_fault(without, base.articles[0], PAPER["A"]) is None


WIZARD = """
[wizard]
article = [true, false]
leads = ["summarised", "none"]
facts = [1, 0]

[topic]
article = [false, false]
leads = ["shortened", "shortened"]
facts = [0, 0]
"""


def test_configurations_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(WIZARD)
    own = read_configurations(path)
    base = base_of(4)
    plan = plan_pairs(base, 4, configurations=own)
    for dialogue in make_reading_sets(base, plan, configurations=own):
        one, two = sorted(dialogue.knowledge or (), key=lambda side: side.article is None)
        if dialogue.labels["config"] == "wizard":
            assert one.article is not None
            assert [len(s.facts) > 0 for s in one.sections] == [True] * 3
            assert two.article is None
            assert {(s.lead, s.lead_form, s.facts) for s in two.sections} == {("", "none", ())}
            assert [s.entity for s in two.sections] == [s.entity for s in one.sections]
        else:
            assert [s.facts for s in (*one.sections, *two.sections)] == [()] * 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[A]\narticle = [true]\n", "line 2: A.article"),
        ("[A]\narticle = [true, true]\nleads = ['long', 'none']\nfacts = [1, 1]\n", "line 3: A.leads"),
        ("[A]\narticle = [true, true]\nleads = ['none', 'none']\nfacts = [1, -1]\n", "expected at least 0"),
        ("[A]\nartikel = [true, true]\n", "did you mean 'article'?"),
        ("A = 5\n", "line 1: A"),
    ],
)
def test_mistakes_in_configurations(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_configurations(path)
    assert said in str(caught.value)
    path.write_text("# nothing\n")
    with pytest.raises(UserError, match="there is no configuration in it"):
        read_configurations(path)


def test_the_papers_configurations_are_data() -> None:
    assert list(PAPER) == ["A", "B", "C", "D"]
    same = {"article": (True, True), "leads": ("shortened", "shortened"), "facts": (1, 1)}
    differences = {
        name: {key: getattr(PAPER[name], key) for key in same if getattr(PAPER[name], key) != same[key]}
        for name in PAPER
    }
    assert differences == {
        "A": {"facts": (1, 2)},
        "B": {"leads": ("shortened", "summarised")},
        "C": {"article": (False, False)},
        "D": {},
    }
    assert isinstance(PAPER["A"], Configuration)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_file_of_pairs_is_read_by_everything_that_reads_dialogues(tmp_path: Path, ending: str) -> None:
    base = base_of(4)
    dialogues = make_reading_sets(base, plan_pairs(base, 4))
    path = tmp_path / f"sets.{ending}"
    write_dialogues(dialogues, path)
    again = list(read_dialogues(path))
    assert [d.knowledge for d in again] == [d.knowledge for d in dialogues]
    for dialogue in again:
        for speaker in SIDES:
            reading_set = reading_set_of(dialogue, speaker)
            assert reading_set is not None
            assert reading_set.id.endswith(speaker)
            assert candidates_of(reading_set).sentences


def test_parts_have_the_names_that_turns_use() -> None:
    base = base_of(1)
    choice = Choice(base.articles[0], "D", False)
    one, _ = make_pair(base, choice, PAPER["D"], id="x", rng=np.random.default_rng(0))
    parts = parts_by_name(one)
    assert list(parts) == ["FS1", "FS2", "FS3", "AS1", "AS2", "AS3", "AS4"]
    assert isinstance(parts["FS1"], Section)
    assert parts["AS1"] == "Sentence 0 of article 0. Sentence 1 of article 0."
    assert list(parts_by_name(one.model_copy(update={"article": None}))) == ["FS1", "FS2", "FS3"]
