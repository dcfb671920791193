"""Synonym substitution (section 2.1): the main verb replaced by a WordNet synonym, inflected to fit.

WordNet proposes: the verb's most frequent senses in turn, synonyms of one word whose sentence frames allow
the pattern at hand, the most used first. A table of pairs that were read disposes (`pairs` in words.toml).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from palaver.probes import grammar, verbs
from palaver.probes.inflection import inflect, lemma_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.rules.reorder import is_somebody
from palaver.probes.words import LISTS, MAPS, TABLES, word_set
from palaver.probes.writing import edit

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

PAIRS: dict[str, dict[str, str]] = TABLES["pairs"]
WIDER: dict[str, dict[str, str]] = TABLES["wider"]
_LIGHT = word_set("be have do get go come make take let give keep set become")
_PARTICLES = word_set("away down up off on out in back over aside apart together forward")
_THINGS = word_set("lift raise")
"""Verbs that mean something else of people: to raise a child."""
_OF_PEOPLE = word_set("call question release")
"""Verbs that mean it of people only: to release a prisoner is to free him, but not a film."""
_PERSONAL = word_set("note find")
"""Verbs that mean it of somebody only: a report finds, but it does not discover."""
_SENSES = 6
"""How far down the list of senses, ordered by frequency, a verb or a synonym may mean it."""


@dataclass(frozen=True)
class Substitution:
    """A verb, and another that may stand in its place."""

    verb: Token
    lemma: str
    synonym: str
    relation: str
    """"synonym", or "wider": who slices it cuts it, but not the other way round."""


def apply(doc: Doc) -> str:
    """The sentence with another verb of the same meaning."""
    found = substitution(doc)
    return edit(doc, [(found.verb, inflect(found.synonym, found.verb.tag_))])


def substitution(doc: Doc) -> Substitution:
    """The main verb and its synonym."""
    head = grammar.root(doc)
    if head.pos_ == "AUX" or head.lemma_.lower() in _LIGHT:
        raise NotApplicable("light-verb")
    lemma = lemma_of(head)
    after = [t for t in head.children if t.i > head.i]
    if any(t.dep_ == "prt" or (t.dep_ == "advmod" and t.lower_ in _PARTICLES) for t in after):
        raise NotApplicable("idiom")
    objects = [t for t in head.children if t.dep_ in ("dobj", "nsubjpass")]
    if lemma in LISTS["concrete_verbs"] and not all(_can_be_touched(t) for t in objects):
        raise NotApplicable("idiom")
    subject = grammar.clause_of(head).subject
    if lemma in _PERSONAL and subject is not None and subject.dep_ == "nsubj" and not is_somebody(subject):
        raise NotApplicable("idiom")
    if lemma in _THINGS and any(is_somebody(t) for t in objects):
        raise NotApplicable("idiom")
    if lemma in _OF_PEOPLE and not all(is_somebody(t) for t in objects):
        raise NotApplicable("idiom")
    if lemma == "rise" and not any(t.like_num for t in head.subtree):
        raise NotApplicable("idiom")  # sales climb by 5 percent, smoke does not
    if lemma == "find" and any(t.dep_ == "poss" for noun in objects for t in noun.children):
        raise NotApplicable("idiom")  # who finds his keys does not discover them
    if any(t.lemma_.lower() in MAPS["fixed_phrases"].get(lemma, ()) for t in objects):
        raise NotApplicable("idiom")
    fitting = MAPS["fitting_objects"].get(lemma)
    if fitting is not None and not all(t.lemma_.lower() in fitting for t in objects):
        raise NotApplicable("idiom")
    if lemma in ("think", "believe", "feel") and any(t.text == '"' for t in doc):
        raise NotApplicable("quotation")
    if any(t.dep_ == "conj" and t.pos_ == "VERB" for t in head.children) and pattern(head) == "n":
        raise NotApplicable("coordination")  # a shared object would not be seen: bought and sold a house
    synonym = best_synonym(lemma, pattern(head))
    if synonym is None:
        raise NotApplicable("no-synonym")
    if synonym in WIDER.get(lemma, {}):
        grammar.refuse_negatives(doc, "polarity")  # who does not slice it may still cut it
        return Substitution(head, lemma, synonym, "wider")
    return Substitution(head, lemma, synonym, "synonym")


def _can_be_touched(noun: Token) -> bool:
    return verbs.kind_of_noun(noun.lemma_.lower()) in verbs.CONCRETE or noun.pos_ == "PRON"


def pattern(head: Token) -> str:
    """What the verb governs here, as a letter of `PAIRS`; d for two objects."""
    kinds = {t.dep_ for t in head.children}
    if "ccomp" in kinds and not any(_is_statement(t) for t in head.children if t.dep_ == "ccomp"):
        kinds = {*kinds - {"ccomp"}, "xcomp"}  # allows him to leave
    for letter, deps in (
        ("p", {"auxpass", "nsubjpass"}),
        ("a", {"oprd", "acomp", "attr"}),
        ("c", {"ccomp"}),
        ("x", {"xcomp"}),
        ("d", {"dative"}),
        ("o", {"dobj"}),
    ):
        if kinds & deps:
            return letter
    return "n"


def _is_statement(clause: Token) -> bool:
    return grammar.is_finite(grammar.clause_of(clause).finite)


@cache
def best_synonym(lemma: str, pattern: str) -> str | None:
    """The most used synonym in the most frequent sense that has one, else a verb directly above, or None."""
    meant = [sense.synset for sense in verbs.senses(lemma)[:_SENSES]]
    above = [broader for number in meant for broader in verbs.synset(number).broader]
    for number, table in (*((n, PAIRS) for n in meant), *((n, WIDER) for n in meant + above)):
        synset = verbs.synset(number)
        options = []
        for word in synset.words:
            if pattern not in table.get(lemma, {}).get(word, "") or word in _LIGHT:
                continue
            same = next(s for s in verbs.senses(word) if s.synset == number)
            if same.number <= _SENSES and _fits(synset.frames[word], pattern):
                options.append((-same.count, word))
        if options:
            return min(options)[1]
    return None


def _fits(frames: frozenset[int], pattern: str) -> bool:
    if pattern in "op":
        return bool(frames & verbs.TRANSITIVE)
    if pattern == "n":
        return bool(frames & (verbs.INTRANSITIVE | verbs.CLAUSAL))
    return True
