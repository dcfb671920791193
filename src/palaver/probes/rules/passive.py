"""Passivisation (section 2.1), with the by-phrase: *Abigail was asked by Harley to bake some muffins*."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.inflection import agree, inflect, is_plural, lemma_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.rules.arguments import Transitive, transitive
from palaver.probes.words import word_set
from palaver.probes.writing import write

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_LONG = 7
_LATER = word_set("because despite after before during since until without under amid while as")
_DIRECTIONS = word_set("away back down off out up")
_LAST = word_set("though too either instead anyway so yet now")
"""At the end of a sentence they stay there: *was washed by me instead*."""


def apply(doc: Doc) -> str:
    """The same event told from the object's side."""
    return _passive(doc, has_agent=True)


def leave_agent_out(doc: Doc) -> str:
    """The same without who did it, as in the paper's example: *Abigail is asked to bake some muffins*."""
    return _passive(doc, has_agent=False)


def _passive(doc: Doc, *, has_agent: bool) -> str:
    sentence = transitive(doc)
    verb = sentence.verb
    others = {t.dep_ for t in verb.children if t.i > verb.i}
    complements = {"oprd", "acomp", "parataxis", "csubj"}
    if sentence.infinitive is None:
        complements |= {"ccomp", "xcomp"}
    if others & complements:
        raise NotApplicable("complement")
    receiver = next(
        (t for t in verb.children if t.dep_ == "dative" and t.pos_ != "ADP" and t.i > verb.i), None
    )
    promoted, patient = sentence.object, sentence.patient
    if receiver is not None:
        if grammar.is_reflexive(receiver) or receiver.i > patient.i:
            raise NotApplicable("reflexive")
        promoted, patient = grammar.span(receiver), receiver
        if any(t.lower_ in grammar.OF_OTHERS for t in promoted):
            raise NotApplicable("pronoun")
    negated = sentence.clause.negation is not None
    if negated and promoted[0].lower_ in ("any", "anything", "anyone", "anybody"):
        raise NotApplicable("polarity")
    group = _verb_group(sentence, patient, promoted)
    before, rest = _around(sentence, promoted)
    agent: list[Token | str] = ["by", *grammar.in_case(sentence.subject, grammar.PERSONAL)]
    kept: list[Token] = []
    if receiver is not None:  # was given | a book | by a man
        if any(t.text == "," for t in rest):
            raise NotApplicable("embedded")
        kept = sentence.object
        rest = [t for t in rest if t not in kept]
    tail = _tail(sentence, rest, agent if has_agent else [])
    return write([*before, *grammar.in_case(promoted, grammar.OBJECTIVE), *group, *kept, *tail], doc)


def _verb_group(sentence: Transitive, patient: Token, promoted: list[Token]) -> list[Token | str]:
    """Auxiliaries, negation, adverbs and participle for the new subject."""
    clause, verb = sentence.clause, sentence.verb
    first_word = grammar.OBJECTIVE.get(promoted[0].lower_, promoted[0].text)
    plural = is_plural(patient, first_word)
    chain = [t.lemma_.lower() for t in clause.auxiliaries]
    finite = clause.finite
    tense = "past" if finite.tag_ == "VBD" else "present"
    words: list[str]
    if not chain or chain == ["do"]:
        words = [agree("be", tense, first_word, plural)]
    elif finite.tag_ == "MD" and len(chain) == 1:
        if finite.lower_ in ("'d", "’d"):
            raise NotApplicable("modal")
        words = [_modal(finite), "be"]
    elif finite.tag_ == "MD" and chain[1:] == ["have"]:
        words = [_modal(finite), "have", "been"]
    elif chain == ["have"]:
        words = [agree("have", tense, first_word, plural), "been"]
    elif chain == ["be"] and verb.tag_ == "VBG":
        words = [agree("be", tense, first_word, plural), "being"]
    else:
        raise NotApplicable("perfect-progressive" if "be" in chain else "unclear-parse")
    if clause.negation is not None:
        if clause.negation.lower_ == "never":
            words.insert(1, "never")
        elif clause.negation.lower_ in ("n't", "n’t") and words[0] in grammar.CONTRACTED:
            words[0] = grammar.CONTRACTED[words[0]]
        elif words[0] == "can":
            words[0] = "cannot"
        else:
            words.insert(1, "not")
        between = verb.doc[sentence.subject[-1].i + 1 : verb.i]
        grammar.forbid(between, word_set("just only even merely simply"), "polarity")
    adverbs = [t for t in verb.children if t.dep_ == "advmod" and sentence.subject[-1].i < t.i < verb.i]
    middle = [w for t in adverbs for w in grammar.span(t)]
    particle = [t for t in verb.children if t.dep_ == "prt"]
    if sentence.preposition is not None:
        particle.append(sentence.preposition)
    participle = inflect(lemma_of(verb), "VBN")
    manner = all(t.lower_.endswith("ly") for t in middle)
    if not (manner and words[-1] == "being"):  # will probably be seen, but: is being quickly cut
        at = 2 if words[1:2] in (["not"], ["never"]) else 1
        return [*words[:at], *middle, *words[at:], participle, *particle]
    return [*words, *middle, participle, *particle]


