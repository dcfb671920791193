"""A knowledge base: entities with lead sections and facts, and articles that mention them.

As a file it is JSON lines. A row with a `name` is an entity, a row with a `text` an article. People write
such rows, and so does `build`, which adds the forms of the lead, the frequency and the mentions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from palaver.config import dotted
from palaver.errors import DataError, explain_mistake
from palaver.files import write_atomically
from palaver.readers.rows import RowFile
from palaver.schema import Entity, Fact
from palaver.schema.base import Name, Noun, Text

SAMPLE = "sample"
"""The name of the knowledge base that ships with Palaver."""
EXPECTED = (
    'expected {"name": "Tea", "topic": "Food", "aliases": ["teas"], "lead": "...", "facts": ["...", "..."]} '
    'for an entity, {"title": "...", "text": "..."} for an article'
)


class EntityRecord(Noun):
    """An entity, what it is also called, its lead section in each form, and its facts."""

    name: Name
    topic: Text = ""
    aliases: tuple[Name, ...] = ()
    lead: Text = ""
    shortened: Text = ""
    summarised: Text = ""
    facts: tuple[Fact, ...] = ()
    frequency: int = Field(default=0, ge=0)
    """In how many utterances, or articles, it is mentioned."""

    @model_validator(mode="before")
    @classmethod
    def _number_facts(cls, data: object) -> object:
        """Facts may be plain sentences: they get an id, and the entity's name."""
        if not isinstance(data, dict) or not isinstance(data.get("facts"), list | tuple):
            return data
        name = data.get("name")
        facts: list[object] = []
        for n, fact in enumerate(data["facts"], start=1):
            if isinstance(fact, str):
                fact = {"text": fact or " "}  # an empty one is for `build` to leave out and count
            facts.append({"id": f"{name}/{n}", "entity": name, **fact} if isinstance(fact, dict) else fact)
        return {**data, "facts": facts}

    @property
    def entity(self) -> Entity:
        """The noun that reading sets carry."""
        return Entity(id=self.name, name=self.name, topic=self.topic)


class ArticleRecord(Noun):
    """An article, and how often it mentions which entity, most often first."""

    id: Name
    title: Text = ""
    text: Text = ""
    url: Text = ""
    mentions: Mapping[str, int] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _name(cls, data: object) -> object:
        """Without an id it is the address, the title, or the beginning of the text."""
        if isinstance(data, dict) and not data.get("id"):
            names = (data.get("url"), data.get("title"), data.get("text"))
            name = next((name for name in names if isinstance(name, str) and name), "article")
            return {**data, "id": name[:1000]}
        return data


@dataclass(frozen=True)
class KnowledgeBase:
    """Entities and articles, ready for reading sets."""

    entities: tuple[EntityRecord, ...]
    articles: tuple[ArticleRecord, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, EntityRecord]:
        """Entities by their names."""
        return {entity.name: entity for entity in self.entities}

    def write(self, path: Path) -> None:
        """As JSON lines, one record a line."""
        records: list[EntityRecord | ArticleRecord] = [*self.entities, *self.articles]
        with write_atomically(path) as file:
            for record in records:
                file.write(record.model_dump_json(exclude_defaults=True) + "\n")


@dataclass
class Material:
    """What a knowledge base is built from."""

    entities: list[EntityRecord] = field(default_factory=list)
    articles: list[ArticleRecord] = field(default_factory=list)
    utterances: list[str] = field(default_factory=list)
    """What people said, where the source holds conversations."""
    notes: list[str] = field(default_factory=list)

    def add(self, other: Material) -> None:
        """Put another source behind this one."""
        self.entities += other.entities
        self.articles += other.articles
        self.utterances += other.utterances
        self.notes += other.notes


def read_records(path: str | Path) -> Material:
    """The entities and articles of a JSON-lines file (or JSON list); the error lists every mistake."""
    file = RowFile(path)
    material = Material()
    for number, row in file.rows():
        try:
            if isinstance(row, dict) and "name" in row:
                material.entities.append(EntityRecord.model_validate(row))
            elif isinstance(row, dict) and "text" in row:
                material.articles.append(ArticleRecord.model_validate(row))
            else:
                file.problems.add(number, "neither an entity (`name`) nor an article (`text`)")
        except ValidationError as error:
            kind = EntityRecord if "name" in row else ArticleRecord
            for mistake in error.errors():
                what = explain_mistake(mistake, list(kind.model_fields))
                file.problems.add(number, f"{dotted(mistake['loc'])}: {what}")
    if file.problems:
        raise file.problems.error(file.path, "record of a knowledge base", file.word, EXPECTED)
    if not material.entities and not material.articles:
        raise DataError(f"{path}: there is nothing in it", EXPECTED)
    return material


def read_sample() -> Material:
    """The records of the knowledge base that ships."""
    return read_records(Path(str(files("palaver.knowledge").joinpath("sample.jsonl"))))


def read_built(path: Path) -> KnowledgeBase:
    """A knowledge base that `palaver knowledge build` wrote."""
    material = read_records(path)
    names = {entity.name for entity in material.entities}
    problems = _repeated("entity", (entity.name for entity in material.entities))
    problems += _repeated("article", (article.id for article in material.articles))
    for entity in material.entities:
        if not (entity.shortened and entity.summarised):
            problems.append(f"{entity.name}: a form of its lead section is missing")
    for article in material.articles:
        unknown = [name for name in article.mentions if name not in names]
        if not article.mentions:
            problems.append(f"{article.id}: nobody has looked which entities it mentions")
        elif unknown:
            problems.append(f"{article.id}: mentions {', '.join(unknown)}, who are not in the knowledge base")
    if problems:
        shown = problems[:10]
        if len(problems) > len(shown):
            shown.append(f"… and {len(problems) - len(shown):,} more")
        raise DataError(
            f"{path} is no built knowledge base",
            f"build it first: palaver knowledge build {path} --budgets all --out kb.jsonl",
            shown,
        )
    return KnowledgeBase(tuple(material.entities), tuple(material.articles))


def _repeated(noun: str, names: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return [f"the {noun} {name} is there {n} times" for name, n in counts.items() if n > 1]
