"""Quantifier-negation (section 2.1): *A girl is cutting butter* -> *There is no girl cutting butter*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.grammar import clause_of, forbid
from palaver.probes.inflection import inflect, lemma_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.verbs import kind_of_noun
from palaver.probes.words import word_set
from palaver.probes.writing import write

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_WORDS = word_set("also too already still only even never some both just")
_OF_MANY = word_set("number lot couple few bunch majority dozen")


def apply(doc: Doc) -> str:
    """*There is no* before the subject; the finite verb becomes a participle or a relative clause."""
    head = grammar.root(doc)
    if doc[0].lower_ not in ("a", "an"):
        raise NotApplicable("not-indefinite")
    clause = clause_of(head)
    subject, finite = clause.subject, clause.finite
    # The tagger takes some nouns for names: a van
    is_noun = subject is not None and (subject.tag_ == "NN" or (subject.tag_ == "NNP" and subject.is_lower))
    if subject is None or not is_noun or subject.dep_ not in ("nsubj", "nsubjpass"):
        raise NotApplicable("not-indefinite")
    if doc[0].head.i != subject.i:
        raise NotApplicable("not-indefinite")
    grammar.refuse_negatives(doc, "negated")
    forbid(doc, _WORDS, "polarity")
    forbid([subject], _OF_MANY, "quantified")
    grammar.refuse_quotes(doc)
    noun = grammar.span(subject)
    if any(t.dep_ == "conj" and t.head.i == subject.i for t in noun):
        raise NotApplicable("coordination")
    if any(t.dep_ in ("relcl", "appos") or t.text == "," for t in noun) or noun[-1].i + 1 > finite.i:
        raise NotApplicable("embedded")
    if any(t.dep_ == "acl" for t in noun) and finite.lemma_ == "be":
        raise NotApplicable("embedded")  # no man wearing a hat playing: hard to read
    if any(t.pos_ == "VERB" and t.tag_ in ("VBZ", "VBD", "VBP") for t in noun):
        raise NotApplicable("embedded")
    joined = _joined(head)
    opening = "There was no" if finite.tag_ == "VBD" else "There is no"
    who = "who" if kind_of_noun(subject.lemma_.lower()) == "person" else "that"
    between = doc[noun[-1].i + 1 : finite.i]
    rest = [t for t in doc[finite.i :] if not _is_end(t)]
    relative = [opening, *noun[1:], who, *between, *rest]
    drop = {finite.i} if finite.lemma_ == "be" and finite.dep_ != "ROOT" else set()
    if finite.lemma_ == "have":
        raise NotApplicable("complement")
    if finite.tag_ == "MD":
        if finite.lower_ not in ("can", "will") or joined:
            raise NotApplicable("modal")
        return write(relative, doc)
    if finite.i == head.i and head.lemma_ == "be":
        kinds = {t.dep_ for t in head.children}
        if "prep" not in kinds or kinds & {"attr", "acomp"}:
            return write(relative, doc)
        drop = {head.i}
    elif finite.i == head.i:
        if joined:
            raise NotApplicable("coordination")
        lemma_of(head)
        return write(relative, doc)
    elif head.tag_ not in ("VBG", "VBN"):
        raise NotApplicable("complement")
    changed = {}
    for verb in joined:
        own = clause_of(verb)
        if own.auxiliaries:
            if [t.lemma_ for t in own.auxiliaries] != ["be"] or verb.tag_ not in ("VBG", "VBN"):
                raise NotApplicable("coordination")
            drop.add(own.auxiliaries[0].i)
        elif verb.tag_ == "VBZ":
            changed[verb.i] = inflect(lemma_of(verb), "VBG")
        elif verb.tag_ != head.tag_:
            raise NotApplicable("coordination")
    participial = [changed.get(t.i, t) for t in rest if t.i not in drop]
    return write([opening, *noun[1:], *between, *participial], doc)


def _joined(head: Token) -> list[Token]:
    """Verbs joined to the main verb that share its subject."""
    joined, left = [], [head]
    while left:
        verb = left.pop()
        for child in verb.children:
            if child.dep_ == "conj":
                if any(t.dep_ in grammar.SUBJECTS for t in child.children) or child.pos_ != "VERB":
                    raise NotApplicable("coordination")
                joined.append(child)
                left.append(child)
            elif child.dep_ in ("ccomp", "parataxis", "csubj"):
                raise NotApplicable("embedded")
    return joined


def _is_end(token: Token) -> bool:
    return token.is_punct and token.i >= len(token.doc) - 2 and token.text in (".", "!", "...")
