"""Subject, verb group and object of a transitive clause: what passive and reordering have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.grammar import Clause, clause_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.verbs import CONCRETE, kind_of_noun, senses
from palaver.probes.words import LISTS, MAPS, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_KNOWN = word_set("dobj dative prt prep advmod npadvmod advcl xcomp ccomp neg oprd acomp")
_FRONTED = word_set("cc advmod npadvmod prep punct intj")
"""What may stand before the subject."""
_NEGATIVE = word_set("nobody none no neither nor few nothing hardly")
_MAX_WORDS, _MAX_PHRASE = 36, 12


@dataclass(frozen=True)
class Transitive:
    """Somebody does something to somebody or something."""

    clause: Clause
    subject: list[Token]
    object: list[Token]
    """Without phrases that rather belong to the verb."""
    patient: Token
    """The head of the object."""
    infinitive: Token | None
    """*to do something*, or what somebody is told, of verbs that take one."""
    preposition: Token | None = None
    """Of verbs such as *look at*, whose object follows it."""

    @property
    def has_relative(self) -> bool:
        """Whether a relative clause belongs to the subject, which then must come last."""
        return any(t.dep_ == "relcl" for t in self.subject)

    @property
    def verb(self) -> Token:
        return self.clause.verb


def transitive(doc: Doc) -> Transitive:
    """The main clause as subject, verb and object, or why it has none."""
    head = grammar.root(doc)
    clause = clause_of(head)
    subject = clause.subject
    assert subject is not None  # root() saw to it
    if any(t.dep_ in ("auxpass", "nsubjpass", "agent") for t in head.children):
        raise NotApplicable("passive-already")
    if head.lemma_ == "be":
        raise NotApplicable("intransitive")
    if subject.dep_ != "nsubj" or subject.i > head.i or subject.tag_ in ("WP", "WDT", "EX"):
        raise NotApplicable("unclear-parse")
    if clause.finite.i < subject.i:
        raise NotApplicable("question")
    if any(t.dep_ == "conj" for t in head.children):
        raise NotApplicable("coordination")
    if sum(t.dep_ == "nsubj" and t.i < head.i for t in head.children) > 1:
        raise NotApplicable("unclear-parse")
    if any(t.text in ("--", "-", ";", ":") and t.head.i == head.i for t in doc):
        raise NotApplicable("unclear-parse")
    patient, infinitive, preposition = _patient(head)
    lemma = head.lemma_.lower()
    if lemma in LISTS["stative"]:
        raise NotApplicable("stative")
    if patient.lemma_.lower() in MAPS["idioms"].get(lemma, ()):
        raise NotApplicable("idiom")
    _check(patient)
    whole = _object(head, patient)
    if not subject.i < head.i < whole[0].i:
        raise NotApplicable("unclear-parse")
    left = grammar.span(subject)
    if left[0].i and _under(head, doc[left[0].i - 1]).dep_ not in _FRONTED:
        raise NotApplicable("unclear-parse")
    if left[-1].i > clause.finite.i:
        raise NotApplicable("unclear-parse")
    grammar.refuse_quotes(doc[: whole[-1].i + 1])
    grammar.forbid(left, _NEGATIVE, "quantified")
    if len(doc) > _MAX_WORDS or max(len(left), len(whole)) > _MAX_PHRASE:
        raise NotApplicable("unclear-parse")
    _check_rest(head, whole, infinitive)
    for phrase in (_before_relative(left, subject), whole):
        if any(
            t.text in (",", ":", ";", "--", "-", "(", ")") or t.dep_ in ("appos", "parataxis") for t in phrase
        ):
            raise NotApplicable("embedded")
        if any(t.dep_ == "conj" and t.pos_ in ("VERB", "AUX") for t in phrase):
            raise NotApplicable("unclear-parse")
    while left[-1].text == ",":
        left.pop()
    return Transitive(clause, left, whole, patient, infinitive, preposition)


def _before_relative(phrase: list[Token], noun: Token) -> list[Token]:
    """A noun phrase without the relative clause it ends with."""
    start = min((t.left_edge.i for t in noun.children if t.dep_ == "relcl"), default=phrase[-1].i + 1)
    before = [t for t in phrase if t.i < start]
    return before[:-1] if before[-1].text == "," else before


def _under(head: Token, token: Token) -> Token:
    """The child of `head` that `token` belongs to."""
    while token.head.i != head.i and token.head.i != token.i:
        token = token.head
    return token


def _object(head: Token, patient: Token) -> list[Token]:
    """The object without the phrases that say where to, of what or what for: *put meat | in a pan*."""
    tokens = grammar.span(patient)
    lemma, kind = head.lemma_.lower(), kind_of_noun(patient.lemma_.lower())
    for child in patient.children:
        if child.i < patient.i or child.i > tokens[-1].i:
            continue
        to = child.dep_ in ("acl", "relcl") and any(t.tag_ == "TO" for t in child.children)
        if to and kind not in ("person", "group", "animal"):
            if lemma in ("use", "take", "implement", "send"):
                raise NotApplicable("unclear-parse")
            continue
        concrete = kind in CONCRETE
        placed = child.dep_ in ("prep", "prt") and child.lower_ != "of" and lemma in LISTS["placing"]
        directed = child.dep_ == "prep" and child.lower_ == "to"
        governed = child.lower_ in MAPS["governed"].get(lemma, ())
        moves = (concrete and (placed or directed)) or governed
        moves = moves or (child.lower_ == "as" and child.dep_ == "prep")
        if moves or to or child.dep_ == "prt":
            start = min(t.i for t in child.subtree)
            tokens = [t for t in tokens if t.i < start]
    return tokens


def _check_rest(head: Token, whole: list[Token], infinitive: Token | None) -> None:
    """Nothing after the object that the verb does not plainly govern."""
    for child in head.children:
        is_infinitive = infinitive is not None and child.i == infinitive.i
        known = child.dep_ in _KNOWN or is_infinitive or child.is_punct
        if child.i > whole[-1].i and not known:
            raise NotApplicable("unclear-parse")
        if child.dep_ == "npadvmod" and child.i > head.i and kind_of_noun(child.lemma_.lower()) != "time":
            raise NotApplicable("measure")
    particle = [t for t in head.children if t.dep_ == "prt"]
    if particle and not senses(f"{head.lemma_.lower()}_{particle[0].lower_}"):
        raise NotApplicable("unclear-parse")  # *is snowboarding down a railing*: a preposition
    for token in head.doc[whole[-1].i + 1 :]:
        if token.dep_ == "conj" and grammar.is_finite(token) and clause_of(token).subject is None:
            raise NotApplicable("coordination")  # asked the court to block the ruling and filed an appeal
        if token.lower_ in ("who", "whom", "whose"):
            raise NotApplicable("embedded")  # it would come to stand by somebody else


def _patient(head: Token) -> tuple[Token, Token | None, Token | None]:
    objects = [t for t in head.children if t.dep_ == "dobj" and t.i > head.i]
    to = [
        t
        for t in head.children
        if t.dep_ in ("xcomp", "ccomp", "advcl") and t.i > head.i and any(c.tag_ == "TO" for c in t.children)
    ]
    control = head.lemma_.lower() in LISTS["control"]
    if len(objects) == 1:
        told = [t for t in head.children if t.dep_ == "ccomp" and t.i > objects[0].i]
        if told and not to and head.lemma_.lower() in LISTS["telling"]:
            return objects[0], told[0], None
        if to and to[0].dep_ != "advcl" and not control:
            raise NotApplicable("complement")
        return objects[0], to[0] if to and control else None, None
    if not objects and to and control:
        inner = [t for t in to[0].children if t.dep_ == "nsubj" and head.i < t.i < to[0].i]
        if len(inner) == 1:
            return inner[0], to[0], None
    if any(t.dep_ in ("ccomp", "xcomp") for t in head.children):
        raise NotApplicable("clausal-object")
    with_verb = MAPS["with_preposition"].get(head.lemma_.lower(), ())
    for prep in head.children:
        if prep.dep_ == "prep" and prep.i == head.i + 1 and prep.lower_ in with_verb:
            inner = [t for t in prep.children if t.dep_ == "pobj"]
            if len(inner) == 1 and not objects:
                return inner[0], None, prep
    raise NotApplicable("intransitive" if not objects else "unclear-parse")


def _check(patient: Token) -> None:
    if grammar.is_reflexive(patient) or patient.lower_ in ("other", "another"):
        raise NotApplicable("reflexive")
    if patient.pos_ not in ("NOUN", "PROPN", "PRON") or patient.tag_ in ("WP", "WDT", "DT", "EX"):
        raise NotApplicable("clausal-object" if patient.pos_ == "VERB" else "unclear-parse")
    if patient.lemma_.lower() in LISTS["measures"] or any(
        t.dep_ == "quantmod" or t.text in "$%£" for t in patient.children
    ):
        raise NotApplicable("measure")
    inner = [t for t in patient.subtree if t.i != patient.i]
    if any(t.lower_ in grammar.OF_OTHERS or grammar.is_reflexive(t) or t.tag_ == "PRP" for t in inner):
        raise NotApplicable("pronoun")
    near = [t for t in patient.subtree if t.head.i == patient.i and t.dep_ != "poss"]
    if any(t.lower_.rstrip(".") in LISTS["dates"] for t in near):
        raise NotApplicable("unclear-parse")  # told the Star April 20
    if patient.head.lemma_ == "order" and any(t.dep_ == "acl" and t.tag_ == "VBN" for t in patient.children):
        raise NotApplicable("complement")  # ordered the men released
    if patient.head.lemma_ == "graduate":
        raise NotApplicable("intransitive")
