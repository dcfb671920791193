"""A changed sentence written down as a good writer would: spaces, capitals, articles, the final mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from palaver.probes.inflection import article
from palaver.probes.parse import names_in
from palaver.probes.verbs import kind_of_noun

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


_NAMED = ("PERSON", "NORP", "ORG", "GPE")
_NO_SPACE_BEFORE = re.compile(r"(?:[,.;:?!%)\]]|n't$|'(?:s|re|ve|ll|d|m)$|'$|’(?:s|re|ve|ll|d|m)$)")
_NO_SPACE_AFTER = ("(", "[", "$", "£", "€", "#")


def inside(token: Token) -> str:
    """The word as it is written in the middle of a sentence."""
    text = str(token.text)
    first = (
        token.doc[0] if token.doc[0].text not in ('"', "“", "``") else token.doc[min(1, len(token.doc) - 1)]
    )
    if token.i != first.i or token.tag_ in ("NNP", "NNPS") or text == "I" or text.startswith("I'"):
        return text
    if len(text) > 1 and not text[1:].islower():  # CNN, McDonald, U.S.
        return text
    if token.pos_ == "PROPN" or (
        token.pos_ in ("NOUN", "ADJ") and names_in(token.doc).get(token.i) in _NAMED
    ):
        return text
    if (
        token.tag_ in ("NN", "NNS")
        and token.pos_ != "PRON"
        and not (kind_of_noun(token.lower_) or kind_of_noun(token.lemma_.lower()))
    ):
        return text  # a word WordNet has not: more likely a name
    return text[:1].lower() + text[1:]


def write(parts: Sequence[Token | str], doc: Doc) -> str:
    """Words in a new order as a good writer sets them: spaces, capital, article, the source's final mark."""
    text = _spaced(parts)
    text = re.sub(r"(?<![\w.-])([Aa])n?(?= ([\w'\"“-]+))", lambda m: _same_case(article(m[2]), m[1]), text)
    return finish(text, doc)


def join(parts: Sequence[Token | str], doc: Doc) -> str:
    """Words in a new order with the source's final mark, and nothing changed: no capital, no article."""
    return _spaced(parts) + final_mark(doc)


def _spaced(parts: Sequence[Token | str]) -> str:
    text = ""
    previous: Token | str | None = None
    for part in parts:
        word = part if isinstance(part, str) else inside(part)
        if not word:
            continue
        if previous is not None and not _joined(previous, part, word):
            text += " "
        text += word
        previous = part
    return text


def _joined(previous: Token | str, part: Token | str, word: str) -> bool:
    if not isinstance(previous, str) and not isinstance(part, str) and part.i == previous.i + 1:
        return previous.whitespace_ == ""
    return _NO_SPACE_BEFORE.match(word) is not None or str(previous) in _NO_SPACE_AFTER


def _same_case(word: str, like: str) -> str:
    return word.capitalize() if like.isupper() else word


def final_mark(doc: Doc) -> str:
    """The mark the source ends with; SICK's sentences have none, and then neither has the result."""
    mark = re.search(r"([.!?…]+)[\"'”’)\]\s]*$", doc.text)
    return mark[1] if mark else ""


def finish(text: str, doc: Doc) -> str:
    """One capital at the beginning, one mark at the end."""
    text = re.sub(r"\s+", " ", text).strip().rstrip(",;: ")
    mark = final_mark(doc)
    if re.search(r"[.!?…][\"'”’)]+$", text) or (
        mark == "." and re.search(r"\b(?:[A-Z]\.)+$|\b(?:Inc|Corp|Co|Ltd|Jr|Sr|etc|a\.m|p\.m|No|St)\.$", text)
    ):
        mark = ""
    elif mark:
        text = text.rstrip(".!? ")
    return capitalise(text + mark)


def capitalised_words(doc: Doc) -> frozenset[str]:
    """The words of a sentence that have a capital wherever they stand."""
    return frozenset(word for token in doc if (word := inside(token))[:1].isupper())


def without_capital(text: str, capitalised: Iterable[str]) -> str:
    """A sentence without the capital of its beginning, unless its first word is one of `capitalised`."""
    start = re.match(r"\W*", text)
    assert start is not None  # it matches nothing, too
    at = start.end()
    if any(re.match(re.escape(word) + r"(?!\w)", text[at:]) for word in capitalised):
        return text
    return text[:at] + text[at : at + 1].lower() + text[at + 1 :]


def other_case(text: str) -> str:
    """The same sentence with its first letter in the other case."""
    at = next((n for n, character in enumerate(text) if character.isalpha()), 0)
    return text[:at] + text[at : at + 1].swapcase() + text[at + 1 :]


def capitalise(text: str) -> str:
    """The text with a capital at its beginning."""
    start = re.match(r"\W?\w", text)
    return text[: start.end()].upper() + text[start.end() :] if start else text


def edit(doc: Doc, changes: Iterable[tuple[Token, str]]) -> str:
    """The source with some words replaced in place ("" takes a word away); the rest is left untouched."""
    text, shift = doc.text, 0
    for token, new in sorted(changes, key=lambda c: c[0].i):
        start, end = token.idx + shift, token.idx + shift + len(token.text)
        text = text[:start] + new + text[end:]
        shift += len(new) - (end - start)
    text = re.sub(r" +([,.;:!?])", r"\1", re.sub(r" {2,}", " ", text).strip())
    return capitalise(text)
