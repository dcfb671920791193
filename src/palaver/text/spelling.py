"""What a word vocabulary leaves unsaid: the words it does not know, spelled letter by letter.

All unknown words share one id, so predicting it costs little and says nothing about which word it was; a
model over pieces of words has to spell it out. For perplexities per word that can be compared, an unknown
word costs its spelling too: letters drawn independently, as often as they stand in the vocabulary's own
words, and an end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from palaver.text.vocabulary import SEP, UNK, Vocabulary
from palaver.text.words import words

_CHARACTERS = 0x110000


class Spelling:
    """Costs in nats; none at all for a vocabulary that spells everything itself."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._spells = vocabulary.kind == "word"
        known: Iterable[str] = vocabulary.tokens[SEP + 1 :] if self._spells else ()
        counts = Counter("".join(known))
        n_words = len(vocabulary)
        total = counts.total() + n_words + 1  # letters, ends, and one for all that never occur
        self._end = math.log(total / n_words)
        self._letters = {letter: math.log(total / n) for letter, n in counts.items()}
        self._other = math.log(total) + math.log(_CHARACTERS)

    def word(self, text: str) -> float:
        """The cost of one word."""
        return self._end + sum(self._letters.get(letter, self._other) for letter in text)

    def unknown(self, text: str, ids: Sequence[int]) -> float:
        """The cost of the unknown words of `text`, of which `ids` are the first tokens."""
        if not self._spells or UNK not in ids:
            return 0.0
        return sum(self.word(w) for w, i in zip(words(text), ids, strict=False) if i == UNK)
