"""Entity budgets by topic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.knowledge.budgets import Candidate, choose_entities, paper_budgets, paper_topic, spread_budget


def test_the_papers_table() -> None:
    budgets = paper_budgets()
    assert (len(budgets), sum(budgets.values())) == (8, 300)
    assert (budgets["Movies"], budgets["Fashion"]) == (66, 20)
    assert {paper_topic(name) for name in ("sci_tech", "entertainment_general", "movies")} <= set(budgets)
    assert paper_topic("Gardens") == "Gardens"


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 50), min_size=1))
def test_a_spread_budget_adds_up_and_follows_the_frequencies(total: int, frequencies: dict[str, int]) -> None:
    n_mentions = sum(frequencies.values())
    if not n_mentions:
        with pytest.raises(UserError, match="no topic is mentioned"):
            spread_budget(total, frequencies)
        return
    budgets = spread_budget(total, frequencies)
    assert sum(budgets.values()) == total
    for topic, frequency in frequencies.items():
        assert abs(budgets[topic] - total * frequency / n_mentions) < 1


def test_the_most_frequent_of_each_topic() -> None:
    candidates = [
        Candidate("a", "x", 1),
        Candidate("b", "x", 5),
        Candidate("c", "y", 0),
        Candidate("d", "x", 1),
        Candidate("e", "z", 9),
    ]
    assert choose_entities(candidates, {"x": 2, "y": 3}) == ["a", "b", "c"]
