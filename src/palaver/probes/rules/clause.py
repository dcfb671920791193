"""Embedded clause extraction (section 2.1): *Octel said the purchase was expected* -> *The purchase was
expected*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.grammar import QUOTES, clause_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.words import LISTS, word_set
from palaver.probes.writing import write

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

REPORTS = LISTS["reports"]
_ASIDE = ("appos", "relcl", "acl", "prep", "amod")
_WH = word_set("whether if how what why who when where which whose")


def apply(doc: Doc) -> str:
    """The clause alone."""
    head = grammar.root(doc)
    inserted = _inserted(head)
    if inserted:
        return write(_without(doc, inserted), doc)
    return write(_words(embedded(doc)), doc)


def _inserted(head: Token) -> list[Token]:
    """The report in *The purchase, Octel said, was expected*, or nothing."""
    for child in head.children:
        if child.dep_ in ("ccomp", "parataxis") and child.lemma_.lower() in REPORTS and child.i < head.i:
            inside = [t for t in sorted(child.subtree, key=lambda t: t.i) if not t.is_punct]
            inner = clause_of(child)
            start, end = inside[0].i, inside[-1].i
            framed = start > 1 and head.doc[start - 1].text == "," and head.doc[end + 1].text == ","
            whole = end - start + 1 == len(inside) and inner.subject is not None and inner.subject.i < child.i
            if framed and whole and not any(t.dep_ in ("dobj", "ccomp", "xcomp", "mark") for t in inside):
                return inside
    return []


def _without(doc: Doc, inserted: list[Token]) -> list[Token]:
    if any(t.text in QUOTES for t in doc):
        raise NotApplicable("quotation")
    first, last = inserted[0].i - 1, inserted[-1].i + 1
    fronted = doc[first - 1]
    while fronted.head.dep_ != "ROOT" and fronted.head.i != fronted.i:
        fronted = fronted.head
    if fronted.dep_ not in grammar.SUBJECTS:  # In 1990, he said, sales rose: one comma stays
        last -= 1
    return [t for t in doc if not first <= t.i <= last and not (t.is_punct and t.i == len(doc) - 1)]


def embedded(doc: Doc) -> Token:
    """The verb of the clause that is reported."""
    head = grammar.root(doc)
    if _inserted(head):
        return head
    if head.lemma_.lower() not in REPORTS:
        raise NotApplicable("no-report")
    clauses = [t for t in head.children if t.dep_ == "ccomp"]
    if len(clauses) != 1:
        raise NotApplicable("unclear-parse" if clauses else "no-report")
    verb = clauses[0]
    clause = clause_of(verb)
    if verb.pos_ not in ("VERB", "AUX") or clause.subject is None or not grammar.is_finite(clause.finite):
        raise NotApplicable("not-a-statement")
    if clause.finite.i < clause.subject.i and clause.subject.dep_ != "expl":
        raise NotApplicable("not-a-statement")
    first = next((t for t in sorted(verb.subtree, key=lambda t: t.i) if not t.is_punct), verb)
    if first.lower_ in _WH or any(t.dep_ == "mark" and t.lower_ != "that" for t in verb.children):
        raise NotApplicable("not-a-statement")
    if any(t.dep_ == "conj" and t.i > head.i for t in head.children):
        raise NotApplicable("coordination")
    if any(t.dep_ == "dobj" for t in head.children) and head.lemma_.lower() != "tell":
        raise NotApplicable("unclear-parse")
    base = clause.finite.tag_ in ("VB", "VBP") and clause.finite.lemma_ != "be"
    if base and clause.subject.tag_ in ("NN", "NNP"):
        raise NotApplicable("not-a-statement")  # it suggests that Congress consider this
    report = clause_of(head)
    reporter = report.subject
    assert reporter is not None  # root() saw to it
    apart = verb.i > head.i > 0 and doc[head.i - 1].text == ","
    if apart and not any(t.dep_ in _ASIDE for t in reporter.children if t.i > reporter.i):
        raise NotApplicable("unclear-parse")  # The main change, said the president, is ...
    if verb.i > head.i and any(t.i < head.i and _could_be_the_clauses(t) for t in head.children):
        raise NotApplicable("unclear-parse")  # In London, he said sales were falling: where?
    if first.dep_ == "mark" and first.lower_ != "that":
        raise NotApplicable("not-a-statement")
    if report.negation is not None or grammar.negatives_in((*reporter.subtree, *head.children)):
        raise NotApplicable("negated")  # nobody said it, few believe it
    if any(t.dep_ == "conj" and any(c.dep_ == "mark" for c in t.children) for t in verb.children):
        raise NotApplicable("coordination")  # that sales fell and that profits rose
    if verb.i > head.i and any(_could_be_the_reporters(t) for t in verb.children):
        raise NotApplicable("coordination")
    return verb


def _could_be_the_clauses(fronted: Token) -> bool:
    """A phrase in front of the report, other than a word like *yesterday*."""
    return fronted.dep_ in ("prep", "advcl", "npadvmod") and len(list(fronted.subtree)) > 1


def _could_be_the_reporters(joined: Token) -> bool:
    """*He said they would boycott the vote and warned voters*: who warned?"""
    clause = clause_of(joined)
    return joined.dep_ == "conj" and clause.subject is None and grammar.is_finite(clause.finite)


def _words(verb: Token) -> list[Token]:
    tokens = sorted(verb.subtree, key=lambda t: t.i)
    inner = {t.i for t in tokens}
    head = verb.head
    doc = verb.doc
    if tokens[-1].i - tokens[0].i + 1 != len(tokens):
        tokens = _without_gap(tokens, inner, head)
    tokens = [t for t in tokens if not (t.dep_ == "mark" and t.lower_ == "that" and t.head.i == verb.i)]
    while tokens and (tokens[0].is_punct or tokens[0].is_space) and tokens[0].text not in ("$", "("):
        tokens.pop(0)
    if tokens and tokens[0].dep_ == "cc" and tokens[0].i < verb.i:
        tokens.pop(0)
        while tokens and tokens[0].is_punct:
            tokens.pop(0)
    while tokens and (tokens[-1].is_punct or tokens[-1].is_space) and tokens[-1].text not in (")", "%"):
        tokens.pop()
    quotes = [t for t in tokens if t.text in QUOTES]
    if len(quotes) % 2 or any(t.text in ("'", "`", "’") and t.is_punct for t in tokens):
        raise NotApplicable("quotation")
    if len(tokens) < 3 or (tokens[-1].i < head.i and tokens[0].i > 2):
        raise NotApplicable("unclear-parse")
    if tokens[0].i > head.i and any(not t.is_punct and t.text not in QUOTES for t in doc[tokens[-1].i + 1 :]):
        raise NotApplicable("unclear-parse")  # something of the clause was left behind
    if tokens[-1].i < head.i and not (doc[tokens[-1].i + 1].is_punct or doc[tokens[-1].i + 1].text in QUOTES):
        raise NotApplicable("unclear-parse")  # part of it was taken for something else
    if any(t.text in (":", ";", "--", "-", "(", ")") for t in tokens):
        raise NotApplicable("unclear-parse")
    return tokens


def _without_gap(tokens: list[Token], inner: set[int], head: Token) -> list[Token]:
    """*The purchase, Octel said, was expected*: the report stands between commas, which go with it."""
    gaps = [t for t in tokens if t.i + 1 not in inner and t.i != tokens[-1].i]
    if len(gaps) != 1 or not tokens[0].i < head.i < tokens[-1].i:
        raise NotApplicable("unclear-parse")
    before = [t for t in tokens if t.i <= gaps[0].i]
    after = [t for t in tokens if t.i > gaps[0].i]
    while before and (before[-1].text == "," or before[-1].text in QUOTES):
        before.pop()
    while after and (after[0].text == "," or after[0].text in QUOTES):
        after.pop(0)
    if not before or not after:
        raise NotApplicable("unclear-parse")
    return before + after
