"""Perplexity from sums, and its interval."""

from __future__ import annotations

import math

import pytest

from palaver.statistics.perplexity import Perplexity, corpus_perplexity


def test_per_token_and_per_word() -> None:
    found = Perplexity(nll=20 * math.log(8), n_tokens=20, n_words=10)
    assert found.per_token == pytest.approx(8)
    assert found.per_word == pytest.approx(64)
    assert str(found) == "8.00 per token, 64.00 per word"


def test_per_word_does_not_depend_on_how_words_are_cut() -> None:
    whole, pieces = Perplexity(30.0, 10, 10), Perplexity(30.0, 25, 10)
    assert whole.per_word == pieces.per_word == whole.per_token > pieces.per_token


def test_unknown_words_cost_their_spelling() -> None:
    found = Perplexity(20.0, 10, 5, spelling=5.0)
    assert found.per_token == pytest.approx(math.exp(2))
    assert found.per_word == pytest.approx(math.exp(5))


def test_the_edges() -> None:
    assert math.isnan(Perplexity(0, 0, 0).per_token)
    assert math.isnan(Perplexity(1, 1, 0).per_word)
    assert Perplexity(1e6, 1, 1).per_token == math.inf
    with pytest.raises(ValueError, match="negative"):
        Perplexity(1, -1, 1)


def test_a_corpus_has_an_interval() -> None:
    nll, tokens, words = [10.0, 30.0, 5.0, 12.0], [5, 10, 4, 6], [4, 9, 3, 5]
    found = corpus_perplexity(nll, tokens, words, seed=1, n_replicates=200)
    assert found.per_token == pytest.approx(math.exp(57 / 25))
    assert found.per_word == pytest.approx(math.exp(57 / 21))
    assert (found.n_tokens, found.n_words) == (25, 21)
    assert found.per_token_interval is not None
    assert found.per_token_interval.low < found.per_token < found.per_token_interval.high
    assert found == corpus_perplexity(nll, tokens, words, seed=1, n_replicates=200)
    same = corpus_perplexity([6.0, 6.0], [3, 3], [2, 2], n_replicates=20)
    assert same.per_word_interval is not None
    assert same.per_word_interval.low == same.per_word_interval.high == pytest.approx(math.exp(3))
