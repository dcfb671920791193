"""Shortened and summarised lead sections."""

from __future__ import annotations

import time
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.knowledge.leads import count_spaced_words, rank_sentences, shorten, summarise


def test_textrank_of_a_graph_worked_out_by_hand() -> None:
    # S1 and S2 share "red", S2 and S3 share "blue"; S1 and S3 share nothing. Sizes 2, 2, 3.
    texts = ["red one", "red blue", "blue two three"]
    first, second = 1 / (2 * log(2)), 1 / (log(2) + log(3))
    d = 0.85
    # S1 and S3 have S2 as their only neighbour; S2 divides its score by the weights.
    to_first = first / (first + second)
    to_third = second / (first + second)
    # x2 = (1 - d) + d (x1 + x3);  x1 = (1 - d) + d to_first x2;  x3 likewise;  to_first + to_third = 1
    x2 = ((1 - d) + 2 * d * (1 - d)) / (1 - d**2)
    expected = [(1 - d) + d * to_first * x2, x2, (1 - d) + d * to_third * x2]
    assert rank_sentences(texts) == pytest.approx(expected)
    assert expected == pytest.approx([0.8494, 1.4595, 0.6911], abs=1e-4)


def test_words_count_once_and_alone_a_sentence_keeps_the_base_score() -> None:
    assert rank_sentences(["Tea, tea, TEA!", "tea"]) == pytest.approx(
        [0.15, 0.15]
    )  # no logarithm to divide by
    assert rank_sentences(["nothing alike", "all different"]) == pytest.approx([0.15, 0.15])
    assert rank_sentences(["one", "..."]) == pytest.approx([0.15, 0.15])
    assert len(rank_sentences([])) == 0


@given(st.lists(st.text("abc ", min_size=1, max_size=12), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_the_scores_solve_the_equation(texts: list[str]) -> None:
    scores = rank_sentences(texts)
    sets = [set(text.split()) for text in texts]
    n = len(texts)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            below = log(len(sets[i]) or 1) + log(len(sets[j]) or 1)
            if i != j and below:
                weights[i, j] = len(sets[i] & sets[j]) / below
    for i in range(n):
        given_to_i = sum(weights[j, i] / weights[j].sum() * scores[j] for j in range(n) if weights[j, i])
        assert scores[i] == pytest.approx(0.15 + 0.85 * given_to_i)


def test_a_thousand_sentences_take_less_than_a_second() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(3000)]
    text = " ".join(" ".join(rng.choice(words, 20)).capitalize() + "." for _ in range(1000))
    summarise("Warm up. The imports are not measured.")
    begin = time.process_time()
    summary = summarise(text)
    assert time.process_time() - begin < 1
    assert 130 <= count_spaced_words(summary) <= 150


def test_the_summary_keeps_the_order_and_the_limit() -> None:
    lead = (
        "Tea is a drink of leaves.\nIt is hot. Leaves of tea are dried. Green tea is a drink too.\n\nGoodbye."
    )
    whole = "Tea is a drink of leaves. It is hot. Leaves of tea are dried. Green tea is a drink too. Goodbye."
    assert summarise(lead) == whole
    assert summarise(lead, 13) == "Tea is a drink of leaves. Green tea is a drink too. Goodbye."
    assert summarise(lead, 0) == ""
    assert summarise(" ".join(["word"] * 151)) == ""


@pytest.mark.parametrize(
    ("lead", "shortened"),
    [
        ("One.\n\nTwo.\n\nThree.", "One.\nTwo."),
        ("One.\nTwo.\nThree.", "One.\nTwo."),
        ("A line\nthat is broken.\n\nTwo.", "A line that is broken.\nTwo."),
        (" ".join(["word"] * 49) + "\n\nTwo.", " ".join(["word"] * 49) + "\nTwo."),
        (" ".join(["word"] * 50) + "\n\nTwo.", " ".join(["word"] * 50)),
        ("Only one.", "Only one."),
        (" \n\n ", ""),
    ],
)
def test_the_first_paragraph_and_the_second_if_the_first_is_short(lead: str, shortened: str) -> None:
    assert shorten(lead) == shortened
