"""Reading an output again: does it parse as its rule meant it to?

A filter for grammar, not for meaning. It asks for one main verb with a subject that agrees with it, and for
the structure each rule builds. Fixed point inversion is meant to break the sentence and has no check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.grammar import clause_of
from palaver.probes.inflection import lemma_of
from palaver.probes.refusals import NotApplicable

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


def _head(doc: Doc) -> Token | None:
    """The main verb, if there is one and its subject agrees with it."""
    try:
        head = grammar.root(doc)
    except NotApplicable:
        return None
    return head if _agrees(head) else None


def _agrees(head: Token) -> bool:
    """Whether subject and finite verb agree, as far as the tags can tell."""
    clause = clause_of(head)
    subject, finite = clause.subject, clause.finite
    if subject is None or subject.dep_ not in ("nsubj", "nsubjpass") or subject.i > finite.i:
        return True
    if any(t.dep_ == "conj" for t in subject.children) or subject.lower_ in ("i", "you"):
        return finite.lower_ not in ("is", "was") or subject.lower_ == "i"
    if finite.tag_ == "VBZ" or finite.lower_ == "was":
        is_one = any(t.lower_ in ("a", "an", "this", "each", "every") for t in subject.children)
        return subject.tag_ != "NNS" or is_one  # a new species
    if finite.lower_ in ("are", "were", "have", "do"):
        return subject.tag_ != "NN" or any(t.dep_ in ("prep", "nummod") for t in subject.children)
    return True


def _same_verb(source: Doc, head: Token) -> bool:
    """By the form that inflects to what is written: the tagger's own may differ between two sentences."""
    try:
        return lemma_of(head) == lemma_of(grammar.root(source))
    except NotApplicable:
        return head.lemma_.lower() == grammar.root(source).lemma_.lower()


def _negation(source: Doc, output: Doc) -> bool:
    head = _head(output)
    return head is not None and _same_verb(source, head)


def _existence(source: Doc, output: Doc) -> bool:
    heads = [t for t in output if t.dep_ == "ROOT"]
    if len(heads) != 1 or heads[0].lemma_ != "be":
        return False
    noun = [t for t in heads[0].children if t.dep_ in ("attr", "nsubj") and t.i > heads[0].i]
    return bool(noun) and any(t.lower_ == "no" for t in noun[0].children)


def _synonym(source: Doc, output: Doc) -> bool:
    """Another verb in the same place must leave the parse as it was, but for where phrases are hung."""
    if len(source) != len(output):
        return False
    return all(
        a.dep_ == b.dep_ and (a.head.i == b.head.i or a.dep_ in ("prep", "punct"))
        for a, b in zip(source, output, strict=True)
    )


def _clause(source: Doc, output: Doc) -> bool:
    head = _head(output)
    if head is None:
        return False
    outer = grammar.root(source)
    return head.lower_ in {t.lower_ for t in outer.children if t.dep_ == "ccomp"} | {outer.lower_}


def _passive(source: Doc, output: Doc) -> bool:
    head = _head(output)
    if head is None or head.tag_ not in ("VBN", "VBD"):
        return False
    kinds = {t.dep_ for t in head.children}
    by = any(t.lower_ == "by" and t.i > head.i for t in output)
    return "auxpass" in kinds and "nsubjpass" in kinds and by


def _reorder(source: Doc, output: Doc) -> bool:
    head = _head(output)
    return head is not None and _same_verb(source, head) and len(source) == len(output)


CHECKS: dict[str, Callable[[Doc, Doc], bool]] = {
    "not-negation": _negation,
    "quantifier-negation": _existence,
    "synonym": _synonym,
    "clause": _clause,
    "passive": _passive,
    "reorder": _reorder,
}
"""Rule -> check(source, output)."""
