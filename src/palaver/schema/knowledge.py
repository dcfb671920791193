"""Knowledge for grounded conversation, after Topical-Chat (Gopalakrishnan et al. 2019, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from palaver.schema.base import Name, Noun, Text


class Entity(Noun):
    """A thing people talk about, with the topic it was chosen for."""

    id: Name
    name: Name
    topic: Text = ""


class Fact(Noun):
    """One sentence somebody may bring into a conversation (Topical-Chat's "fun fact")."""

    id: Name
    text: str = Field(min_length=1)
    entity: Text | None = None
    source: Text = ""


class Section(Noun):
    """What one side reads about one entity: a lead section (whole, shortened or summarised) and facts."""

    entity: Entity
    lead: Text = ""
    lead_form: Literal["full", "shortened", "summarised", "none"] = "full"
    facts: tuple[Fact, ...] = ()


class Article(Noun):
    """A news article, cut into the numbered parts that turns refer to."""

    id: Name
    title: Text = ""
    parts: tuple[Text, ...] = ()
    url: Text = ""


class ReadingSet(Noun):
    """Everything one side of a conversation was given to read.

    `configuration` names what the two sides share. Topical-Chat has four. A: the same article and shortened
    leads, different facts. B: the same article and facts, leads shortened for one side and summarised for the
    other. C: the same leads and facts, no article. D: everything to both.
    """

    id: Name
    sections: tuple[Section, ...] = ()
    article: Article | None = None
    configuration: Name | None = None

    def texts(self) -> Iterator[str]:
        """All that there is to read, one after the other."""
        for section in self.sections:
            yield section.lead
            yield from (fact.text for fact in section.facts)
        if self.article is not None:
            yield from self.article.parts
