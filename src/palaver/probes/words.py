"""Lists of words, written as running text."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def word_map(text: str) -> dict[str, tuple[str, ...]]:
    """`look: at after | laugh: at` as a mapping."""
    entries = (entry.partition(":") for line in text.strip().splitlines() for entry in line.split("|"))
    return {key.strip(): tuple(words.split()) for key, _, words in entries}
