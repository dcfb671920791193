"""Perplexity per token and per word.

Per token it depends on the vocabulary: one that cuts text into more pieces has a lower one for the same model
of the text. Per word, exp(total negative log-likelihood / number of words), it does not, as long as words are
counted alike: `palaver.text.words.count_words` of each response plus one for its end, which the likelihood
includes. A word vocabulary gives one id to all words it does not know, which makes it look better than it is:
add what spelling them costs (`palaver.text.spelling`) to its likelihood per word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from palaver.statistics.bootstrap import Interval, percentile_interval, resample_sums


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Perplexities with the sums they come from; nan without tokens or words, inf beyond all numbers."""

    per_token: float
    per_word: float
    nll_sum: float
    n_tokens: int
    n_words: int
    per_token_interval: Interval | None = None
    per_word_interval: Interval | None = None

    @property
    def bits_per_word(self) -> float:
        """Binary logarithm of the perplexity per word."""
        return self.nll_sum / self.n_words / math.log(2) if self.n_words else math.nan

    def __str__(self) -> str:
        return f"{self.per_token:.2f} per token, {self.per_word:.2f} per word"


def perplexity(nll_sum: float, n_tokens: int, n_words: int) -> Perplexity:
    """From the sum of negative natural log-likelihoods over all responses."""
    if n_tokens < 0 or n_words < 0:
        raise ValueError(f"counts cannot be negative: {n_tokens} tokens, {n_words} words")
    return Perplexity(
        _exp(nll_sum, n_tokens), _exp(nll_sum, n_words), float(nll_sum), int(n_tokens), int(n_words)
    )


def corpus_perplexity(
    nll: Sequence[float],
    n_tokens: Sequence[int],
    n_words: Sequence[int],
    *,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
) -> Perplexity:
    """The same from one number per response (or per dialogue), with bootstrap intervals over them."""
    table = np.column_stack([np.asarray(column, dtype=np.float64) for column in (nll, n_tokens, n_words)])
    whole = perplexity(table[:, 0].sum(), int(table[:, 1].sum()), int(table[:, 2].sum()))
    sums = resample_sums(table, n_replicates, np.random.default_rng(seed))
    by_token, by_word = (
        percentile_interval([_exp(nll_of, n) for nll_of, n in sums[:, [0, column]]], confidence)
        for column in (1, 2)
    )
    return Perplexity(
        whole.per_token, whole.per_word, whole.nll_sum, whole.n_tokens, whole.n_words, by_token, by_word
    )


def _exp(nll_sum: float, n: float) -> float:
    if not n:
        return math.nan
    try:
        return math.exp(nll_sum / n)
    except OverflowError:
        return math.inf
