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

_13A = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
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
_MARKS = frozenset(".,!?;:")
_PLAIN = re.compile(r"[A-Za-z]+[.,!?;:]?").fullmatch
"""Most chunks are a word of letters, or one with a mark behind it: all rules agree on what that is."""


def tokenise(chunks: Sequence[str], rule: Rule) -> tuple[list[str], list[int]]:
    """The tokens of all chunks, one after the other, and how many each chunk has.

    No list is made for a chunk: Python's garbage collector would go through all of them again and again.
    """
    plain = None if rule == "characters" else _PLAIN
    hard = _tokenise_hard([chunk for chunk in chunks if plain is None or not plain(chunk)], rule)
    tokens: list[str] = []
    sizes: list[int] = []
    for chunk in chunks:
        if plain is None or not plain(chunk):
            of_chunk = next(hard)
            tokens += of_chunk
            sizes.append(len(of_chunk))
            continue
        has_mark = chunk[-1] in _MARKS
        word = chunk[:-1] if has_mark else chunk
        if rule != "13a":
            word = word.lower()
        if rule == "f1" and word in _ARTICLE_WORDS:
            sizes.append(0)
        elif has_mark and rule in ("13a", "words"):
            tokens += (word, chunk[-1])
            sizes.append(2)
        else:
            tokens.append(word)
            sizes.append(1)
    return tokens, sizes


def _tokenise_hard(chunks: Sequence[str], rule: Rule) -> Iterator[list[str]]:
    if rule != "13a":
        return map(_TOKENISERS[rule], chunks)
    # A pattern looks at one neighbour at most, so all chunks can be tokenised as the lines of one text.
    plain = [chunk.replace("-\n", "").replace("\n", " ") for chunk in chunks]
    return iter(_tokens_13a("\n".join(f" {chunk} " for chunk in plain)))


_ODD_SPACES = re.compile(r"[^\S\x00-\x7f]")


def _with_plain_spaces(text: str) -> str:
    """Without white space at its end, and with no white space inside but that of ASCII."""
    text = text.rstrip()
    return text if text.isascii() else _ODD_SPACES.sub(" ", text)


class Tokens(NamedTuple):
    """Token numbers of texts: those of text i stand at starts[i]:starts[i + 1]."""

    ids: Ids
    starts: Ints

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)


class _RuleTable:
    """The tokens of every chunk of a vocabulary under one rule; it grows with the vocabulary."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.numbers: defaultdict[str, int] = defaultdict()
        self.numbers.default_factory = self.numbers.__len__
        self._of_chunks = Tokens(np.empty(0, np.int32), np.zeros(1, np.int64))
        self._n_chunks = 0

    def tokens(self, chunks: Sequence[str]) -> Tokens:
        """Of each chunk, those that are new included."""
        if len(chunks) > self._n_chunks:
            tokens, sizes = tokenise(chunks[self._n_chunks :], self.rule)
            ids = np.fromiter(map(self.numbers.__getitem__, tokens), np.int32, len(tokens))
            self._of_chunks = _joined([self._of_chunks, Tokens(ids, _starts(sizes))])
            self._n_chunks = len(chunks)
        return self._of_chunks


class Vocabulary:
    """The distinct chunks of all texts that were added, and the tokens of each by rule."""

    def __init__(self) -> None:
        self._slots = np.full(1 << 12, -1, dtype=np.int32)  # a hash table of chunk numbers
        self._hashes = np.empty(1 << 10, dtype=np.uint64)
        self._bytes = np.empty(1 << 14, dtype=np.uint8)  # of all chunks, with a mark behind each
        self._ends = np.zeros(1 << 10, dtype=np.int64)
        self._n_chunks = 0
        self._chunks: list[str] = []
        self._tables: dict[Rule, _RuleTable] = {}

    def add(self, texts: Iterable[str]) -> Texts:
        """The texts as numbers of chunks; the texts themselves are not kept."""
        from palaver.metrics._kernels import number_chunks

        plain = [_with_plain_spaces(text) for text in texts]
        buffer = np.frombuffer("".join(plain).encode(errors="surrogatepass"), np.uint8)
        sizes = [len(t) if t.isascii() else len(t.encode(errors="surrogatepass")) for t in plain]
        ids, starts, self._n_chunks, self._slots, self._hashes, self._bytes, self._ends = number_chunks(
            buffer, _starts(sizes), self._n_chunks, self._slots, self._hashes, self._bytes, self._ends
        )
        return Texts(self, Tokens(ids, starts))

    @property
    def chunks(self) -> list[str]:
        """By number."""
        n = len(self._chunks)
        if n < self._n_chunks:
            begin = self._ends[n - 1] if n else 0
            new = self._bytes[begin : self._ends[self._n_chunks - 1] - 1].tobytes()
            self._chunks += new.decode(errors="surrogatepass").split("\x1e")  # MARK of the kernels
        return self._chunks

    def tokens(self, texts: Tokens, rule: Rule) -> Tokens:
        """The tokens of texts that are given as chunk numbers."""
        from palaver.metrics._kernels import expand

        table = self._tables.setdefault(rule, _RuleTable(rule))
        of_chunk = table.tokens(self.chunks)
        return Tokens(*expand(texts.ids, texts.starts, of_chunk.ids, of_chunk.starts))


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


def _starts(sizes: Sequence[int]) -> Ints:
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _joined(parts: Sequence[Tokens]) -> Tokens:
    if len(parts) == 1:
        return parts[0]
    lengths = [part.lengths for part in parts]
    starts = np.concatenate([np.zeros(1, np.int64), *lengths]).cumsum()
    return Tokens(np.concatenate([part.ids for part in parts] or [np.empty(0, np.int32)]), starts)
