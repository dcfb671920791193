"""Count once, add up often: utterances -> a sparse matrix of additive statistics.

Every column is a sum over an utterance (words, sentences, words of a category, …), so that a sample of 500
utterances is the sum of 500 rows. The text goes through one compiled pass over its UTF-8 bytes; each new word
is looked up in the lexicon once, wildcards included, and is a number from then on.

A word is a run of letters and digits, with apostrophes inside it ("don't" is one word); curly apostrophes
count as straight ones, everything is lower-cased. A sentence ends at full stops, question and exclamation
marks or at the end of the utterance, and has at least one word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from palaver.errors import DataError
from palaver.personality.lexicon import Lexicon

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SURFACE = ("words", "letters", "sentences", "long_words", "repeats")
"""What every utterance has. `repeats`: words that stood in the same sentence before."""

MARKS: tuple[str, ...] = ("period", "apostrophe", "ellipsis", "question_mark", "exclamation_mark", "comma")
MARKS += ("colon", "semicolon", "dash", "quote", "parenthesis", "other_mark", "questions", "exclamations")
"""Counted like words; `...` is three periods and an ellipsis. `questions` are sentences that end in `?`."""

KNOWN = "known_words"
"""Words with at least one category."""

_BLOCK = 1 << 22  # bytes at a time: what is at work stays in the cache and memory stays bounded
_AT_ONCE = 4096
_SLOTS = 1 << 16
_GUESS = 20  # numbers an utterance
_MOST_TYPES = 2_000_000

_CHARACTERS = {
    "period": ".。",
    "apostrophe": "'’‘‛ʼ´`",
    "ellipsis": "…",
    "question_mark": "?？",
    "exclamation_mark": "!！",
    "comma": ",，、",
    "colon": ":：",
    "semicolon": ";；",
    "dash": "-‐‑‒–—―",
    "quote": '"“”„‟«»',
    "parenthesis": "()[]{}（）",
}


@cache
def character_tables() -> tuple[np.ndarray, np.ndarray]:
    """Kind and lower case of every character of the first plane; the last entry stands for all beyond."""
    from palaver.personality import _kernels as k

    kinds = np.full(0x10001, k.FIRST_MARK + MARKS.index("other_mark"), np.uint8)
    lower = np.arange(0x10001, dtype=np.uint32)
    for point in range(0x10000):
        char = chr(point)
        category = unicodedata.category(char)
        if category[0] in "LNM":
            kinds[point] = k.WORD
            small = char.lower()
            lower[point] = ord(small) if len(small) == 1 else point
        elif category[0] in "ZC":
            kinds[point] = k.SPACE
    for mark, characters in _CHARACTERS.items():
        for char in characters:
            kinds[ord(char)] = k.FIRST_MARK + MARKS.index(mark)
    kinds[0] = k.SEPARATOR
    return kinds, lower


class Counter:
    """Counts with a lexicon, and with word norms where they are given (name -> word -> value).

    `columns` names what `count` returns: the surface statistics, marks, known words, a column for each
    category, and for each norm the sum of its values and the number of words that have one. A word that is a
    category by itself ("common:the") adds to that one only, which keeps rows short; `complete` gives totals
    their due.
    """

    _first = len(SURFACE) + len(MARKS) + 1  # column of the first category

    def __init__(self, lexicon: Lexicon, norms: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self.lexicon = lexicon
        self.norms = dict(norms or {})
        pairs = [f"{part}:{name}" for name in self.norms for part in ("sum", "count")]
        self.columns = (*SURFACE, *MARKS, KNOWN, *lexicon.categories, *pairs)
        self._singles = {word: self._first + c for word, c in lexicon.singles.items()}
        self._due = np.zeros((len(self._singles), len(self.columns)))
        for i, (word, own) in enumerate(self._singles.items()):
            for column, value in self.row(word).items():
                self._due[i, column] = value if column != own else 0.0
        self._forget()

    def _forget(self) -> None:
        self._keys = np.zeros(_SLOTS, np.uint64)
        self._ids = np.zeros(_SLOTS, np.int32)
        n_marks = len(MARKS)  # the first numbers of words are those of the marks
        self._starts = np.arange(n_marks + 1, dtype=np.int64)
        self._columns = np.arange(len(SURFACE), len(SURFACE) + n_marks, dtype=np.int32)
        self._values = np.ones(n_marks, np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {"lexicon": self.lexicon, "norms": self.norms}  # the words seen are soon met again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["lexicon"], state["norms"])  # type: ignore[misc]

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        """(n, columns) float32, a row for each utterance. An empty utterance has an empty row."""
        from scipy.sparse import csr_matrix

        from palaver.personality import _kernels

        if isinstance(utterances, str):
            raise TypeError("expected a list of utterances, found one string")
        n, n_columns = len(utterances), len(self.columns)
        pointers = np.zeros(n + 1, np.int64)
        indices = np.empty(_GUESS * n + n_columns, np.int32)  # address space, in use as far as it is filled
        data = np.empty(len(indices), np.float32)
        place = np.full(n_columns, -1, np.int64)
        begin = 0
        for block in _blocks(utterances):
            tokens, ends, surface = self._tokenise(block)
            known = (self._starts, self._columns, self._values)
            row = 0
            part = pointers[begin : begin + len(block) + 1]
            while True:
                row = _kernels.accumulate(tokens, ends, surface, *known, place, row, part, indices, data)
                if row == len(block):
                    break
                indices = np.concatenate([indices, np.empty(len(indices) // 2 + n_columns, np.int32)])
                data = np.concatenate([data, np.empty(len(indices) - len(data), np.float32)])
            begin += len(block)
        end = int(pointers[-1])
        if end < 2**31:
            pointers = pointers.astype(np.int32)
        return csr_matrix((data[:end], indices[:end], pointers), shape=(n, n_columns), copy=False)

    def _tokenise(self, block: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of words and marks, where those of each utterance end, and its surface statistics."""
        from palaver.personality import _kernels

        raw = _joined(block)
        data = np.frombuffer(raw, np.uint8)
        if len(self._starts) > _MOST_TYPES:
            self._forget()
        while True:
            whole, tokens, ends, surface, new_at, new_size = _kernels.tokenise(
                data, len(block), *character_tables(), self._keys, self._ids, len(self._starts) - 1
            )
            if len(new_at):
                self._learn([raw[a : a + s] for a, s in zip(new_at.tolist(), new_size.tolist(), strict=True)])
            if whole:
                return tokens, ends, surface
            self._keys, self._ids = _kernels.enlarged(self._keys, self._ids)

    def _learn(self, new: list[bytes]) -> None:
        """Look up the columns of new words, in the order of their numbers."""
        sizes: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        n_before = len(columns)
        for raw in new:
            word = folded(raw.decode("utf-8", errors="surrogatepass"))
            row = {self._singles[word]: 1.0} if word in self._singles else self.row(word)
            columns += row.keys()
            values += row.values()
            sizes.append(len(columns) - n_before)
            n_before = len(columns)
        self._starts = np.concatenate([self._starts, self._starts[-1] + np.cumsum(sizes)])
        self._columns = np.concatenate([self._columns, np.array(columns, np.int32)])
        self._values = np.concatenate([self._values, np.array(values, np.float32)])

    def complete(self, totals: np.ndarray) -> np.ndarray:
        """(k, columns) totals in which the common words count in all of their categories."""
        totals = np.array(totals, dtype=np.float64, ndmin=2)
        if self._singles:
            totals += totals[:, list(self._singles.values())] @ self._due
        return totals

    def row(self, word: str) -> dict[int, float]:
        """What a word adds to which column, beyond the surface statistics."""
        categories = self.lexicon.match(word)
        row = dict.fromkeys([self._first + c for c in categories], 1.0)
        if row:
            row[self._first - 1] = 1.0
        column = self._first + len(self.lexicon.categories)
        for values in self.norms.values():
            value = values.get(word)
            if value is not None:
                row[column], row[column + 1] = float(value), 1.0
            column += 2
        return row


