"""Building a knowledge base (Topical-Chat, section 3.1): what is kept, and the reason for all that is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from palaver.errors import DataError, UserError
from palaver.knowledge.articles import article_fault, choose_articles, top_entities
from palaver.knowledge.base import ArticleRecord, EntityRecord, KnowledgeBase, Material
from palaver.knowledge.budgets import Candidate, choose_entities, spread_budget
from palaver.knowledge.leads import shorten, summarise
from palaver.knowledge.mentions import MentionFinder, tokens
from palaver.schema import Fact

FEWEST_FACTS, MOST_FACTS = 8, 10
_OVER_BUDGET = "beyond the budget of its topic"


@dataclass(frozen=True)
class Coverage:
    """One topic: entities there could be, entities there are, and articles that are about one of them."""

    topic: str
    budget: int
    n_entities: int
    n_articles: int


@dataclass
class Refusals:
    """What was left out, by reason."""

    entities: dict[str, list[str]] = field(default_factory=dict)
    articles: dict[str, list[str]] = field(default_factory=dict)

    def add_entity(self, reason: str, name: str) -> None:
        self.entities.setdefault(reason, []).append(name)

    def add_article(self, reason: str, id: str) -> None:
        self.articles.setdefault(reason, []).append(id)


@dataclass(frozen=True)
class Build:
    """A knowledge base, and what became of the material."""

    base: KnowledgeBase
    coverage: tuple[Coverage, ...]
    refusals: Refusals
    notes: tuple[str, ...]


def build_knowledge_base(
    material: Material,
    *,
    budgets: Mapping[str, int] | int | None = None,
    utterances: Sequence[str] = (),
    n_articles: int | None = None,
    fewest_facts: int = FEWEST_FACTS,
) -> Build:
    """Choose entities by topic and articles that mention them.

    `budgets` are entities by topic, or a number that is spread over the topics as people talk about them;
    without them all entities stay. An entity's frequency is the number of utterances that mention it, or of
    articles where there are no utterances. With `n_articles`, so many are chosen that cover the topics.
    Entities with fewer than `fewest_facts` facts are left out.
    """
    refusals = Refusals()
    notes = list(material.notes)
    entities = _usable_entities(material.entities, fewest_facts, refusals, notes)
    if not entities:
        raise DataError("no entity can be used", problems=_listed(refusals.entities))
    said = utterances or material.utterances
    texts = said or [article.text for article in material.articles]
    where = "utterances" if said else "articles"
    notes.append(f"an entity's frequency is the number of {where} that mention it, of {len(texts):,}")
    frequencies, topic_frequencies = _frequencies(entities, texts)
    entities = [e.model_copy(update={"frequency": frequencies[e.name]}) for e in entities]
    by_topic = _budgets_by_topic(budgets, entities, topic_frequencies)
    candidates = [Candidate(e.name, e.topic, e.frequency) for e in entities]
    names = set(choose_entities(candidates, by_topic))
    for entity in entities:
        if entity.name not in names:
            refusals.add_entity(_OVER_BUDGET, entity.name)
    entities = [entity for entity in entities if entity.name in names]
    articles = _usable_articles(material.articles, entities, refusals)
    topic_of = {entity.name: entity.topic for entity in entities}
    if n_articles is not None:
        topics = [[topic_of[name] for name in top_entities(article.mentions)] for article in articles]
        chosen = set(choose_articles(topics, by_topic, n_articles))
        for place, article in enumerate(articles):
            if place not in chosen:
                refusals.add_article("not needed to cover the topics", article.id)
        if len(articles) < n_articles:
            notes.append(f"{n_articles:,} articles were asked for, {len(articles):,} can be used")
        articles = [article for place, article in enumerate(articles) if place in chosen]
    if not articles:
        notes.append("no article is left, so no reading sets can be made")
    base = KnowledgeBase(tuple(entities), tuple(articles))
    coverage = _coverage(base, by_topic, topic_of)
    notes += [
        f"{one.topic}: the budget is {one.budget}, there are {one.n_entities}"
        for one in coverage
        if one.n_entities < one.budget
    ]
    if articles:
        notes += [f"no article is about {one.topic}" for one in coverage if not one.n_articles]
    return Build(base, coverage, refusals, tuple(notes))


def _usable_entities(
    records: Sequence[EntityRecord], fewest_facts: int, refusals: Refusals, notes: list[str]
) -> list[EntityRecord]:
    """Entities with both forms of the lead and enough facts; a name stands for one of them."""
    owners: dict[tuple[str, ...], str] = {}  # a name's words -> the entity it stands for
    usable: list[EntityRecord] = []
    n_repeated = n_many = 0
    for record in records:
        distinct = tuple({fact.text: fact for fact in record.facts if fact.text.strip()}.values())
        n_repeated += len(record.facts) - len(distinct)
        shortened = record.shortened or shorten(record.lead)
        summarised = record.summarised or summarise(record.lead)
        key = tuple(tokens(record.name))
        reason = None
        if not key:
            reason = "a name without words"
        elif owners.get(key) is not None:
            reason = "a name that is there already"
        elif not shortened:
            reason = "no lead section"
        elif not summarised and not record.lead:
            reason = "neither a summarised lead section nor a whole one to summarise"
        elif not summarised:
            reason = "no sentence of the lead section is short enough for a summary"
        elif len(distinct) < fewest_facts:
            reason = f"fewer than {fewest_facts} facts"
        if reason is not None:
            refusals.add_entity(reason, record.name)
            continue
        owners[key] = record.name
        n_many += len(distinct) > MOST_FACTS
        changes = {
            "shortened": shortened,
            "summarised": summarised,
            "facts": _with_own_ids(distinct[:MOST_FACTS]),
        }
        usable.append(record.model_copy(update=changes))
    if n_repeated:
        notes.append(f"facts that were empty or there already: {n_repeated:,}")
    if n_many:
        notes.append(f"entities of whose facts the first {MOST_FACTS} were taken: {n_many:,}")
    return [_with_own_aliases(record, owners, notes) for record in usable]


def _with_own_ids(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Two facts of one id could not be told apart."""
    ids = Counter(fact.id for fact in facts)
    return tuple(
        fact if ids[fact.id] == 1 else fact.model_copy(update={"id": f"{fact.id}~{n}"})
        for n, fact in enumerate(facts, start=1)
    )


