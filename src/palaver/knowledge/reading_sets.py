"""Pairs of reading sets out of a knowledge base (Topical-Chat, sections 3.2 and 3.3).

A pair rests on an article. Its three most mentioned entities are the factual sections FS1 to FS3, its text is
cut into the article sections AS1 to AS4. A configuration says which part goes to whom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import NonNegativeInt, TypeAdapter, ValidationError

from palaver.config import Lines, config_error, parse_toml, read_toml
from palaver.errors import UserError, explain_mistake
from palaver.knowledge.articles import FEWEST_ENTITIES, N_PARTS, cut_article, top_entities
from palaver.knowledge.base import ArticleRecord, EntityRecord, KnowledgeBase
from palaver.schema import Article, Dialogue, Fact, ReadingSet, Section
from palaver.schema.base import Noun

SIDES = ("agent_1", "agent_2")
MOST_USES = 4
"""Accepted conversations about one article."""
FEWEST_FACTS, MOST_FACTS = 4, 5
"""Of one entity for one side."""
_PLAN, _FACTS = 0, 1
"""Random streams: which article and configuration comes next, and which facts a pair gets."""


class Configuration(Noun):
    """Which part goes to whom; the first value is the first side's.

    Whoever gets neither article nor leads nor facts still sees the names of the entities.
    """

    says: str = ""
    article: tuple[bool, bool]
    leads: tuple[
        Literal["shortened", "summarised", "none"],
        Literal["shortened", "summarised", "none"],
    ]
    facts: tuple[NonNegativeInt, NonNegativeInt]

    @property
    def hands(self) -> list[int]:
        """The hands of facts that are dealt."""
        return sorted(set(self.facts) - {0})


def read_configurations(path: Path | None = None) -> dict[str, Configuration]:
    """The configurations of a TOML file; without one, A to D of the paper."""
    if path is None:
        name = "configurations.toml"
        text = files("palaver.knowledge").joinpath(name).read_text(encoding="utf-8")
        tables, lines = parse_toml(text, name)
    else:
        name = str(path)
        tables, lines = read_toml(path)
    return _check_configurations(tables, lines, Path(name))


def _check_configurations(tables: Mapping[str, object], lines: Lines, path: Path) -> dict[str, Configuration]:
    if not tables:
        raise UserError(f"{path}: there is no configuration in it", "expected tables such as [A]")
    try:
        return TypeAdapter(dict[str, Configuration]).validate_python(tables)
    except ValidationError as error:
        fields = list(Configuration.model_fields)
        mistakes = [(mistake["loc"], explain_mistake(mistake, fields)) for mistake in error.errors()]
    raise config_error(path, lines, mistakes)


class Choice(NamedTuple):
    """What the next pair rests on."""

    article: ArticleRecord
    configuration: str
    is_swapped: bool
    """Whether the first side's part goes to the second side."""


@dataclass
class Plan:
    """The choices in order, and what could not be done."""

    choices: list[Choice] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    """Reason -> how many articles."""


def count_uses(dialogues: Iterable[Dialogue]) -> Counter[tuple[str, str]]:
    """How often conversations rest on which article, in which configuration.

    The labels say it: `article` (in Topical-Chat's release `article_url`) and `config`.
    """
    uses: Counter[tuple[str, str]] = Counter()
    for dialogue in dialogues:
        article = dialogue.labels.get("article") or dialogue.labels.get("article_url")
        if article:
            uses[str(article), str(dialogue.labels.get("config") or "")] += 1
    return uses


