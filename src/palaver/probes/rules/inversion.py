"""Fixed point inversion (section 2.1): what follows the pivot comes first, what precedes it last.

*A dog is running on concrete and is holding a ball* becomes, with *concrete* as the pivot, *concrete and is
holding a ball a dog is running on*. The pivot is the word nearest to the middle that the cut severs from a
word it depends on, so that the halves do not read as two well-formed phrases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes.grammar import QUOTES
from palaver.probes.refusals import NotApplicable
from palaver.probes.writing import inside, write

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_LAST_RESORT = ("aux", "auxpass")  # Slicing a potato a man is: still understood
_SEVERED = ("prep", "det", "poss", "amod", "compound", "agent", "mark", "dative")
_BEFORE_A_COMMA = ("det", "poss", *_LAST_RESORT)
"""After other words the part up to the comma is only fronted: *The ruling, he said they were pleased by*."""


def apply(doc: Doc) -> str:
    """The two parts of the sentence exchanged at the pivot."""
    words: list[Token] = [t for t in doc if not t.is_space]
    while words and (words[-1].is_punct or words[-1].text in "\"'”’") and words[-1].text != "%":
        words.pop()
    if len([t for t in words if not t.is_punct]) < 4:
        raise NotApplicable("too-short")
    if any(t.text in QUOTES or t.text in ("(", ")") for t in words):
        raise NotApplicable("quotation")
    middle = len(words) / 2
    pivots = [n for n in range(1, len(words)) if _severs(words, n, _SEVERED)]
    pivots = pivots or [n for n in range(1, len(words)) if _severs(words, n, _LAST_RESORT)]
    if not pivots:
        raise NotApplicable("too-short")
    pivot = min(pivots, key=lambda n: (abs(n - middle), n))
    after, before = words[pivot:], words[:pivot]
    while before and before[-1].is_punct:
        before.pop()
    text = write([*after, *before], doc)
    if text.lower() == doc.text.lower() or [inside(t) for t in after + before] == [inside(t) for t in words]:
        raise NotApplicable("same")
    return text


def _severs(words: list[Token], n: int, kinds: tuple[str, ...]) -> bool:
    """Whether a cut before word `n` parts a small word from the word it belongs to."""
    left, right = words[n - 1], words[n]
    if left.dep_ not in _BEFORE_A_COMMA and any(t.text == "," for t in words[n:]):
        return False
    if left.dep_ in ("amod", "compound") and left.head.dep_ in ("nsubj", "nsubjpass"):
        return False  # Officials would not confirm it, EPA: the whole statement is still there
    if left.is_punct or right.is_punct or not left.whitespace_:
        return False
    bound = left.dep_ in kinds and left.head.i >= right.i
    if left.dep_ in kinds and left.dep_ in ("prep", "agent", "dative"):
        bound = any(t.i >= right.i and t.dep_ in ("pobj", "pcomp") for t in left.children)
    return bound and right.pos_ != "PART"