def _modal(finite: Token) -> str:
    full = {"ca": "can", "wo": "will", "'ll": "will", "’ll": "will"}
    return full.get(finite.lower_, finite.lower_)


def _around(sentence: Transitive, promoted: list[Token]) -> tuple[list[Token], list[Token]]:
    """What stands before the subject, and what is left after the object."""
    clause, verb, doc = sentence.clause, sentence.verb, sentence.verb.doc
    used = {t.i for t in [*sentence.subject, *promoted, verb, *clause.auxiliaries]}
    if clause.negation is not None:
        used.add(clause.negation.i)
    if sentence.preposition is not None:
        used.add(sentence.preposition.i)
    for child in verb.children:
        if child.dep_ == "prt":
            used.add(child.i)
        elif child.dep_ == "advmod" and sentence.subject[-1].i < child.i < verb.i:
            used |= {t.i for t in child.subtree}
    if sentence.has_relative:  # the comma after *, which was founded in 1902,*
        used |= {t.i for t in doc[sentence.subject[-1].i + 1 : verb.i] if t.text == ","}
    before = [t for t in doc if t.i < sentence.subject[0].i]
    if before and any(t.tag_ in ("PRP", "PRP$") or (t.pos_ == "VERB" and t.dep_ != "prep") for t in before):
        raise NotApplicable("embedded")
    rest = [t for t in doc if t.i >= sentence.subject[0].i and t.i not in used]
    while rest and rest[-1].is_punct and rest[-1].text in (".", "!", "..."):
        rest.pop()
    middle = [
        t for t in verb.children if t.dep_ in ("npadvmod", "prep") and sentence.subject[-1].i < t.i < verb.i
    ]
    when = {t.i for m in middle for t in m.subtree}
    if any(t.i not in when or t.text == "," for t in rest if t.i < verb.i):
        raise NotApplicable("unclear-parse")
    return before, rest


def _tail(sentence: Transitive, rest: list[Token], agent: list[Token | str]) -> list[Token | str]:
    """The by-phrase comes last after a short phrase, and before a clause or a long one."""
    verb = sentence.verb
    clauses = [t for t in verb.children if t.dep_ == "advcl" and t.i > verb.i]
    for clause in clauses:
        purpose = any(c.tag_ == "TO" for c in clause.children)
        if not purpose and not any(c.dep_ in ("nsubj", "nsubjpass") for c in clause.children):
            raise NotApplicable("embedded")  # while singing: by whom?
    if any(t.lower_ in grammar.OF_OTHERS or grammar.is_reflexive(t) for t in rest):
        raise NotApplicable("pronoun")
    if any(t.lower_ == "by" for t in rest):
        raise NotApplicable("complement")
    heavy = sentence.infinitive is not None or any(t.i < verb.i for t in rest) or clauses or len(rest) > _LONG
    later = _LATER - {"without"} if verb.lemma_ == "leave" else _LATER
    heavy = heavy or any(t.lower_ in later and t.head.i == verb.i for t in rest)
    heavy = heavy or any(t.text == "," or t.dep_ in ("relcl", "acl") for t in rest)
    if heavy and (len(agent) > 9 or sentence.has_relative):
        raise NotApplicable("embedded")
    if len(agent) == 2 and rest and rest[0].dep_ in ("advmod", "npadvmod"):
        heavy = True  # will be announced by them tomorrow
    if heavy:
        near = 1 if rest and rest[0].lower_ in _DIRECTIONS else 0
        return [*rest[:near], *agent, *rest[near:]]  # were turned | away | by the schools
    last: list[Token] = []
    while rest and rest[-1].lower_ in _LAST:
        last.insert(0, rest.pop())
    return [*rest, *agent, *last]
