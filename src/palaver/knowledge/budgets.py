"""How many entities of each topic a knowledge base holds, and which (Topical-Chat, section 3.1)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from palaver.errors import UserError


class Candidate(NamedTuple):
    """An entity that may be chosen, and how often people mention it."""

    name: str
    topic: str
    frequency: int


def paper_budgets() -> dict[str, int]:
    """Table 1 of the paper: 8 topics, 300 entities."""
    return dict(_table()["paper"])


def paper_topic(topic: str) -> str:
    """The paper's name of a topic of the release, such as sci_tech; another topic stays as it is."""
    names: dict[str, str] = _table()["release"]
    return names.get(topic, topic)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("palaver.knowledge").joinpath("budgets.toml").read_text(encoding="utf-8"))


def spread_budget(total: int, frequencies: Mapping[str, int]) -> dict[str, int]:
    """`total` entities spread over the topics as people talk about them (largest remainders)."""
    n_mentions = sum(frequencies.values())
    if not n_mentions:
        raise UserError(
            "no topic is mentioned, so a budget cannot be spread",
            "name budgets by topic: --budgets Books=10,Music=12",
        )
    exact = {topic: total * n / n_mentions for topic, n in frequencies.items()}
    budgets = {topic: int(share) for topic, share in exact.items()}
    by_remainder = sorted(exact, key=lambda topic: budgets[topic] - exact[topic])
    for topic in by_remainder[: total - sum(budgets.values())]:
        budgets[topic] += 1
    return budgets


def choose_entities(candidates: Sequence[Candidate], budgets: Mapping[str, int]) -> list[str]:
    """The most frequent entities of each topic, as many as its budget; of equals the ones that come first."""
    chosen: set[str] = set()
    for topic, budget in budgets.items():
        own = [candidate for candidate in candidates if candidate.topic == topic]
        own.sort(key=lambda candidate: -candidate.frequency)
        chosen.update(candidate.name for candidate in own[:budget])
    return [candidate.name for candidate in candidates if candidate.name in chosen]
