"""The two forms of a lead section (Topical-Chat, section 3.1), and the TextRank behind the second.

TextRank (Mihalcea & Tarau 2004) ranks sentences by the words they share: the weight between two sentences is
the number of distinct words in both, divided by log |S1| + log |S2|, where |S| counts a sentence's distinct
words. A sentence's score is WS(i) = (1 - d) + d * sum_j w_ji / (sum_k w_jk) * WS(j). That is a linear system,
which is solved, not iterated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palaver.text.tfidf import terms
from palaver.text.words import sentences

FEW_WORDS = 50
"""A first paragraph with fewer words takes the second along."""
MOST_WORDS = 150
"""Of a summary."""
DAMPING = 0.85

Floats = NDArray[np.float64]


def count_spaced_words(text: str) -> int:
    """Words between spaces, as people count them."""
    return len(text.split())


def paragraphs(text: str) -> list[str]:
    """Parted by empty lines, or by line ends where there are no empty lines."""
    bound = r"\n\s*\n" if re.search(r"\n\s*\n", text.strip()) else r"\n"
    parts = (" ".join(part.split()) for part in re.split(bound, text))
    return [part for part in parts if part]


def shorten(lead: str) -> str:
    """The first paragraph, and the second if the first has fewer than 50 words."""
    parts = paragraphs(lead)
    n_parts = 2 if parts and count_spaced_words(parts[0]) < FEW_WORDS else 1
    return "\n".join(parts[:n_parts])


def summarise(lead: str, most_words: int = MOST_WORDS) -> str:
    """The highest-ranked sentences that fit into `most_words`, in reading order.

    A sentence that would not fit any more is passed over. Equal scores go to the one that comes first.
    """
    candidates = [sentence for part in paragraphs(lead) for sentence in sentences(part)]
    scores = rank_sentences(candidates)
    chosen = []
    words_left = most_words
    # Rounding: equal scores differ in the last digit after the system is solved.
    for place in sorted(range(len(candidates)), key=lambda i: (-round(float(scores[i]), 9), i)):
        n_words = count_spaced_words(candidates[place])
        if n_words <= words_left:
            chosen.append(place)
            words_left -= n_words
    return " ".join(candidates[place] for place in sorted(chosen))


def rank_sentences(texts: Sequence[str]) -> Floats:
    """The TextRank score of each sentence. (sentences,)"""
    n = len(texts)
    if n == 0:
        return np.zeros(0)
    weights = _overlaps(texts)  # (n, n), symmetric
    totals = weights.sum(axis=1)  # (n,)
    shares = np.divide(weights, totals[:, None], out=np.zeros_like(weights), where=totals[:, None] > 0)
    return np.linalg.solve(np.eye(n) - DAMPING * shares.T, np.full(n, 1 - DAMPING))


def _overlaps(texts: Sequence[str]) -> Floats:
    """Shared distinct words of each two sentences over the sum of the logarithms of their sizes. (n, n)

    Two sentences of one word each have no logarithm to divide by: their weight is 0, as that of a
    sentence with itself.
    """
    from scipy.sparse import csr_array

    word_sets = [dict.fromkeys(terms(text)) for text in texts]
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(word, len(numbers)) for words in word_sets for word in words]
    sizes = np.array([len(words) for words in word_sets])
    rows = np.repeat(np.arange(len(texts)), sizes)
    shape = (len(texts), max(len(numbers), 1))
    has_word = csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)  # (n, words)
    shared = (has_word @ has_word.T).toarray()
    logs = np.log(np.maximum(sizes, 1))
    divisors = logs[:, None] + logs[None, :]
    weights: Floats = np.divide(shared, divisors, out=np.zeros_like(shared), where=divisors > 0)
    np.fill_diagonal(weights, 0)
    return weights
