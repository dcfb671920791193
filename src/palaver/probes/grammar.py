"""How a sentence is built, for all rules: its main verb, subject, auxiliaries, negation.

Labels are those of spaCy's English models (ClearNLP dependencies, Penn Treebank tags).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.probes.refusals import NotApplicable
from palaver.probes.words import LISTS, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

QUOTES = frozenset(('"', "“", "”", "``", "''"))
SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "expl")
PERSONAL = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them", "it": "it", "you": "you"}
OBJECTIVE = {"me": "I", "him": "he", "her": "she", "us": "we", "them": "they", "it": "it", "you": "you"}
OF_OTHERS = word_set("his her its their hers theirs")
"""Whose it is, can depend on who was named before; my and your mean the same anywhere."""
CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "do": "don't", "does": "doesn't",
    "did": "didn't", "has": "hasn't", "have": "haven't", "had": "hadn't", "can": "can't", "could": "couldn't",
    "will": "won't", "would": "wouldn't", "should": "shouldn't",
}  # fmt: skip
_INFORMAL = re.compile(
    r"(?i)\b(?:\w+n't|(?:i|you|we|they|he|she|it|that|there)'(?:m|s|re|ve|ll|d)|let's|i|we|you)\b"
)


@dataclass(frozen=True)
class Clause:
    """A verb with what stands directly under it."""

    verb: Token
    subject: Token | None
    auxiliaries: tuple[Token, ...]
    """Those before the verb, in order; a copula is the verb itself."""
    negation: Token | None

    @property
    def finite(self) -> Token:
        """The word that carries tense and agrees with the subject."""
        return self.auxiliaries[0] if self.auxiliaries else self.verb


def clause_of(verb: Token) -> Clause:
    """The clause that `verb` heads."""
    left = [t for t in verb.children if t.i < verb.i]
    subjects = [t for t in verb.children if t.dep_ in SUBJECTS]
    before = [t for t in subjects if t.i < verb.i]
    subject = next((t for t in before if t.dep_ == "expl"), next(iter(before or subjects), None))
    return Clause(
        verb,
        subject,
        tuple(t for t in left if t.dep_ in ("aux", "auxpass")),
        next((t for t in verb.children if t.dep_ == "neg"), None),
    )


def root(doc: Doc) -> Token:
    """The head of the only sentence, which must be a statement with a finite verb and a subject."""
    heads = [t for t in doc if t.dep_ == "ROOT" and not t.is_punct and not t.is_space]
    if len(heads) != 1:
        raise NotApplicable("several-sentences" if heads else "no-verb")
    head = heads[0]
    if sum(t.text in QUOTES for t in doc) % 2:
        raise NotApplicable("quotation")
    if head.pos_ not in ("VERB", "AUX"):
        raise NotApplicable("no-verb")
    if doc[-1].text.strip("\"'”’)") == "?" or any(t.text == "?" for t in doc[-3:]):
        raise NotApplicable("question")
    if doc[0].lower_ in ("what", "how") and any(t.text == "!" for t in doc[-3:]):
        raise NotApplicable("exclamation")
    clause = clause_of(head)
    if clause.subject is None:
        raise NotApplicable("imperative" if head.tag_ in ("VB", "VBP") else "no-verb")
    if not is_finite(clause.finite):
        raise NotApplicable("no-verb")
    if clause.finite.i < clause.subject.i and head.i < clause.subject.i and head.lemma_ == "be":
        raise NotApplicable("question")
    if head.tag_ in ("VBN", "VBG", "VB") and not clause.auxiliaries:
        raise NotApplicable("no-verb")
    return head


def is_finite(token: Token) -> bool:
    return token.tag_ in ("VBZ", "VBP", "VBD", "MD")


def span(token: Token) -> list[Token]:
    """The token with all that hangs on it, in order; it must be one stretch of the sentence."""
    tokens = sorted(token.subtree, key=lambda t: t.i)
    if tokens[-1].i - tokens[0].i + 1 != len(tokens):
        raise NotApplicable("unclear-parse")
    return tokens


def is_reflexive(token: Token) -> bool:
    return token.lower_.endswith(("self", "selves"))


def in_case(phrase: list[Token], cases: dict[str, str]) -> list[Token | str]:
    """A noun phrase as it stands, a pronoun in another case: `PERSONAL` or `OBJECTIVE`."""
    if len(phrase) == 1 and phrase[0].pos_ == "PRON" and phrase[0].lower_ in cases:
        return [cases[phrase[0].lower_]]
    if any(t.tag_ == "PRP" for t in phrase):
        raise NotApplicable("pronoun")
    return list(phrase)


def forbid(tokens: Iterable[Token], words: frozenset[str], reason: str) -> None:
    if any(t.lower_ in words for t in tokens):
        raise NotApplicable(reason)


_NEGATIVES = LISTS["negatives"]
_DETERMINERS = ("det", "poss", "nummod")


def negatives_in(tokens: Iterable[Token]) -> list[Token]:
    """The words that negate: also *few* and *little* where they mean hardly any, not in *a little girl*."""
    return [t for t in tokens if t.lower_ in _NEGATIVES or _means_hardly_any(t)]


def _means_hardly_any(token: Token) -> bool:
    if token.lower_ not in ("few", "little"):
        return False
    noun = token.head if token.dep_ in ("amod", "nummod", "det") else token
    if any(t.dep_ in _DETERMINERS and t.i < token.i for t in (*noun.children, *token.children)):
        return False  # a little girl, my little brother, the few friends we have
    before = token.doc[token.i - 1].lower_ if token.i else ""
    if before in ("a", "an", "the", "last", "past", "next", "first", "quite"):
        return False
    return token.lower_ == "few" or noun.i == token.i or noun.tag_ == "NN"


def refuse_negatives(tokens: Iterable[Token], reason: str) -> None:
    if negatives_in(tokens):
        raise NotApplicable(reason)


def refuse_quotes(tokens: Iterable[Token]) -> None:
    if any(t.text in QUOTES or t.text in ("‘", "`") or t.tag_ == "``" for t in tokens):
        raise NotApplicable("quotation")


def is_informal(doc: Doc) -> bool:
    """Whether a contraction is in keeping: one is there already, or somebody says I, we or you."""
    return _INFORMAL.search(doc.text) is not None
