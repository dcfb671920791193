"""The reading sets of a collection, planned before anybody comes: pairing only takes the next number."""

from __future__ import annotations

from pathlib import Path

from palaver.collection.lobby import SEATS
from palaver.collection.settings import Collection
from palaver.errors import UserError
from palaver.knowledge.base import SAMPLE, KnowledgeBase, read_built, read_sample
from palaver.knowledge.build import build_knowledge_base
from palaver.knowledge.reading_sets import make_reading_sets, pair_fault, plan_pairs, read_configurations
from palaver.schema import Dialogue


def plan_conversations(collection: Collection, folder: Path) -> list[Dialogue] | None:
    """A dialogue without turns for each conversation that may be held, with what each side reads.

    None where nothing is read. Paths are relative to `folder`.
    """
    settings = collection.knowledge
    if settings is None:
        return None
    base = _read_base(settings.base, folder)
    path = folder / settings.configurations if settings.configurations else None
    configurations = read_configurations(path)
    n_usable = sum(
        any(pair_fault(base, article, configuration) is None for configuration in configurations.values())
        for article in base.articles
    )
    wanted = collection.conversation.wanted
    number = n_usable * settings.most_uses if wanted is None else wanted
    if not number:
        raise UserError(f"{settings.base}: no article can be read with these configurations")
    plan = plan_pairs(
        base,
        number,
        configurations=configurations,
        seed=collection.seed,
        most_uses=settings.most_uses,
    )
    return make_reading_sets(base, plan, configurations=configurations, seed=collection.seed)


def number_of_plans(collection: Collection, plans: list[Dialogue] | None) -> int | None:
    """How many conversations are held at most; None for any number."""
    return len(plans) if plans is not None else collection.conversation.wanted


def _read_base(name: str, folder: Path) -> KnowledgeBase:
    if name == SAMPLE:
        return build_knowledge_base(read_sample()).base
    return read_built(folder / name)


assert SEATS == ("agent_1", "agent_2"), "the sides of planned reading sets have these names"
