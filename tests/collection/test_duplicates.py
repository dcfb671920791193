"""Texts that nearly repeat an earlier one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.collection.duplicates import FEWEST_WORDS, find_twins, overlap

sentences = st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=9).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(st.lists(sentences, max_size=25), st.sampled_from([0.5, 0.6, 0.75, 0.8, 1.0]))
def test_as_many_as_comparing_all_pairs(texts: list[str], least_shared: float) -> None:
    bags = [frozenset(text.split()) for text in texts]
    expected = [
        next(
            (
                earlier
                for earlier in range(place)
                if len(bags[earlier]) >= FEWEST_WORDS <= len(bags[place])
                and overlap(bags[earlier], bags[place]) >= least_shared
            ),
            None,
        )
        for place in range(len(bags))
    ]
    assert find_twins(texts, least_shared) == expected


def test_case_order_and_marks_do_not_count() -> None:
    texts = [
        "Did you see the game last night?",
        "See the game, last night... did YOU",
        "Did you see the film?",
    ]
    assert find_twins(texts) == [None, 0, None]
    assert find_twins(["I think so.", "I think so."]) == [None, None]
