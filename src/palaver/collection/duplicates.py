"""Texts that nearly repeat an earlier one, by the words they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from palaver.text.words import words

FEWEST_WORDS = 5
"""A text of fewer distinct words ("I think so too!") repeats nobody."""
LEAST_SHARED = 0.8
"""Of the words of both texts together (Jaccard)."""


def find_twins(texts: Sequence[str], least_shared: float = LEAST_SHARED) -> list[int | None]:
    """For each text the first earlier one with nearly the same words, or None; case and order do not count.

    Exact, without comparing all pairs: of two texts that share so much, the rarest few words of each have one
    in common (the prefix filter of set similarity joins).
    """
    bags = [frozenset(word for word in words(text) if word[0].isalnum()) for text in texts]
    frequency = Counter(word for bag in bags for word in bag)
    places: dict[str, list[int]] = {}
    twins: list[int | None] = []
    for place, bag in enumerate(bags):
        if len(bag) < FEWEST_WORDS:
            twins.append(None)
            continue
        n_rarest = len(bag) - math.ceil(least_shared * len(bag) - 1e-9) + 1
        rarest = sorted(bag, key=lambda word: (frequency[word], word))[:n_rarest]
        candidates = sorted({earlier for word in rarest for earlier in places.get(word, ())})
        twin = next((earlier for earlier in candidates if overlap(bags[earlier], bag) >= least_shared), None)
        twins.append(twin)
        if twin is None or bags[twin] != bag:
            for word in rarest:
                places.setdefault(word, []).append(place)
    return twins


def overlap(first: frozenset[str], second: frozenset[str]) -> float:
    """Jaccard's coefficient."""
    n_shared = len(first & second)
    return n_shared / (len(first) + len(second) - n_shared)