def _with_own_aliases(
    record: EntityRecord, owners: dict[tuple[str, ...], str], notes: list[str]
) -> EntityRecord:
    """The entity without aliases that are another one's name."""
    aliases = []
    for alias in record.aliases:
        key = tuple(tokens(alias))
        owner = owners.setdefault(key, record.name) if key else None
        if owner == record.name:
            aliases.append(alias)
        else:
            notes.append(
                f"{record.name}: the alias {alias!r} is not used, it stands for {owner or 'nothing'}"
            )
    return record.model_copy(update={"aliases": tuple(aliases)})


def _finder(entities: Sequence[EntityRecord]) -> MentionFinder:
    return MentionFinder((name, e.name) for e in entities for name in (e.name, *e.aliases))


def _frequencies(entities: Sequence[EntityRecord], texts: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """In how many texts each entity is mentioned, and each topic."""
    finder = _finder(entities)
    topic_of = {entity.name: entity.topic for entity in entities}
    of_entity: Counter[str] = Counter()
    of_topic: Counter[str] = Counter()
    for text in texts:
        names = set(finder.find(text))
        of_entity.update(names)
        of_topic.update({topic_of[name] for name in names})
    return of_entity, of_topic


def _budgets_by_topic(
    budgets: Mapping[str, int] | int | None, entities: Sequence[EntityRecord], frequencies: Mapping[str, int]
) -> dict[str, int]:
    sizes = Counter(entity.topic for entity in entities)
    if budgets is None:
        return dict(sizes)
    if isinstance(budgets, int):
        return spread_budget(budgets, {topic: frequencies[topic] for topic in sizes})
    without = [topic or "(no topic)" for topic in sizes if topic not in budgets]
    if without:
        raise UserError(
            f"there is no budget for {', '.join(without)}",
            "name them (--budgets Books=10,Music=0), give a total (--budgets 24), or keep --budgets all",
        )
    return {topic: n for topic, n in budgets.items() if n}


def _usable_articles(
    records: Sequence[ArticleRecord], entities: Sequence[EntityRecord], refusals: Refusals
) -> list[ArticleRecord]:
    finder = _finder(entities)
    usable: list[ArticleRecord] = []
    ids: set[str] = set()
    texts: set[str] = set()
    for record in records:
        mentions = finder.count(record.text)
        reason = article_fault(record.text, mentions)
        if reason is None and (record.id in ids or record.text in texts):
            reason = "there already"
        if reason is not None:
            refusals.add_article(reason, record.id)
            continue
        ids.add(record.id)
        texts.add(record.text)
        usable.append(record.model_copy(update={"mentions": mentions}))
    return usable


def _coverage(
    base: KnowledgeBase, budgets: Mapping[str, int], topic_of: Mapping[str, str]
) -> tuple[Coverage, ...]:
    """Topics with the articles that have an entity of theirs among the three they mention most."""
    sizes = Counter(topic_of.values())
    about: Counter[str] = Counter()
    for article in base.articles:
        about.update({topic_of[name] for name in top_entities(article.mentions)})
    return tuple(Coverage(topic, budget, sizes[topic], about[topic]) for topic, budget in budgets.items())


def _listed(reasons: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{reason}: {len(names):,} ({', '.join(names[:3])}, …)" for reason, names in reasons.items()]
