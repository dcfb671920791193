"""Mentions of entities, found in one pass, against a regular expression."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver.knowledge.mentions import MentionFinder, tokens


def by_regex(names: list[tuple[str, str]], text: str) -> list[str]:
    """The same by an alternation, longest name first, with word boundaries."""
    owner = {tuple(tokens(name)): entity for name, entity in names if tokens(name)}
    patterns = []
    for words in sorted(owner, key=len, reverse=True):
        pattern = ""
        for n, word in enumerate(words):
            if n:
                pattern += r"\s+" if word[0].isalnum() and words[n - 1][-1].isalnum() else r"\s*"
            pattern += re.escape(word)
        before = r"(?<!\w)" if words[0][0].isalnum() else ""
        after = r"(?!\w)" if words[-1][-1].isalnum() else ""
        patterns.append(f"{before}{pattern}{after}")
    if not patterns:
        return []
    matches = re.finditer("|".join(patterns), text.casefold())
    return [owner[tuple(tokens(match.group()))] for match in matches]


NAMES = st.text("ab .&", min_size=1, max_size=6)


@given(st.lists(NAMES, max_size=6, unique=True), st.text("abAB .&\n", max_size=60))
@example(["a b", "b a b", "a"], "A b a b a")
@example(["a.b", "b&"], "a . b&a b &")
@settings(max_examples=300, deadline=None)
def test_it_finds_what_a_regular_expression_finds(names: list[str], text: str) -> None:
    pairs = [(name, name) for name in {tuple(tokens(name)): name for name in names}.values()]
    assert MentionFinder(pairs).find(text) == by_regex(pairs, text)


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("New York, NEW YORK\nand New  York.", ["New York"] * 3),
        ("New Yorkers renew York", []),
        ("The New York Times is sold in New York", ["New York Times", "New York"]),
        ("the big apple's own", ["New York"]),
        ("New, York", []),
        ("AC/DC and ac / dc, not ACDC", ["AC/DC", "AC/DC"]),
        ("O’Neil and O'Neil", ["O'Neil", "O'Neil"]),
        ("Beyonce\u0301 und BEYONCÉ", ["Beyoncé", "Beyoncé"]),
        ("", []),
    ],
)
def test_word_bounds_and_aliases(text: str, entities: list[str]) -> None:
    names = ["New York", "New York Times", "AC/DC", "O'Neil", "Beyoncé"]
    pairs = [(name, name) for name in names] + [("Big Apple", "New York"), ("  ", "nothing")]
    assert MentionFinder(pairs).find(text) == entities


def test_counts_stand_in_order_of_frequency_then_of_reading() -> None:
    finder = MentionFinder([(name, name) for name in ("tea", "salt", "owl")])
    counts = finder.count("An owl. Salt! Tea and salt, salt and tea, owl, salt")
    assert list(counts.items()) == [("salt", 4), ("owl", 2), ("tea", 2)]
    assert Counter(counts) == Counter(finder.find("An owl. Salt! Tea and salt, salt and tea, owl, salt"))
