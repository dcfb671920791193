"""Texts as numbers: each is split once, and each distinct chunk is tokenised once per rule.

A chunk is what stands between white space; a word hyphenated at the end of a line is one chunk, because `13a`
joins it. Every rule here works inside a chunk, so the tokens of a text are
those of its chunks, one after the other. A file holds far fewer distinct chunks than words, and all counting
is done on integers.

Rules:

- `words`: Palaver's words and marks (`palaver.text.words`); `terms`: those with a letter or a digit.
- `f1`: ParlAI's words for unigram F1: lower case, punctuation and articles taken out.
- `13a`: sacrebleu's default for BLEU. In addition, each character of a script that is written without spaces
  (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan) is a token, as in sacrebleu's `zh`.
- `rouge`: rouge-score's runs of a-z and 0-9 in lower case. In addition, words of other scripts than Latin are
  tokens, which rouge-score drops; characters of scripts without spaces are tokens of their own.
- `characters`: everything but white space, for chrF.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.text.tfidf import terms
from palaver.text.words import words

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Rule = Literal["words", "terms", "f1", "13a", "rouge", "characters"]

_PUNCTUATION = str.maketrans(
    dict.fromkeys(string.punctuation, " ") | dict.fromkeys("‘’“”", " ")
)  # "don't" becomes two words, as in ParlAI
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")

_NO_SPACES = (
    r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""Characters of the scripts that are written without spaces."""
_CHARACTER = re.compile(f"([{_NO_SPACES}])")

_13A_MARKS = str.maketrans(
    {mark: f" {mark} " for mark in map(chr, range(128)) if re.match(r"[\{-\~\[-\` -\&\(-\+\:-\@\/]", mark)}
)
_13A = (
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))  # in sacrebleu's order

_LATIN = (
    r"\x80-\u036f\u1d00-\u1eff\u2000-\u2bff\u2c60-\u2c7f\ua700-\ua7ff\uab30-\uab6f\ufb00-\ufb06\uff00-\uff65"
    r"\U0001d400-\U0001d7ff\U0001f100-\U0001f1ff"
)
"""Letters and digits that rouge-score drops from text in Latin script, and so do we: é, ª, ½, ①, ﬁ."""


