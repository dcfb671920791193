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
    """Perplexities from the sums they rest on; nan without tokens or words, inf beyond all numbers.

    >>> print(Perplexity(nll=20 * math.log(8), n_tokens=20, n_words=10))
    8.00 per token, 64.00 per word
    """

    nll: float
    """Negative natural log-likelihood, summed over all tokens."""
    n_tokens: int
    n_words: int
    spelling: float = 0.0
    """What unknown words cost on top, where a word counts (`palaver.text.spelling`)."""
    per_token_interval: Interval | None = None
    per_word_interval: Interval | None = None

    def __post_init__(self) -> None:
        if self.n_tokens < 0 or self.n_words < 0:
            raise ValueError(f"counts cannot be negative: {self.n_tokens} tokens, {self.n_words} words")

    @property
    def per_token(self) -> float:
        return _exp_mean(self.nll, self.n_tokens)

    @property
    def per_word(self) -> float:
        return _exp_mean(self.nll + self.spelling, self.n_words)

    def __str__(self) -> str:
        return f"{self.per_token:.2f} per token, {self.per_word:.2f} per word"


def corpus_perplexity(
    nll: Sequence[float],
    n_tokens: Sequence[int],
    n_words: Sequence[int],
    *,
    seed: int = 0,
    n_replicates: int = 1000,
    confidence: float = 0.95,
) -> Perplexity:
    """From one number per response (or per dialogue), with bootstrap intervals over them."""
    table = np.column_stack([np.asarray(column, dtype=np.float64) for column in (nll, n_tokens, n_words)])
    total_nll, total_tokens, total_words = table.sum(axis=0)
    sums = resample_sums(table, n_replicates, np.random.default_rng(seed))
    by_token, by_word = (
        percentile_interval([_exp_mean(nll_sum, n) for nll_sum, n in sums[:, [0, column]]], confidence)
        for column in (1, 2)
    )
    return Perplexity(
        float(total_nll),
        int(total_tokens),
        int(total_words),
        per_token_interval=by_token,
        per_word_interval=by_word,
    )


def _exp_mean(nll: float, n: float) -> float:
    if not n:
        return math.nan
    try:
        return math.exp(nll / n)
    except OverflowError:
        return math.inf
