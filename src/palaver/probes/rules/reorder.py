"""Argument reordering (section 2.1): subject and object change places, the rest stays.

The pattern is *somebody VERB somebody to do something* and, as in the example of section 2.2 (*Lilly loves
Imogen*), the same without the infinitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.inflection import agree, is_plural, lemma_of
from palaver.probes.parse import names_in
from palaver.probes.refusals import NotApplicable
from palaver.probes.rules.arguments import transitive
from palaver.probes.verbs import kind_of_noun
from palaver.probes.words import LISTS, word_set
from palaver.probes.writing import write

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_SOMEBODY = LISTS["somebody"]
_NOBODY = LISTS["nobody"]
_BODIES = LISTS["bodies"]
_MUTUAL = word_set("meet marry resemble date divorce encounter play battle fight face join attend")
"""What A does to B, B does to A: exchanged, the sentence says the same."""
_SPEAKERS = word_set("i me we us you")
_OF_THINGS = word_set("enter leave visit reach inspect search own increase expand enlarge form manage run")
"""Verbs to which a company or a school is a place or a thing."""
_OF_ONE = word_set("he him she her it")
"""Pronouns that fit one of the two only."""
_WORN = LISTS["worn"]
_NAMES = ("PERSON", "ORG", "NORP", "GPE")


def apply(doc: Doc) -> str:
    """The same deed with the roles exchanged."""
    sentence = transitive(doc)
    verb, clause = sentence.verb, sentence.clause
    subject = clause.subject
    assert subject is not None
    everyone = [subject, *subject.conjuncts, sentence.patient, *sentence.patient.conjuncts]
    if not all(is_somebody(noun) for noun in everyone):
        raise NotApplicable("not-somebody")
    if verb.lemma_.lower() in _OF_THINGS and sentence.patient.lemma_.lower() in _BODIES:
        raise NotApplicable("not-somebody")  # who enters a bank, enters a house
    before = doc[: sentence.subject[0].i]
    if any(_is_of_others(t) for t in [*before, *sentence.subject, *sentence.object]):
        raise NotApplicable("pronoun")
    participles = [t for t in before if t.tag_ == "VBG" and t.dep_ != "prep"]
    if participles or any(t.pos_ == "VERB" and t.dep_ == "pcomp" for t in before):
        raise NotApplicable("embedded")  # While giving a test, she spotted him: who gave it?
    if verb.lemma_.lower() in _MUTUAL:
        raise NotApplicable("same")
    governed = sentence.infinitive.i if sentence.infinitive is not None else None
    if any(t.dep_ in ("ccomp", "parataxis") and t.i != governed for t in verb.children):
        raise NotApplicable("clausal-object")
    if any(t.text == "," for t in doc[sentence.subject[-1].i : verb.i]):
        raise NotApplicable("embedded")  # The official, describing the arrest, identified the suspect
    object = _without_tool(sentence.object)
    object += _worn(doc, object[-1].i + 1)
    after = doc[object[-1].i + 1 :]
    if sentence.has_relative and any(not t.is_punct for t in after):
        raise NotApplicable("embedded")
    they = {t.lower_ for t in everyone}
    others = frozenset() if they <= _SPEAKERS else _OF_ONE
    if any(_is_of_others(t) or t.lower_ in others or grammar.is_reflexive(t) for t in after):
        raise NotApplicable("pronoun")
    grammar.forbid(sentence.object, frozenset(("any", "anyone", "anybody")), "polarity")
    new_subject = grammar.in_case(object, grammar.OBJECTIVE)
    new_object = grammar.in_case(sentence.subject, grammar.PERSONAL)
    if [str(t).lower() for t in new_subject] == [t.lower_ for t in sentence.subject]:
        raise NotApplicable("same")  # they beat them
    first = str(new_subject[0])
    plural = False
    if clause.finite.tag_ in ("VBZ", "VBP") or clause.finite.lemma_ == "be":
        plural = is_plural(sentence.patient, first)
    parts: list[Token | str] = [*before, *new_subject]
    for token in doc[sentence.subject[-1].i + 1 : sentence.object[0].i]:
        parts.append(_agreeing(token, first, plural) if token.i == clause.finite.i else token)
    parts += new_object
    parts += [t for t in after if not (t.is_punct and t.i >= len(doc) - 1)]
    lemma_of(verb)
    return write(parts, doc)


def _is_of_others(token: Token) -> bool:
    """*his*, *her*, *their*: whose, may change with the places; *my* and *your* do not."""
    return token.tag_ == "PRP$" and token.lower_ in grammar.OF_OTHERS


def _without_tool(phrase: list[Token]) -> list[Token]:
    """*whacking a man | with a sword*: the sword belongs to the deed, which stays where it is."""
    for at, token in enumerate(phrase):
        things = [t.lemma_.lower() for t in token.children if t.dep_ == "pobj"]
        tool = any(thing not in _WORN and kind_of_noun(thing) == "artifact" for thing in things)
        if at and token.lower_ == "with" and tool:
            return phrase[:at]
    return list(phrase)


def _worn(doc: Doc, start: int) -> list[Token]:
    """*in a red uniform*, *with a number on the jersey*, if that is what comes next."""
    if start >= len(doc) or doc[start].dep_ != "prep" or doc[start].lower_ not in ("in", "with"):
        return []
    if not any(t.dep_ == "pobj" and t.lemma_.lower() in _WORN for t in doc[start].children):
        return []
    return grammar.span(doc[start])


def _agreeing(finite: Token, first: str, plural: bool) -> Token | str:
    if finite.tag_ == "MD":
        return finite
    if finite.text.startswith(("'", "’")):
        raise NotApplicable("agreement")
    if finite.tag_ == "VBD":
        return agree("be", "past", first, plural) if finite.lemma_ == "be" else finite
    return agree(lemma_of(finite), "present", first, plural)


def is_somebody(noun: Token) -> bool:
    """A person, an animal, a group of them, or a name of such."""
    if noun.lower_ in _SOMEBODY:
        return True
    if noun.tag_ in ("NNP", "NNPS") and noun.text[:1].isupper():
        kind = names_in(noun.doc).get(noun.i)
        # A name the parser does not know is somebody's, but not in a headline in capitals or with an article.
        is_bare = not noun.is_upper and not any(t.dep_ == "det" for t in noun.children)
        return kind in _NAMES or (kind is None and is_bare)
    if noun.lower_ in ("group", "groups", "pack", "herd", "bunch", "number"):
        return any(is_somebody(p) for t in noun.children if t.lower_ == "of" for p in t.children)
    if noun.lemma_.lower() in _NOBODY:
        return False
    if noun.lemma_.lower() == "board" and any(t.dep_ == "compound" and t.is_lower for t in noun.children):
        return False  # a diving board
    if noun.lemma_.lower() in LISTS["eaten"] and noun.head.lemma_.lower() in LISTS["cooking"]:
        return False
    return kind_of_noun(noun.lemma_.lower()) in ("person", "animal") or noun.lemma_.lower() in _BODIES