def plan_pairs(
    base: KnowledgeBase,
    number: int,
    *,
    configurations: Mapping[str, Configuration] | None = None,
    seed: int = 0,
    most_uses: int = MOST_USES,
    uses: Mapping[tuple[str, str], int] | None = None,
) -> Plan:
    """Articles and configurations for `number` pairs.

    The configuration with the fewest pairs so far comes next; then one of the articles that were used least,
    rather in a configuration they were not used in. Chance decides between equals. `uses` are the accepted
    conversations there are already, by article and configuration; no article gets beyond `most_uses`.
    """
    configurations = read_configurations() if configurations is None else configurations
    names = list(configurations)
    can_carry, refusals = _feasible(base, configurations)  # (configurations, articles)
    used, used_in = _uses_so_far(base, names, uses or {})
    usable = can_carry.any(axis=0)
    free = np.maximum(most_uses - used, 0)[usable].sum()
    if number > free:
        raise UserError(
            f"{number:,} pairs were asked for, the articles allow {int(free):,}",
            f"{int(usable.sum()):,} articles can be used, each for at most {most_uses} conversations, of "
            f"which {int(used[usable].sum()):,} have been held; add articles, or ask for fewer pairs",
            [f"{reason}: {n:,} articles" for reason, n in refusals.items()],
        )
    rng = np.random.default_rng([seed, _PLAN])
    n_pairs = used_in.sum(axis=1)  # (configurations,)
    is_swapped = rng.random(len(names)) < 0.5
    plan = Plan(refusals=refusals)
    for _ in range(number):
        open_articles = can_carry & (used < most_uses)  # (configurations, articles)
        possible = open_articles.any(axis=1)
        kind = _draw(rng, np.where(possible, n_pairs, np.iinfo(np.int64).max))
        burden = used * (most_uses + 1) + used_in[kind]  # open articles have been used less than that
        place = _draw(rng, np.where(open_articles[kind], burden, np.iinfo(np.int64).max))
        plan.choices.append(Choice(base.articles[place], names[kind], bool(is_swapped[kind])))
        is_swapped[kind] = not is_swapped[kind]  # each side gets the first part equally often
        n_pairs[kind] += 1
        used[place] += 1
        used_in[kind, place] += 1
    return plan


def _uses_so_far(
    base: KnowledgeBase, names: Sequence[str], uses: Mapping[tuple[str, str], int]
) -> tuple[np.ndarray, np.ndarray]:
    """Conversations about each article, (articles,), and by configuration, (configurations, articles)."""
    columns = {article.id: column for column, article in enumerate(base.articles)}
    used = np.zeros(len(columns), dtype=np.int64)
    used_in = np.zeros((len(names), len(columns)), dtype=np.int64)
    for (article, name), n in uses.items():
        if article in columns:
            used[columns[article]] += n
            if name in names:
                used_in[names.index(name), columns[article]] += n
    return used, used_in


def _draw(rng: np.random.Generator, burdens: np.ndarray) -> int:
    """One of the places with the smallest burden."""
    return int(rng.choice(np.flatnonzero(burdens == burdens.min())))


def _feasible(
    base: KnowledgeBase, configurations: Mapping[str, Configuration]
) -> tuple[np.ndarray, dict[str, int]]:
    """Which article can carry which configuration, and the reasons against. (configurations, articles)"""
    can_carry = np.zeros((len(configurations), len(base.articles)), dtype=bool)
    reasons: Counter[str] = Counter()
    for row, (name, configuration) in enumerate(configurations.items()):
        for column, article in enumerate(base.articles):
            fault = pair_fault(base, article, configuration)
            can_carry[row, column] = fault is None
            if fault is not None:
                reasons[f"configuration {name}: {fault}"] += 1
    return can_carry, dict(reasons)


def pair_fault(base: KnowledgeBase, article: ArticleRecord, configuration: Configuration) -> str | None:
    """Why an article cannot carry a configuration; None if it can."""
    entities = _entities(base, article)
    if len(entities) < FEWEST_ENTITIES:
        return f"fewer than {FEWEST_ENTITIES} known entities"
    needed = FEWEST_FACTS * len(configuration.hands)
    if any(len(entity.facts) < needed for entity in entities):
        return f"an entity with fewer than {needed} facts"
    forms = set(configuration.leads) - {"none"}
    if any(not getattr(entity, form) for entity in entities for form in forms):
        return "an entity without its lead section"
    if any(configuration.article):
        try:
            cut_article(article.text)
        except ValueError:
            return f"fewer than {N_PARTS} sentences"
    return None


