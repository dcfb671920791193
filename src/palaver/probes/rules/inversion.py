"""Fixed point inversion (section 2.1): what follows the pivot comes first, what precedes it last.

*A dog is running on concrete and is holding a ball* becomes, with *concrete* as the pivot, *concrete and is
holding a ball a dog is running on*. Words keep their case: a capital at the new beginning would tell a cased
encoder what has happened.

Not every cut destroys a sentence. *The park two men are talking in* only puts a phrase in front, *man is
playing a guitar a* only moves an article. `apply` makes neither; `front` and `move_article` make just these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver.probes.grammar import QUOTES
from palaver.probes.refusals import NotApplicable
from palaver.probes.writing import join

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_AUXILIARIES = ("aux", "auxpass")
_SMALL = ("prep", "det", "poss", "amod", "compound", "nummod", "agent", "mark", "dative", *_AUXILIARIES)
"""What a cut may part from the word it belongs to."""
_GOVERNORS = ("prep", "agent", "dative")
_BEFORE_A_NOUN = ("det", "poss", "amod", "compound", "nummod")
_BEFORE_A_COMMA = ("det", "poss")
"""After other words the part up to the comma is only fronted: *the ruling, he said they were pleased by*."""


def apply(doc: Doc) -> str:
    """The two parts exchanged at the pivot nearest to the middle that leaves no statement."""
    return _exchange(doc, "scrambled")


def front(doc: Doc) -> str:
    """What hangs on the first part, put in front of it: the statement is still there."""
    return _exchange(doc, "fronted")


def move_article(doc: Doc) -> str:
    """The first word, an article or the like, put at the end."""
    return _exchange(doc, "article")


def _exchange(doc: Doc, grade: str) -> str:
    words: list[Token] = [t for t in doc if not t.is_space]
    while words and (words[-1].is_punct or words[-1].text in "\"'”’") and words[-1].text != "%":
        words.pop()
    if len([t for t in words if not t.is_punct]) < 4:
        raise NotApplicable("too-short")
    if any(t.text in QUOTES or t.text in ("(", ")") for t in words):
        raise NotApplicable("quotation")
    pivots = [n for n in range(1, len(words)) if _severs(words, n)]
    if not pivots:
        raise NotApplicable("too-short")
    pivots = [n for n in pivots if _grade(words, n) == grade]
    if not pivots:
        raise NotApplicable("only-moved")
    middle = len(words) / 2
    pivot = min(pivots, key=lambda n: (_is_last_resort(words, n), abs(n - middle), n))
    after, before = words[pivot:], words[:pivot]
    if [t.lower_ for t in after + before] == [t.lower_ for t in words]:
        raise NotApplicable("same")
    return join([*after, *before], doc)


def _severs(words: list[Token], n: int) -> bool:
    """Whether a cut before word `n` parts a small word from the word it belongs to."""
    left, right = words[n - 1], words[n]
    if left.is_punct or right.is_punct or not left.whitespace_ or right.pos_ == "PART":
        return False
    if left.dep_ in _GOVERNORS:
        return any(t.i >= right.i and t.dep_ in ("pobj", "pcomp") for t in left.children)
    return left.dep_ in _SMALL and left.head.i >= right.i


def _grade(words: list[Token], n: int) -> str:
    """What a cut before word `n` does: "article", "fronted", "scrambled", or "" for neither of them."""
    left, after = words[n - 1], words[n:]
    if n == 1:
        return "article" if left.dep_ in ("det", "poss") else ""
    if left.dep_ not in _BEFORE_A_COMMA and any(t.text == "," for t in after):
        return "fronted"
    if left.dep_ == "mark" or left.lower_ == "no":
        return "fronted"  # the law is unfair critics argue that; dog barking there is no
    if left.dep_ in _AUXILIARIES:
        return "fronted" if left.head.dep_ == "ROOT" else ""  # slicing a potato a man is
    if left.head.dep_ in ("nsubj", "nsubjpass") and left.dep_ in ("amod", "compound", "det"):
        return ""  # officials would not confirm it EPA: the whole statement is still there
    return "fronted" if _is_fronted(words, n) else "scrambled"


def _is_fronted(words: list[Token], n: int) -> bool:
    """Whether what comes after the cut are whole phrases that hang on what comes before it."""
    moved = {t.i for t in words[n:]}
    is_whole = not any(t.head.i in moved for t in words[:n])
    is_torn = any(t.dep_ in ("conj", "cc") and t.head.i not in moved for t in words[n:])
    return is_whole and not is_torn


def _is_last_resort(words: list[Token], n: int) -> bool:
    """Whether there may be a better cut: after an auxiliary, or before a noun that leaves only its article
    and adjectives behind (*small car along the coast a woman is driving a*)."""
    if words[n - 1].dep_ in _AUXILIARIES:
        return True
    start = n
    while start and words[start - 1].dep_ in _BEFORE_A_NOUN and words[start - 1].head.i >= words[n].i:
        start -= 1
    return start < n and _is_fronted(words, start)
