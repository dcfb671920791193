"""Bags of words: how often each of the most frequent words comes in a sample.

The control of Xing & Fernández (2018, section 4): if plain words told the characters apart as well as the
traits do, the recogniser would see no more than word use. Stop words stay, as they may show personality;
without them (scikit-learn's list, as in footnote 10) is a second control.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from palaver.errors import require
from palaver.personality.counts import Counter as WordCounter
from palaver.personality.lexicon import Lexicon
from palaver.personality.samples import CountVectors

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CURLY = str.maketrans("’‘‛ʼ´", "'" * 5)


class Bag:
    """The most frequent words of some texts, with and without stop words, and how to count them."""

    def __init__(self, texts: Iterable[str], n: int) -> None:
        frequency: Counter[str] = Counter()
        for text in texts:
            frequency.update(_WORD.findall(text.lower().translate(_CURLY)))
        stop = require("sklearn.feature_extraction.text", "models").ENGLISH_STOP_WORDS
        order = sorted(frequency, key=lambda word: (-frequency[word], word))
        self.words = tuple(order[:n])
        self.content_words = tuple(word for word in order if not _is_stop(word, stop))[:n]
        self._all = tuple(dict.fromkeys((*self.words, *self.content_words)))
        exact = {word: frozenset({i}) for i, word in enumerate(self._all)}
        categories = tuple(f"bag:{word}" for word in self._all)
        self._counter = WordCounter(Lexicon("bag", "liwc", categories, exact, {}))
        self._first = self._counter.columns.index(categories[0]) if categories else 0

    def count(self, texts: Sequence[str]) -> Any:
        """(n, words of either kind) sparse counts."""
        return self._counter.count(texts)[:, self._first : self._first + len(self._all)]

    def vectors(self, counts: Any) -> dict[str, CountVectors]:
        """Both bags over the counts of all utterances."""
        place = {word: i for i, word in enumerate(self._all)}
        return {
            name: CountVectors(counts, columns=np.array([place[word] for word in chosen], dtype=np.int64))
            for name, chosen in (
                ("words", self.words),
                ("words without stop words", self.content_words),
            )
            if chosen
        }


def _is_stop(word: str, stop: frozenset[str]) -> bool:
    """Also "don't" and "it's", which scikit-learn's tokeniser would part."""
    first = word.partition("'")[0]
    return word in stop or (first != word and (first in stop or f"{first}t" in _NOT))


_NOT = frozenset({"dont", "didnt", "doesnt", "isnt", "wasnt", "werent", "arent", "aint", "wont", "couldnt"})
_NOT |= {"wouldnt", "shouldnt", "hasnt", "havent", "hadnt", "mustnt", "lett"}