def _entities(base: KnowledgeBase, article: ArticleRecord) -> list[EntityRecord]:
    names = top_entities(article.mentions, FEWEST_ENTITIES)
    return [base.by_name[name] for name in names if name in base.by_name]


def make_pair(
    base: KnowledgeBase,
    choice: Choice,
    configuration: Configuration,
    *,
    id: str,
    rng: np.random.Generator,
) -> tuple[ReadingSet, ReadingSet]:
    """What the two sides read. Their names end the ids of the sets, so that a speaker's set is found."""
    fault = pair_fault(base, choice.article, configuration)
    if fault is not None:
        raise UserError(f"{choice.article.id} cannot carry configuration {choice.configuration}: {fault}")
    entities = _entities(base, choice.article)
    hands = [_deal(entity.facts, configuration.hands, rng) for entity in entities]
    record = choice.article
    shown = Article(id=record.id, title=record.title, parts=cut_article(record.text), url=record.url)

    def reading_set(side: str, part: int) -> ReadingSet:
        form = configuration.leads[part]
        return ReadingSet(
            id=f"{id}-{side}",
            sections=tuple(
                Section(
                    entity=entity.entity,
                    lead=getattr(entity, form) if form != "none" else "",
                    lead_form=form,
                    facts=hand[configuration.facts[part]],
                )
                for entity, hand in zip(entities, hands, strict=True)
            ),
            article=shown if configuration.article[part] else None,
            configuration=choice.configuration,
        )

    first, second = (1, 0) if choice.is_swapped else (0, 1)
    return reading_set(SIDES[0], first), reading_set(SIDES[1], second)


def _deal(
    facts: Sequence[Fact], hands: Sequence[int], rng: np.random.Generator
) -> dict[int, tuple[Fact, ...]]:
    """Four or five facts for each hand, none of them in two hands; hand 0 has none."""
    order = [int(place) for place in rng.permutation(len(facts))]
    dealt: dict[int, tuple[Fact, ...]] = {0: ()}
    for n_dealt, hand in enumerate(hands, start=1):
        for_others = FEWEST_FACTS * (len(hands) - n_dealt)
        most = min(MOST_FACTS, len(order) - for_others)
        size = int(rng.integers(FEWEST_FACTS, most + 1))
        dealt[hand] = tuple(facts[place] for place in sorted(order[:size]))
        order = order[size:]
    return dealt


def make_reading_sets(
    base: KnowledgeBase,
    plan: Plan,
    *,
    configurations: Mapping[str, Configuration] | None = None,
    seed: int = 0,
) -> list[Dialogue]:
    """Conversations that nobody has held yet: no turns, and each side's reading set.

    The facts of a pair depend on the seed and its number alone.
    """
    configurations = read_configurations() if configurations is None else configurations
    dialogues = []
    for number, choice in enumerate(plan.choices, start=1):
        id = f"{seed}-{number:04d}"
        rng = np.random.default_rng([seed, _FACTS, number])
        pair = make_pair(base, choice, configurations[choice.configuration], id=id, rng=rng)
        labels = {"config": choice.configuration, "article": choice.article.id}
        dialogues.append(Dialogue(id=id, turns=(), speakers=SIDES, knowledge=pair, labels=labels))
    return dialogues


def parts_by_name(reading_set: ReadingSet) -> dict[str, Section | str]:
    """The parts under the names that turns refer to: FS1, FS2, … and AS1, AS2, …"""
    parts: dict[str, Section | str] = {
        f"FS{n}": section for n, section in enumerate(reading_set.sections, start=1)
    }
    article = reading_set.article
    if article is not None:
        parts.update({f"AS{n}": text for n, text in enumerate(article.parts, start=1)})
    return parts
