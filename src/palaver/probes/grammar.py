"""The grammar all rules share: who is the subject, how the verb is built, how a sentence is written down.

Labels are those of spaCy's English models (ClearNLP dependencies, Penn Treebank tags).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from palaver.errors import require
from palaver.probes.parse import names_in
from palaver.probes.verbs import kind_of_noun
from palaver.probes.words import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

REASONS = {
    # the line itself
    "empty": "nothing but white space",
    "not-english": "does not look like English",
    "too-long": "more words than a parse can be trusted with",
    "unusual-characters": "emoji or control characters in the middle of the sentence",
    "several-sentences": "more than one sentence",
    "no-verb": "no finite verb at its head: a fragment or a heading",
    "question": "a question",
    "imperative": "a command or a sentence without a subject",
    "exclamation": "what a ..., how ...!",
    "unclear-parse": "the parse leaves open what belongs to what",
    "quotation": "quotation marks that the rule would tear apart",
    # the grammar
    "coordination": "joined verbs, subjects or clauses that the rule would separate",
    "embedded": "a subordinate clause that the change would misread",
    "pronoun": "a pronoun would lose what it refers to",
    "agreement": "it is unclear whether a noun is singular or plural",
    "not-inflected": "the form of a verb is not known",
    # negation
    "quantified": "all, every, some, many ...: the negation would not deny the sentence",
    "polarity": "a word such as also, already, yet that does not survive the change",
    "modal": "must, ought, used to ...: the negation would change the modal",
    "negated-otherwise": "negated by a word that cannot simply be taken away",
    "negated": "already negated",
    "not-indefinite": "does not begin with a noun phrase with a or an",
    # synonyms
    "no-synonym": "WordNet has no fitting synonym of the verb",
    "light-verb": "be, have, do, get and the like",
    "idiom": "a fixed phrase",
    # clauses
    "no-report": "no verb such as say or think with a clause of its own",
    "not-a-statement": "the embedded clause is no statement (whether, how, to ...)",
    # passive and reordering
    "passive-already": "already passive",
    "intransitive": "the verb has no object",
    "reflexive": "the object is the subject itself",
    "stative": "have, cost, resemble, lack, weigh ... have no passive",
    "clausal-object": "the object is a clause",
    "measure": "an amount, not an object",
    "perfect-progressive": "has been doing, will be doing: its passive is not English",
    "complement": "a second complement beside the object",
    "not-somebody": "subject and object are not both somebody",
    "same": "nothing would change",
    # fixed point inversion
    "too-short": "too few words",
    # reading the output again
    "doubtful": "read again, the result does not parse as intended",
}
"""Every reason a rule may give, with what it means."""


class NotApplicable(Exception):
    """The rule does not fit this sentence; `reason` is one of `REASONS`."""

    def __init__(self, reason: str) -> None:
        if reason not in REASONS:
            raise ValueError(f"unknown reason {reason!r}")
        super().__init__(f"{reason}: {REASONS[reason]}")
        self.reason = reason


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
    if sum(t.text in ('"', "“", "”", "``", "''") for t in doc) % 2:
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
    found = sorted(token.subtree, key=lambda t: t.i)
    if found[-1].i - found[0].i + 1 != len(found):
        raise NotApplicable("unclear-parse")
    return found


def forbid(tokens: Iterable[Token], words: frozenset[str], reason: str) -> None:
    if any(t.lower_ in words for t in tokens):
        raise NotApplicable(reason)


def refuse_quotes(tokens: Iterable[Token]) -> None:
    if any(t.text in ('"', "``", "''", "“", "”", "‘", "`") or t.tag_ == "``" for t in tokens):
        raise NotApplicable("quotation")


def is_informal(doc: Doc) -> bool:
    """Whether a contraction is in keeping: one is there already, or somebody says I, we or you."""
    return _INFORMAL.search(doc.text) is not None


# --- words -------------------------------------------------------------------------------------------------


@cache
def inflect(lemma: str, tag: str) -> str:
    """The form of a verb, such as inflect("go", "VBD") -> "went"; the commonest where there are two."""
    if lemma == "be":
        return {"VB": "be", "VBG": "being", "VBN": "been", "VBZ": "is", "VBP": "are", "VBD": "was"}[tag]
    if (lemma, tag) in _OWN_FORMS:
        return _OWN_FORMS[lemma, tag]
    lemminflect = require("lemminflect", "probes")

    forms = lemminflect.getInflection(lemma, tag)
    if not forms:
        raise NotApplicable("not-inflected")
    return str(forms[0])


_OWN_FORMS = {  # where the first form of the dictionary is not the usual one
    ("hang", "VBD"): "hung", ("hang", "VBN"): "hung", ("lie", "VBD"): "lay", ("lie", "VBN"): "lain",
    ("light", "VBD"): "lit", ("light", "VBN"): "lit", ("wake", "VBD"): "woke", ("wake", "VBN"): "woken",
    ("forecast", "VBD"): "forecast", ("forecast", "VBN"): "forecast",
    ("leap", "VBD"): "leapt", ("leap", "VBN"): "leapt", ("prove", "VBN"): "proved",
    ("get", "VBN"): "gotten", ("dive", "VBD"): "dived", ("show", "VBN"): "shown", ("sew", "VBN"): "sewn",
    ("saw", "VBN"): "sawn", ("speed", "VBD"): "sped", ("cost", "VBD"): "cost", ("fit", "VBD"): "fit",
    ("put", "VBD"): "put", ("quit", "VBD"): "quit", ("wet", "VBN"): "wet", ("bet", "VBD"): "bet",
    ("shave", "VBN"): "shaved", ("swell", "VBN"): "swollen", ("tie", "VBG"): "tying", ("die", "VBG"): "dying",
}  # fmt: skip


def lemma_of(verb: Token) -> str:
    """The base form, accepted only where inflecting it gives the word back."""
    lemma = verb.lemma_.lower()
    if verb.tag_ in ("VB", "VBP") or lemma == "be":
        return lemma if lemma != "be" else "be"
    lemminflect = require("lemminflect", "probes")

    candidates = [lemma, *lemminflect.getLemma(verb.lower_, "VERB")]
    for candidate in candidates:
        if verb.lower_ in lemminflect.getInflection(candidate, verb.tag_) or (
            _OWN_FORMS.get((candidate, verb.tag_)) == verb.lower_
        ):
            return str(candidate)
    raise NotApplicable("not-inflected")


_PLURAL_WORDS = word_set(
    """
    they we you these those both people police cattle many several few us them
    """
)
_IRREGULAR = word_set(
    """
    people men women children police feet teeth mice geese sheep fish deer cattle data media
    policemen firemen salesmen gunmen fishermen businessmen congressmen policewomen lawmen troops
    oxen wolves criteria bacteria footballers gentlemen sportsmen snowmen grandchildren
    """
)
_MANY_OF = word_set(
    """
    number lot couple majority handful dozen variety series range percent half rest
    """
)


def is_plural(head: Token) -> bool:
    """Whether a noun phrase takes a plural verb; refuses where English itself wavers."""
    if any(t.dep_ == "conj" for t in head.children):
        joined = {t.lower_ for t in head.children if t.dep_ in ("cc", "preconj")}
        if joined & {"or", "nor", "neither", "either", "but"}:
            raise NotApplicable("agreement")
        ours = any(t.dep_ in ("det", "poss") for t in head.children)
        if (
            ours
            and head.tag_ == "NN"
            and not all(_stands_alone(t) for t in head.children if t.dep_ == "conj")
        ):
            raise NotApplicable("agreement")  # the secretary of health and human services
        return True
    if head.lower_ in _PLURAL_WORDS:
        return True
    if head.lower_ in _MANY_OF or head.tag_ == "CD" or "%" in head.text:
        raise NotApplicable("agreement")
    if head.lower_ in ("all", "some", "any", "none", "most", "more", "half", "each", "which", "that", "who"):
        raise NotApplicable("agreement")
    if any(
        t.dep_ == "det" and t.lower_ in ("a", "an", "this", "that", "each", "every") for t in head.children
    ):
        return False
    if head.tag_ == "NNPS" and not any(t.lower_ == "the" for t in head.children):
        raise NotApplicable("agreement")  # General Dynamics is, the Yankees are
    if head.tag_ == "NNS" and not head.lower_.endswith("s") and head.lower_ not in _IRREGULAR:
        raise NotApplicable("agreement")  # broccoli
    if head.tag_ in ("NNS", "NNPS"):
        return True
    if head.tag_ in ("NN", "NNP", "PRP", "DT", "PRP$"):
        if any(t.lower_ in ("two", "three", "four", "five", "six", "several", "these", "those", "many")
               for t in head.children if t.i < head.i):  # fmt: skip
            raise NotApplicable("agreement")
        return False
    raise NotApplicable("agreement")


def _stands_alone(noun: Token) -> bool:
    return noun.tag_ in ("NNP", "NNPS", "PRP") or any(
        t.dep_ in ("det", "poss", "nummod") for t in noun.children
    )


def agree(lemma: str, tense: str, subject: str, plural: bool) -> str:
    """A finite form for a subject: `tense` is "present" or "past"; `subject` its first word, for I."""
    first = subject.lower() == "i" and not plural
    if lemma == "be":
        if tense == "past":
            return "were" if plural else "was"
        return "am" if first else "are" if plural else "is"
    if tense == "past":
        return inflect(lemma, "VBD")
    return inflect(lemma, "VBP" if plural or first else "VBZ")


def article(next_word: str) -> str:
    """a or an, by the sound the next word begins with."""
    word = next_word.lower().strip("\"'“”‘’")
    if re.match(r"(?:hour|honest|hono|heir|[aefhilmnorsx](?:[.-]|$)|[aefhilmnorsx]\d)", word):
        return "an"
    if next_word.isupper() and (1 < len(word) <= 3 or not re.search(r"[AEIOU]", next_word[1:3])):
        return "an" if word[0] in "aefhilmnorsx" else "a"
    if re.match(r"(?:uni(?!n|m)|use|usu|utens|utili|ubiq|euro|eu|ewe|one|once|u-|u\b)", word):
        return "a"
    return "an" if word[:1] in "aeiou" or re.match(r"8|1[18]\b", word) else "a"


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


_NAMED = ("PERSON", "NORP", "ORG", "GPE")


# --- writing it down ---------------------------------------------------------------------------------------

_NO_SPACE_BEFORE = re.compile(r"(?:[,.;:?!%)\]]|n't$|'(?:s|re|ve|ll|d|m)$|'$|’(?:s|re|ve|ll|d|m)$)")
_NO_SPACE_AFTER = ("(", "[", "$", "£", "€", "#")


def write(parts: Sequence[Token | str], doc: Doc) -> str:
    """Words in a new order as a good writer sets them: spaces, capital, article, the source's final mark."""
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
    text = re.sub(r"(?<![\w.-])([Aa])n?(?= ([\w'\"“-]+))", lambda m: _same_case(article(m[2]), m[1]), text)
    return finish(text, doc)


def _joined(previous: Token | str, part: Token | str, word: str) -> bool:
    if not isinstance(previous, str) and not isinstance(part, str) and part.i == previous.i + 1:
        return previous.whitespace_ == ""
    return _NO_SPACE_BEFORE.match(word) is not None or str(previous) in _NO_SPACE_AFTER


def _same_case(word: str, like: str) -> str:
    return word.capitalize() if like.isupper() else word


def final_mark(doc: Doc) -> str:
    """The mark the source ends with; SICK's sentences have none, and then neither has the result."""
    found = re.search(r"([.!?…]+)[\"'”’)\]\s]*$", doc.text)
    return found[1] if found else ""


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
    return _capital(text + mark)


def _capital(text: str) -> str:
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
    return _capital(text)
