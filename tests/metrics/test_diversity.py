"""Diversity within responses and over all of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.metrics.diversity import distinct_n, diversity_n, diversity_of

texts = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6).map(" ".join), max_size=5)


def grams(text: str, n: int) -> list[str]:
    tokens = text.split()
    return [" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(1, 3))
def test_by_hand(responses: list[str], n: int) -> None:
    pooled = [gram for text in responses for gram in grams(text, n)]
    expected = len(set(pooled)) / len(pooled) if pooled else math.nan
    assert distinct_n(responses, n) == pytest.approx(expected, nan_ok=True)
    counted = [text for text in responses if grams(text, n)]
    for per in ("words", "ngrams"):
        each = [len(set(grams(t, n))) / len(t.split() if per == "words" else grams(t, n)) for t in counted]
        expected = sum(each) / len(each) if each else math.nan
        assert diversity_n(responses, n, per=per) == pytest.approx(expected, nan_ok=True)  # type: ignore[arg-type]


def test_one_response() -> None:
    assert diversity_of("yes yes yes yes", 1) == 0.25
    assert diversity_of("a b a b", 2) == 0.5
    assert diversity_of("a b a b", 2, per="ngrams") == pytest.approx(2 / 3)
    assert math.isnan(diversity_of("word", 2))
    with pytest.raises(UserError, match="n of 1 or more"):
        diversity_of("word", 0)


def test_only_the_mean_per_response_can_be_what_the_paper_reports(shared_data: Path) -> None:
    """Table 3 of Topical-Chat: Div. 0.85 and 0.86; people, who repeat themselves less, must lie above."""
    from palaver.corpora.catalogue import read_corpus

    talks = read_corpus("topical-chat", root=shared_data, split="test_freq")
    responses = [turn.text for talk in talks for turn in talk.turns]
    assert distinct_n(responses, 1) == pytest.approx(0.03, abs=0.01)
    assert distinct_n(responses, 2) == pytest.approx(0.26, abs=0.01)
    assert diversity_n(responses, 1) == pytest.approx(0.91, abs=0.01)
    assert diversity_n(responses, 2) == pytest.approx(0.93, abs=0.01)
    assert diversity_n(responses, 2, per="ngrams") == pytest.approx(0.99, abs=0.005)


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=60), st.integers(1, 400))
@settings(max_examples=50)
def test_keys_are_counted_as_numpy_counts_them(keys: list[int], n_more: int) -> None:
    """Also while the table grows."""
    from palaver.metrics._kernels import key_counts

    array = np.concatenate([np.array(keys, np.int64), np.arange(n_more * 13, dtype=np.int64) << 32])
    assert sorted(key_counts(array)) == sorted(np.unique(array, return_counts=True)[1])
