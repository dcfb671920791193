"""Knowledge for grounded conversation: what a speaker had read, and which sentence a turn should use."""

from palaver.knowledge.agreement import Agreement, Estimate, agreement
from palaver.knowledge.candidates import (
    Candidates,
    candidates,
    candidates_of,
    reading_sentences,
    reading_set_of,
)
from palaver.knowledge.corpus import Tally, select_for
from palaver.knowledge.selector import (
    SELECTORS,
    Group,
    Query,
    Selection,
    Selector,
    make_selector,
)

__all__ = [
    "SELECTORS",
    "Agreement",
    "Candidates",
    "Estimate",
    "Group",
    "Query",
    "Selection",
    "Selector",
    "Tally",
    "agreement",
    "candidates",
    "candidates_of",
    "make_selector",
    "reading_sentences",
    "reading_set_of",
    "select_for",
]