def folded(word: str) -> str:
    """Lower case, character by character as the kernel does it, with straight apostrophes."""
    _, lower = character_tables()
    if word.isascii():
        return word.lower()
    return "".join("'" if c in _CHARACTERS["apostrophe"] else chr(lower[ord(c)]) for c in word)


def _blocks(utterances: Sequence[str]) -> Iterator[Sequence[str]]:
    """Runs of utterances of a few million characters in all."""
    begin = 0
    while begin < len(utterances):
        end, size = begin, 0
        while end < len(utterances) and size < _BLOCK:
            some = utterances[end : end + _AT_ONCE]
            try:
                size += sum(map(len, some))
            except TypeError:
                raise _no_text(some, end) from None
            end += len(some)
        yield utterances[begin:end]
        begin = end


def _joined(block: Sequence[str]) -> bytes:
    """UTF-8 with a nought after each utterance."""
    try:
        text = "\0".join(block)
    except TypeError:
        raise _no_text(block, 0) from None
    if text.count("\0") != len(block) - 1:
        text = "\0".join(part.replace("\0", " ") for part in block)
    return (text + "\0").encode("utf-8", errors="surrogatepass")


def _no_text(some: Sequence[object], begin: int) -> DataError:
    place = next(i for i, text in enumerate(some) if not isinstance(text, str))
    return DataError(f"utterance {begin + place}: expected text, found {type(some[place]).__name__}")


def sum_rows(counts: csr_matrix, samples: np.ndarray) -> np.ndarray:
    """(k, size) row numbers -> (k, columns) float64: the totals of each sample."""
    from palaver.personality import _kernels

    out = np.zeros((len(samples), counts.shape[1]))
    _kernels.sum_rows(
        counts.indptr, counts.indices, counts.data, np.ascontiguousarray(samples, np.int64), out
    )
    return out
