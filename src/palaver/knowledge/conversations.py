"""The knowledge behind conversations: entities, facts and articles out of their reading sets.

Topical-Chat's release has no knowledge base of its own; its reading sets hold what there was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from palaver.knowledge.base import ArticleRecord, EntityRecord, Material
from palaver.knowledge.budgets import paper_topic
from palaver.schema import Article, Dialogue, Fact, Section


class _EntityParts:
    """What the reading sets say about one entity."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.leads: dict[str, str] = {}
        self.facts: dict[str, Fact] = {}
        self.times: Counter[str] = Counter()

    def add(self, section: Section) -> None:
        if section.lead:
            self.leads.setdefault(section.lead_form, section.lead)
        for fact in section.facts:
            self.facts.setdefault(fact.text, fact)
            self.times[fact.text] += 1

    def record(self, name: str) -> EntityRecord:
        """Facts that were given to more people come first."""
        texts = sorted(self.facts, key=lambda text: -self.times[text])
        facts = tuple(
            Fact(id=f"{name}/{n}", text=text, entity=name, source=self.facts[text].source)
            for n, text in enumerate(texts, start=1)
        )
        return EntityRecord(
            name=name,
            topic=paper_topic(self.topic),
            lead=self.leads.get("full", ""),
            shortened=self.leads.get("shortened", ""),
            summarised=self.leads.get("summarised", ""),
            facts=facts,
        )


def read_conversations(dialogues: Iterable[Dialogue]) -> Material:
    """The entities and articles of all reading sets, and what was said."""
    entities: dict[str, _EntityParts] = {}
    articles: dict[str, Article] = {}
    utterances: list[str] = []
    for dialogue in dialogues:
        utterances += [turn.text for turn in dialogue.turns]
        for reading_set in dialogue.knowledge or ():
            for section in reading_set.sections:
                entity = section.entity
                entities.setdefault(entity.name, _EntityParts(entity.topic)).add(section)
            article = reading_set.article
            if article is not None and any(article.parts):
                articles.setdefault(article.id, article)
    return Material(
        entities=[parts.record(name) for name, parts in entities.items()],
        articles=[
            ArticleRecord(id=id, title=article.title, text="\n\n".join(article.parts), url=article.url)
            for id, article in articles.items()
        ],
        utterances=utterances,
    )
