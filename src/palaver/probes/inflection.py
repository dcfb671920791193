"""Forms of words: verbs in every tense, what takes a plural verb, a and an."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from palaver.errors import require
from palaver.probes.refusals import NotApplicable
from palaver.probes.words import word_set

if TYPE_CHECKING:
    from spacy.tokens import Token


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
    if head.tag_ == "NNP" and head.lower_.endswith("s") and any(t.lower_ == "the" for t in head.children):
        raise NotApplicable("agreement")  # the Celtics are, the Times is
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
