"""Forms of words: verbs in every tense, what takes a plural verb, a and an."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from palaver.errors import require
from palaver.probes.refusals import NotApplicable
from palaver.probes.words import LISTS, TABLES, word_set

if TYPE_CHECKING:
    from spacy.tokens import Token


@cache
def inflect(lemma: str, tag: str) -> str:
    """The form of a verb, such as inflect("go", "VBD") -> "went"; the commonest where there are two."""
    if lemma == "be":
        return {"VB": "be", "VBG": "being", "VBN": "been", "VBZ": "is", "VBP": "are", "VBD": "was"}[tag]
    own = _own_form(lemma, tag)
    if own is not None:
        return own
    lemminflect = require("lemminflect", "probes")
    forms = lemminflect.getInflection(lemma, tag)
    if not forms:
        raise NotApplicable("not-inflected")
    return str(forms[0])


def _own_form(lemma: str, tag: str) -> str | None:
    """The usual form where the first one of the dictionary is another."""
    form: str | None = TABLES["forms"].get(tag, {}).get(lemma)
    return form


def lemma_of(verb: Token) -> str:
    """The base form, accepted only where inflecting it gives the word back."""
    lemma = verb.lemma_.lower()
    if verb.tag_ in ("VB", "VBP") or lemma == "be":
        return lemma
    lemminflect = require("lemminflect", "probes")
    for candidate in (lemma, *lemminflect.getLemma(verb.lower_, "VERB")):
        forms = (*lemminflect.getInflection(candidate, verb.tag_), _own_form(candidate, verb.tag_))
        if verb.lower_ in forms:
            return str(candidate)
    raise NotApplicable("not-inflected")


_PLURAL_WORDS = word_set("they we you these those both people police cattle many several few us them")
_IRREGULAR = LISTS["irregular_plurals"]
_UNDECIDED = word_set("""number lot couple majority handful dozen variety series range percent half rest
    all some any none most more each which that who""")
_SINGULAR = word_set("a an this that each every")
_SEVERAL = word_set("two three four five six several these those many")


def is_plural(head: Token, first: str) -> bool:
    """Whether a noun phrase, of which `first` is the first word, takes a plural verb.

    Refuses where English itself wavers.
    """
    if first in ("I", "you"):
        return first == "you"
    if any(t.dep_ == "conj" for t in head.children):
        joined = {t.lower_ for t in head.children if t.dep_ in ("cc", "preconj")}
        if joined & {"or", "nor", "neither", "either", "but"}:
            raise NotApplicable("agreement")
        has_article = any(t.dep_ in ("det", "poss") for t in head.children)
        alone = all(_stands_alone(t) for t in head.children if t.dep_ == "conj")
        if has_article and head.tag_ == "NN" and not alone:
            raise NotApplicable("agreement")  # the secretary of health and human services
        return True
    if head.lower_ in _PLURAL_WORDS:
        return True
    if head.lower_ in _UNDECIDED or head.tag_ == "CD" or "%" in head.text:
        raise NotApplicable("agreement")
    if any(t.dep_ == "det" and t.lower_ in _SINGULAR for t in head.children):
        return any(t.lower_ == "few" for t in head.children)  # a few mistakes
    has_the = any(t.lower_ == "the" for t in head.children)
    if head.tag_ == "NNP" and head.lower_.endswith("s") and has_the:
        raise NotApplicable("agreement")  # the Celtics are, the Times is
    if head.tag_ == "NNPS" and not has_the:
        raise NotApplicable("agreement")  # General Dynamics is, the Yankees are
    if head.tag_ == "NNS" and not head.lower_.endswith("s") and head.lower_ not in _IRREGULAR:
        raise NotApplicable("agreement")  # broccoli
    if head.tag_ in ("NNS", "NNPS"):
        return True
    several = any(t.lower_ in _SEVERAL for t in head.children if t.i < head.i)
    if head.tag_ in ("NN", "NNP", "PRP", "DT", "PRP$") and not several:
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
