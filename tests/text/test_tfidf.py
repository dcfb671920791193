"""Term weights against sums written out term by term."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.text.tfidf import Bm25, Tfidf, terms

pytest.importorskip("sklearn")

texts = st.lists(st.sampled_from(["a", "b", "c", "dd", "e.", ",", "f", "don't"]), max_size=8).map(" ".join)


def score_all(weights: Tfidf | Bm25, queries: list[str], candidates: list[str]) -> Any:
    """Every query with every candidate. (queries, candidates)"""
    return (weights.queries(queries) @ weights.documents(candidates).T).toarray()


def score(weights: Tfidf | Bm25, query: str, candidates: list[str]) -> Any:
    return score_all(weights, [query], candidates)[0]


def test_terms_have_a_letter_or_a_digit() -> None:
    assert " ".join(terms("Well, I don't (really) know... 5% 😀 'em!")) == "well i do n't really know 5 em"


def cosine_by_hand(documents: list[str], one: str, other: str) -> float:
    n = len(documents)
    df = Counter(term for text in documents for term in set(terms(text)))

    def vector(text: str) -> dict[str, float]:
        counts = Counter(term for term in terms(text) if term in df)
        return {t: c * (math.log((1 + n) / (1 + df[t])) + 1) for t, c in counts.items()}

    a, b = vector(one), vector(other)
    lengths = math.hypot(*a.values()) * math.hypot(*b.values())
    return sum(a[t] * b.get(t, 0) for t in a) / lengths if lengths else 0.0


def bm25_by_hand(documents: list[str], query: str, candidate: str, k1: float, b: float) -> float:
    n = len(documents)
    df = Counter(term for text in documents for term in set(terms(text)))
    mean = sum(len(terms(text)) for text in documents) / n
    counts, length = Counter(terms(candidate)), len(terms(candidate))
    total = 0.0
    for term in terms(query):
        if df[term]:
            idf = math.log(1 + (n - df[term] + 0.5) / (df[term] + 0.5))
            total += idf * counts[term] / (counts[term] + k1 * (1 - b + b * length / mean))
    return total


@settings(max_examples=50, deadline=None)
@given(st.lists(texts, min_size=1, max_size=6), texts, st.lists(texts, min_size=1, max_size=4))
def test_scores_are_the_sums_by_hand(documents: list[str], query: str, candidates: list[str]) -> None:
    documents = [*documents, "a word"]
    expected = [cosine_by_hand(documents, query, c) for c in candidates]
    np.testing.assert_allclose(score(Tfidf(documents), query, candidates), expected, atol=1e-12)
    expected = [bm25_by_hand(documents, query, c, 1.5, 0.6) for c in candidates]
    np.testing.assert_allclose(score(Bm25(documents, k1=1.5, b=0.6), query, candidates), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [Tfidf, Bm25])
def test_many_at_once_equal_one_by_one(kind: type[Tfidf] | type[Bm25]) -> None:
    documents = ["The cat sat.", "A dog barked at the cat!", "Stocks fell."]
    weights = kind(iter(documents))
    queries = ["cat and dog", "", "unheard of", "stocks, stocks"]
    table = score_all(weights, queries, documents)
    assert table.shape == (4, 3)
    for row, query in zip(table, queries, strict=True):
        np.testing.assert_array_equal(row, score(weights, query, documents))
    assert table[0].argmax() == 1
    assert not table[1].any()


@pytest.mark.parametrize("kind", [Tfidf, Bm25])
@pytest.mark.parametrize("documents", [[], ["", "..."]])
def test_documents_without_words(kind: type[Tfidf] | type[Bm25], documents: list[str]) -> None:
    with pytest.raises(UserError, match="hold no words"):
        kind(documents)


@pytest.mark.parametrize("options", [{"k1": -1.0}, {"b": 1.5}])
def test_wrong_bm25(options: dict[str, float]) -> None:
    with pytest.raises(UserError, match="BM25 needs"):
        Bm25(["a b"], **options)
