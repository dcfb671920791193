"""Not-negation (section 2.1): *not* before the first verb, or a negation that is there taken away.

The first verb is that of the main clause, or of a quotation that comes before it ("We made it," he said).
Contractions follow the register: "is not" in a caption, "isn't" where somebody speaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes import grammar
from palaver.probes.grammar import Clause, clause_of, forbid
from palaver.probes.inflection import article, inflect, lemma_of
from palaver.probes.refusals import NotApplicable
from palaver.probes.verbs import kind_of_noun
from palaver.probes.words import LISTS, word_set
from palaver.probes.writing import edit

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

QUANTIFIERS = LISTS["quantifiers"]
POLARITY = LISTS["polarity"]
MODALS = word_set("must ought need dare shall better may might")
_CLITICS = {"'re": "are", "'ve": "have", "'ll": "will", "’re": "are", "’ve": "have", "’ll": "will"}
_POSITIVE = {"nobody": "somebody", "nothing": "something"}
_SOME = {"any": "some", "anything": "something", "anyone": "someone", "anybody": "somebody"}
_NPI = LISTS["negative_polarity"]
_DO_TAGS = {"do": "VBP", "does": "VBZ", "did": "VBD"}
_ANYWHERE = word_set("only just even also already unless so")
_FULL = {"ca": "can", "wo": "will", "sha": "shall"}


def apply(doc: Doc) -> str:
    """The negated sentence, or the sentence without its negation."""
    return _negate(doc, contracted=grammar.is_informal(doc))


def contract(doc: Doc) -> str:
    """The same with *n't*, where `apply` writes *not*."""
    return _otherwise(doc, contracted=True)


def write_full(doc: Doc) -> str:
    """The same with *not*, where `apply` writes *n't*."""
    return _otherwise(doc, contracted=False)


def _otherwise(doc: Doc, *, contracted: bool) -> str:
    text = _negate(doc, contracted=contracted)
    if text == apply(doc):
        raise NotApplicable("same")
    return text


def _negate(doc: Doc, *, contracted: bool) -> str:
    head = grammar.root(doc)
    clauses = [clause_of(head)]
    for child in head.children:
        if child.dep_ == "ccomp" and child.pos_ in ("VERB", "AUX"):
            clauses.append(clause_of(child))
    nots = [t for t in doc if t.lower_ in ("not", "n't", "n’t", "never")]
    negatives = [t for t in grammar.negatives_in(doc) if t not in nots]
    if negatives:
        if nots or len(negatives) > 1:
            raise NotApplicable("negated-otherwise")
        return _without_no(negatives[0], clauses[0])
    if len(nots) > 1:
        raise NotApplicable("negated-otherwise")
    if nots:
        owner = next((c for c in clauses if c.negation is not None and c.negation.i == nots[0].i), None)
        if owner is None or owner.subject is None:
            raise NotApplicable("negated-otherwise")
        return _remove(owner, nots[0])
    first = min((c for c in clauses if _can_carry(c, head)), key=lambda c: c.finite.i)
    return _add(first, contracted)


def _can_carry(clause: Clause, head: Token) -> bool:
    """The main clause, or a quotation before it: a full statement of its own."""
    if clause.verb.i == head.i:
        return True
    return clause.verb.i < head.i and clause.subject is not None and grammar.is_finite(clause.finite)


# --- taking a negation away ----------------------------------------------------------------------------


def _without_no(word: Token, main: Clause) -> str:
    """There is no man playing -> There is a man playing; Nobody is ... -> Somebody is ..."""
    doc = word.doc
    forbid(doc, _NPI | frozenset(["any", "anything"]), "polarity")
    following = doc[word.i + 1 : word.i + 2]
    forbid(following, word_set("more less else like but"), "negated-otherwise")  # nothing more than a game
    own_places = ("nsubj", "nsubjpass", "attr")
    if word.lower_ in _POSITIVE and word.head.i == main.verb.i and word.dep_ in own_places:
        return edit(doc, [(word, _case(_POSITIVE[word.lower_], word))])
    noun = word.head
    if word.lower_ != "no" or word.dep_ != "det" or not following:
        raise NotApplicable("negated-otherwise")
    if noun.head.i != main.verb.i or noun.dep_ not in own_places:
        raise NotApplicable("negated-otherwise")
    if noun.dep_ == "attr" and (main.subject is None or main.subject.dep_ != "expl"):
        raise NotApplicable("negated-otherwise")
    if noun.tag_ == "NN" and following[0].lower_ not in ("one", "longer") and _is_countable(noun):
        return edit(doc, [(word, _case(article(following[0].text), word))])
    if noun.tag_ == "NNS":
        return edit(doc, [(word, "")])
    raise NotApplicable("negated-otherwise")


