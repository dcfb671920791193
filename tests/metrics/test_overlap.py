"""Unigram F1 and overlap with knowledge, against definitions written out."""

from __future__ import annotations

import math
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.metrics.examples import Example, Examples
from palaver.metrics.overlap import KNOWLEDGE_OVERLAP_1, KNOWLEDGE_OVERLAP_2, unigram_f1
from palaver.metrics.tokens import normalised_words

texts = st.lists(
    st.sampled_from(["a", "an", "The", "cat", "Cat's", "dog,", "!", "theory", "it's"]), max_size=8
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's, A dog. An ant!", ["cat", "s", "dog", "ant"]),
        ("Don’t “do” that", ["don", "t", "do", "that"]),
        ("theory of another-thing", ["theory", "of", "another", "thing"]),
        ("the a an ...", []),
    ],
)
def test_what_is_compared(text: str, expected: list[str]) -> None:
    assert normalised_words(text) == expected


def f1_by_hand(prediction: str, reference: str) -> float:
    def bag(text: str) -> list[str]:
        spaced = re.sub(r"[^\w\s]", " ", text.lower())
        return [word for word in spaced.split() if word not in ("a", "an", "the")]

    left = Counter(bag(reference))
    hits = 0
    for word in bag(prediction):
        if left[word]:
            left[word] -= 1
            hits += 1
    if not bag(reference):
        return math.nan
    if not hits:
        return 0.0
    precision, recall = hits / len(bag(prediction)), hits / len(bag(reference))
    return 2 * precision * recall / (precision + recall)


@settings(max_examples=100, deadline=None)
@given(texts.map(" ".join), texts.map(" ".join))
def test_f1_by_hand(prediction: str, reference: str) -> None:
    assert unigram_f1(prediction, reference) == pytest.approx(f1_by_hand(prediction, reference), nan_ok=True)


def test_f1_cases() -> None:
    assert unigram_f1("the cat sat", "A cat sat!") == 1
    assert unigram_f1("cat cat cat", "cat") == pytest.approx(0.5)
    assert unigram_f1("", "cat") == 0
    assert math.isnan(unigram_f1("cat", "the ..."))
    assert unigram_f1("red fish", ["blue bird", "red bird", "..."]) == pytest.approx(0.5)
    assert math.isnan(unigram_f1("cat", []))


def test_overlap_with_knowledge() -> None:
    fact = "An octopus has three hearts."
    responses = ["An octopus has three hearts!", "hearts three", "wow"]
    examples = Examples.of([Example(response, (), fact) for response in responses])
    assert KNOWLEDGE_OVERLAP_2.scores(examples) == pytest.approx([1, 0, math.nan], nan_ok=True)
    examples = Examples.of([Example("three hearts, wow", (), fact), Example("wow", (), "")])
    assert KNOWLEDGE_OVERLAP_1.scores(examples) == pytest.approx([2 / 3, math.nan], nan_ok=True)