def normalised_words(text: str) -> list[str]:
    """The words that `unigram_f1` compares: "The cat's, a dog" -> cat, s, dog."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _tokens_13a(text: str) -> list[list[str]]:
    """The tokens of each line of `text`."""
    text = text.replace("<skipped>", "")
    if "&" in text:
        for entity, mark in _ENTITIES:
            text = text.replace(entity, mark)
    if not text.isascii():
        text = _CHARACTER.sub(r" \1 ", text)
    text = text.translate(_13A_MARKS)
    for pattern, replacement in _13A:
        text = pattern.sub(replacement, text)
    return [line.split() for line in text.split("\n")]


@cache
def _rouge_pattern() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(0x370, 0xFE30) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(f"[a-z0-9]+|[{_NO_SPACES}]|(?:(?![_{_LATIN}{_NO_SPACES}a-z0-9])[\\w{marks}])+")


def _tokens_rouge(text: str) -> list[str]:
    return _rouge_pattern().findall(text.lower())


def _characters(text: str) -> list[str]:
    return list("".join(text.split()))


_TOKENISERS: dict[Rule, Callable[[str], list[str]]] = {
    "words": words,
    "terms": terms,
    "f1": normalised_words,
    "rouge": _tokens_rouge,
    "characters": _characters,
}
_MARKS = ".,!?;:"


def tokenise(chunks: Sequence[str], rule: Rule) -> Iterator[list[str]]:
    """The tokens of each chunk."""
    if rule != "13a":
        return map(_TOKENISERS[rule], chunks)
    # A pattern looks at one neighbour at most, so all chunks can be tokenised as the lines of one text.
    plain = [chunk.replace("-\n", "").replace("\n", " ") for chunk in chunks]
    return iter(_tokens_13a("\n".join(f" {chunk} " for chunk in plain)))


_ODD_SPACES = re.compile(r"[^\S\x00-\x7f]")


class Tokens(NamedTuple):
    """Token numbers of texts: those of text i stand at starts[i]:starts[i + 1]."""

    ids: Ids
    starts: Ints

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)


class _PlainWords(NamedTuple):
    """Of each chunk: whether it is a plain word, and the numbers of the word and of the mark behind it."""

    is_plain: NDArray[np.bool_]
    cased: Ids
    lower: Ids
    marks: Ids
    """-1 where there is none."""

    def after(self, n: int) -> _PlainWords:
        """Without the first `n` chunks."""
        return _PlainWords(self.is_plain[n:], self.cased[n:], self.lower[n:], self.marks[n:])

    def joined(self, other: _PlainWords) -> _PlainWords:
        """These chunks, then the others."""
        return _PlainWords(
            np.concatenate([self.is_plain, other.is_plain]),
            np.concatenate([self.cased, other.cased]),
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.marks, other.marks]),
        )


class Vocabulary:
    """The distinct chunks of all texts that were added, and the tokens of each by rule."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, dtype=np.int32)  # a hash table of chunk numbers
        self._hashes = np.empty(1 << 10, dtype=np.uint64)
        self._bytes = np.empty(1 << 14, dtype=np.uint8)  # of all chunks, with a mark behind each
        self._ends = np.zeros(1 << 10, dtype=np.int64)
        self._n_chunks = 0
        self._words = _PlainWords(np.empty(0, bool), *(np.empty(0, np.int32) for _ in range(3)))
        self._tables: dict[Rule, Tokens] = {}
        self.numbers: defaultdict[str, int] = defaultdict()
        """Of every token, whatever the rule."""
        self.numbers.default_factory = self.numbers.__len__
        self._articles = self._number(sorted(_ARTICLE_WORDS))

    def add(self, texts: Iterable[str]) -> Texts:
        """The texts as numbers of chunks; the texts themselves are not kept.

        White space at the end of a text goes, and what is not of ASCII becomes a space.
        """
        from palaver.metrics._kernels import number_chunks

        plain = [text if text.isascii() else _ODD_SPACES.sub(" ", text) for text in map(str.rstrip, texts)]
        encoded = [text.encode("utf-8", "surrogatepass") for text in plain]
        buffer = np.frombuffer(b"".join(encoded), np.uint8)
        sizes = list(map(len, encoded))
        ids, starts, self._n_chunks, self._slots, self._hashes, self._bytes, self._ends = number_chunks(
            buffer, _starts(sizes), self._n_chunks, self._slots, self._hashes, self._bytes, self._ends
        )
        return Texts(self, Tokens(ids, starts))

    def add_empty(self, n: int) -> Texts:
        """So many texts without a chunk."""
        return Texts(self, Tokens(np.empty(0, np.int32), np.zeros(n + 1, np.int64)))

    def _chunks_from(self, n: int) -> list[str]:
        """The chunks by number, without the first `n`. Their texts are made when they are needed."""
        if n == self._n_chunks:
            return []
        begin = self._ends[n - 1] if n else 0
        new = self._bytes[begin : self._ends[self._n_chunks - 1] - 1].tobytes()
        return new.decode(errors="surrogatepass").split("\x1e")  # MARK of the kernels

    def tokens(self, texts: Tokens, rule: Rule) -> Tokens:
        """The tokens of texts that are given as chunk numbers."""
        from palaver.metrics._kernels import expand

        of_chunk = self._tokens_of_chunks(rule)
        return Tokens(*expand(texts.ids, texts.starts, of_chunk.ids, of_chunk.starts))

    def _tokens_of_chunks(self, rule: Rule) -> Tokens:
        """Of each chunk, those that are new included."""
        table = self._tables.get(rule, Tokens(np.empty(0, np.int32), np.zeros(1, np.int64)))
        n_done = len(table.starts) - 1
        if n_done < self._n_chunks:
            words = self._plain_words().after(n_done)
            table = _joined([table, self._tokenise(self._chunks_from(n_done), words, rule)])
            self._tables[rule] = table
        return table

    def _plain_words(self) -> _PlainWords:
        """Of each chunk. What a rule makes of plain words is then found without going through them again."""
        known = self._words
        n_known = len(known.is_plain)
        chunks = self._chunks_from(n_known)
        if chunks:
            is_plain, mark_bytes = self._find_plain(n_known)
            cased, lower, marks = (np.full(len(chunks), -1, dtype=np.int32) for _ in range(3))
            words = [
                chunk[:-1] if mark else chunk
                for chunk, mark, fits in zip(chunks, mark_bytes.tolist(), is_plain.tolist(), strict=True)
                if fits
            ]
            cased[is_plain] = self._number(words)
            lower[is_plain] = self._number([word.lower() for word in words])
            for mark in _MARKS:
                marks[mark_bytes == ord(mark)] = self.numbers[mark]
            new = _PlainWords(is_plain, cased, lower, marks)
            self._words = known.joined(new)
        return self._words

    def _find_plain(self, first: int) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
        """Which chunks are letters with one of `_MARKS` behind them or none, and the mark, 0 for none.

        Most chunks are, and all rules agree on what that is.
        """
        ends = self._ends[first : self._n_chunks]
        begins = np.concatenate(
            [self._ends[first - 1 : first] if first else np.zeros(1, np.int64), ends[:-1]]
        )
        of_chunks = self._bytes[: ends[-1]]
        is_letter = ((of_chunks | 32) - np.uint8(ord("a"))) < 26
        n_letters = np.add.reduceat(is_letter, begins, dtype=np.int64)
        lengths = ends - begins - 1  # without the mark of the kernels behind each chunk
        last = of_chunks[ends - 2]
        has_mark = (n_letters == lengths - 1) & (lengths > 1) & np.isin(last, [ord(mark) for mark in _MARKS])
        return has_mark | (n_letters == lengths), np.where(has_mark, last, np.uint8(0))

    def _number(self, tokens: Sequence[str]) -> Ids:
        return np.fromiter(map(self.numbers.__getitem__, tokens), np.int32, len(tokens))

    def _tokenise(self, chunks: Sequence[str], words: _PlainWords, rule: Rule) -> Tokens:
        is_plain = words.is_plain & (rule != "characters")
        has_word, has_mark = is_plain, np.zeros(len(chunks), dtype=bool)
        if rule == "f1":
            has_word = is_plain & ~np.isin(words.lower, self._articles)
        if rule in ("13a", "words"):
            has_mark = is_plain & (words.marks >= 0)
        others = np.flatnonzero(~is_plain)
        tokens: list[str] = []
        sizes_of_others = []
        for of_chunk in tokenise([chunks[place] for place in others.tolist()], rule):
            tokens += of_chunk  # no list is kept for a chunk: the garbage collector would go through them all
            sizes_of_others.append(len(of_chunk))
        sizes = has_word.astype(np.int64) + has_mark
        sizes[others] = sizes_of_others
        starts = _starts(sizes)
        begins = starts[:-1]
        ids = np.empty(starts[-1], dtype=np.int32)
        ids[begins[has_word]] = (words.cased if rule == "13a" else words.lower)[has_word]
        ids[begins[has_mark] + 1] = words.marks[has_mark]
        shifts = begins[others] - _starts(sizes_of_others)[:-1]
        ids[np.arange(len(tokens)) + np.repeat(shifts, sizes_of_others)] = self._number(tokens)
        return Tokens(ids, starts)


class Texts:
    """Texts as numbers of their chunks; tokens of a rule are found once."""

    def __init__(self, vocabulary: Vocabulary, chunks: Tokens) -> None:
        self.vocabulary = vocabulary
        self.chunks = chunks
        self._tokens: dict[Rule, Tokens] = {}

    def __len__(self) -> int:
        return len(self.chunks.starts) - 1

    def tokens(self, rule: Rule) -> Tokens:
        """The token numbers of every text."""
        if rule not in self._tokens:
            self._tokens[rule] = self.vocabulary.tokens(self.chunks, rule)
        return self._tokens[rule]

    @classmethod
    def join(cls, vocabulary: Vocabulary, parts: Sequence[Texts]) -> Texts:
        """Texts of one vocabulary, one after the other."""
        return cls(vocabulary, _joined([part.chunks for part in parts]))


def _starts(sizes: Sequence[int] | Ints) -> Ints:
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _joined(parts: Sequence[Tokens]) -> Tokens:
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts]
    starts = np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()
    return Tokens(np.concatenate([part.ids for part in parts] or [np.empty(0, np.int32)]), starts)