def _is_countable(noun: Token) -> bool:
    """Whether *a* goes with it. Somebody and animals surely; of things only the plain names of objects."""
    return kind_of_noun(noun.lemma_.lower()) in ("person", "animal", "artifact", "group")


def _remove(clause: Clause, word: Token) -> str:
    doc, verb = word.doc, clause.verb
    following = doc[word.i + 1 : word.i + 2]
    forbid(following, word_set("only just even necessarily all every"), "negated-otherwise")
    if clause.subject is not None and clause.subject.i < word.i:
        forbid(clause.subject.subtree, QUANTIFIERS, "quantified")
    after = [t for t in doc if t.i > word.i]
    forbid(after, _NPI, "polarity")
    changes: list[tuple[Token, str]] = [(t, _SOME[t.lower_]) for t in after if t.lower_ in _SOME]
    aux = clause.finite
    if word.lower_ == "never":
        if aux.i == verb.i or aux.lemma_ != "do":
            return edit(doc, [*changes, (word, "")])
        raise NotApplicable("negated-otherwise")
    if aux.lower_ in MODALS or aux.lower_ == "ai":
        raise NotApplicable("modal")
    if aux.i > word.i:
        raise NotApplicable("negated-otherwise")
    if aux.lemma_ == "do" and aux.i != verb.i:
        if verb.tag_ != "VB" or len(clause.auxiliaries) > 1:
            raise NotApplicable("not-inflected")
        if aux.lower_ not in _DO_TAGS:
            raise NotApplicable("not-inflected")
        positive = inflect(lemma_of(verb), _DO_TAGS[aux.lower_])
        if doc[aux.i - 1].whitespace_ == "" and aux.i:
            raise NotApplicable("unclear-parse")
        return edit(doc, [*changes, (aux, ""), (word, ""), (verb, positive)])
    full = _FULL.get(aux.lower_, aux.text)
    if full.lower() in ("can", "could") and verb.lemma_ in ("wait", "help"):
        raise NotApplicable("idiom")  # can't wait to see it, can't help laughing
    if full.lower() == "can" and any(t.lower_ == "have" for t in clause.auxiliaries):
        raise NotApplicable("modal")  # can't have seen, but may have seen
    return edit(doc, [*changes, (aux, _case(full, aux)), (word, "")])


# --- adding one ----------------------------------------------------------------------------------------


