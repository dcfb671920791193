"""Knowledge for grounded conversation, after Topical-Chat (Gopalakrishnan et al. 2019, section 3)."""

from __future__ import annotations

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

    `configuration` is Topical-Chat's A to D: A both sides the same, B and C the same entities with
    different facts or different leads, D different entities.
    """

    id: Name
    sections: tuple[Section, ...] = ()
    article: Article | None = None
    configuration: Literal["A", "B", "C", "D"] | None = Field(default=None)
