"""Active sampling asks about the pair whose outcome is most open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from palaver.schema import Study
from palaver.server.answers import RawAnswer
from palaver.server.database import Database
from palaver.server.next_screen import most_telling
from palaver.server.study_state import StudyState

PAIRS = {0: ("a", "b"), 1: ("a", "c"), 2: ("b", "c")}


def test_with_no_answers_the_first_screen_is_as_good_as_any() -> None:
    assert most_telling(PAIRS, []) == 0
    assert most_telling({7: ("a", "b"), 3: ("c", "d")}, []) == 3


def test_the_settled_pair_is_asked_last() -> None:
    settled = [("a", "b", "win")] * 12
    assert most_telling(PAIRS, settled) != 0
    assert most_telling({0: ("a", "b"), 1: ("c", "d")}, settled) == 1


def test_of_two_equally_unsure_pairs_the_closer_one() -> None:
    # a beats c and b beats c as often; a and b stay close to each other.
    told = [("a", "c", "win"), ("b", "c", "win")] * 6
    assert most_telling(PAIRS, told) == 0


def test_unknown_systems_come_before_known_ones() -> None:
    told = [("a", "b", w) for w in ("win", "loss", "tie") * 5]
    assert most_telling({0: ("a", "b"), 1: ("x", "y")}, told) == 1


def test_the_names_and_the_order_of_the_screens_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    told = [
        (a, b, str(rng.choice(["win", "loss", "tie"])))
        for a, b in [PAIRS[int(i)] for i in rng.integers(0, 3, 15)]
    ]
    chosen = most_telling(PAIRS, told)
    backwards = dict(reversed(PAIRS.items()))
    assert most_telling(backwards, told) == chosen
    names = {"a": "zeta", "b": "eta", "c": "theta"}
    renamed = {s: (names[x], names[y]) for s, (x, y) in PAIRS.items()}
    assert most_telling(renamed, [(names[x], names[y], v) for x, y, v in told]) == chosen


def tournament(systems: str) -> list[dict[str, Any]]:
    pairs = [(a, b) for i, a in enumerate(systems) for b in systems[i + 1 :]]
    return [
        {
            "id": f"{a}{b}{n}",
            "outputs": [{"system": a, "text": f"{a} speaks"}, {"system": b, "text": f"{b} speaks"}],
        }
        for a, b in pairs
        for n in range(6)
    ]


def test_served_actively_close_pairs_are_asked_more(
    sqlite: Database, clock: Any, make_study: Callable[..., Study]
) -> None:
    """a is far above b, c and d, who are alike: the questions go to those three."""
    study = make_study(
        scale={"kind": "pairwise"},
        items=tournament("abcd"),
        assignment="active",
        raters_per_item=1,
        items_per_rater=18,
    )
    study_state = StudyState.create(sqlite, study, "", clock)
    rater = study_state.enter()
    study_state.begin(rater)
    asked: Counter[str] = Counter()
    rng = np.random.default_rng(1)
    for n in range(18):
        task = study_state.visit(rater).task
        assert task is not None
        pair = task.item.id[:2]
        asked[pair] += 1
        value = "win" if pair[0] == "a" else str(rng.choice(["win", "loss"]))
        study_state.submit(rater, task.assignment, [RawAnswer(f"answer-{n}", "quality", 0, value)])
    with_a = sum(count for pair, count in asked.items() if pair[0] == "a")
    assert with_a < 18 - with_a


def test_active_needs_comparisons(make_study: Callable[..., Study]) -> None:
    with pytest.raises(ValidationError, match="active"):
        make_study(assignment="active", n_outputs=3)