def _add(clause: Clause, contracted: bool) -> str:
    doc, verb, finite, subject = clause.verb.doc, clause.verb, clause.finite, clause.subject
    if subject is None:
        raise NotApplicable("imperative")
    if finite.i < subject.i and subject.dep_ != "expl" and finite.i != verb.i:
        raise NotApplicable("question")
    forbid([subject, *subject.children], QUANTIFIERS, "quantified")
    near = [t for t in doc if t.head.i == verb.i or t.i == verb.i or t.head.head.i == verb.i]
    forbid((t for t in near if (t.lower_, t.dep_) != ("about", "prep")), POLARITY, "polarity")
    if any(t.dep_ == "prep" and t.lower_ == "despite" for t in near):
        raise NotApplicable("polarity")
    if finite.lower_ in MODALS or (verb.lemma_ == "use" and any(t.tag_ == "TO" for t in verb.rights)):
        raise NotApplicable("modal")
    if verb.lemma_ in ("bet", "wonder", "guess") and any(t.dep_ == "ccomp" for t in verb.children):
        raise NotApplicable("idiom")  # I bet you like it
    has_to = any(t.tag_ == "TO" for child in verb.children if child.dep_ == "xcomp" for t in child.children)
    if verb.lower_ == "got" and clause.auxiliaries and has_to:
        raise NotApplicable("modal")  # you have got to see this
    if subject.dep_ == "expl":
        return _add_to_existence(clause)
    forbid(doc, _ANYWHERE, "polarity")
    for other in verb.children:
        joined = clause_of(other)
        # The tagger takes *swam* in *went to the beach and swam* for a base form.
        is_finite = grammar.is_finite(joined.finite) or not (clause.auxiliaries or joined.auxiliaries)
        if other.dep_ == "conj" and (is_finite or joined.subject):
            raise NotApplicable("coordination")  # only the first of two statements would be denied
    objects = [t for t in verb.children if t.dep_ == "dobj"]
    forbid((t for noun in objects for t in noun.children), word_set("few several"), "quantified")
    changes = _some_to_any(clause)
    if finite.i != verb.i or verb.lemma_ == "be":
        return edit(doc, [*changes, (finite, _negated(finite, verb, contracted))])
    did = next((form for form, tag in _DO_TAGS.items() if tag == verb.tag_), None)
    if did is None:
        raise NotApplicable("not-inflected")
    negated = grammar.CONTRACTED[did] if contracted else f"{did} not"
    first = verb
    while first.i and doc[first.i - 1].head.i == verb.i and doc[first.i - 1].dep_ in ("advmod", "neg"):
        first = doc[first.i - 1]
    if first.i <= subject.i < verb.i:
        raise NotApplicable("unclear-parse")
    base = lemma_of(verb)
    if first.i == verb.i:
        return edit(doc, [*changes, (verb, f"{negated} {base}")])
    return edit(doc, [*changes, (first, f"{negated} {first.text}"), (verb, base)])


def _add_to_existence(clause: Clause) -> str:
    """There is a man -> There is no man; other forms get a plain not."""
    doc, verb = clause.verb.doc, clause.verb
    noun = next((t for t in verb.children if t.dep_ in ("attr", "nsubj") and t.i > verb.i), None)
    if noun is None or clause.subject is None or clause.subject.lower_ != "there":
        raise NotApplicable("unclear-parse")
    if any(t.dep_ == "conj" for t in noun.children):
        raise NotApplicable("coordination")
    forbid(noun.children, QUANTIFIERS, "quantified")
    det = next((t for t in noun.children if t.dep_ in ("det", "nummod", "predet")), None)
    if det is not None and det.lower_ in ("a", "an"):
        return edit(doc, [(det, "no")])
    if det is None and noun.tag_ in ("NNS", "NN"):
        first = grammar.span(noun)[0]
        return edit(doc, [(first, f"no {first.text}")])
    raise NotApplicable("quantified")


def _some_to_any(clause: Clause) -> list[tuple[Token, str]]:
    replaced = []
    for child in clause.verb.children:
        if child.dep_ == "dobj" and child.i > clause.verb.i:
            if child.lower_ in ("something", "someone", "somebody"):
                replaced.append((child, "any" + child.lower_[4:]))
            replaced += [(t, "any") for t in child.children if t.lower_ == "some" and t.dep_ == "det"]
    return replaced


def _negated(finite: Token, verb: Token, contracted: bool) -> str:
    word = finite.lower_
    spaced = finite.i and finite.doc[finite.i - 1].whitespace_ == ""
    if word in ("'m", "’m"):
        return f"{finite.text} not"
    if word in ("'s", "’s"):
        full = "has" if verb.tag_ == "VBN" and finite.dep_ != "auxpass" else "is"
    elif word in ("'d", "’d"):
        full = "had" if verb.tag_ == "VBN" else "would"
    else:
        full = _CLITICS.get(word, word)
    if full == "am":
        return "am not"
    if contracted and full in grammar.CONTRACTED:
        negated = grammar.CONTRACTED[full]
    else:
        negated = "cannot" if full == "can" else f"{full} not"
    return (" " if spaced else "") + _case(negated, finite)


def _case(word: str, like: Token) -> str:
    return word[:1].upper() + word[1:] if like.text[:1].isupper() else word
