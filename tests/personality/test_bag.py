"""The most frequent words, with and without stop words, against plain counting."""

from __future__ import annotations

from collections import Counter

from palaver.personality.bag import Bag

TEXTS = ["The cat saw the dog.", "Don't the dogs see it? It’s the cat!", "A cat, a cat.", ""]


def test_the_most_frequent_words() -> None:
    bag = Bag(TEXTS, 3)
    assert bag.words == ("cat", "the", "a")  # of equals by the alphabet
    assert bag.content_words == ("cat", "dog", "dogs")
    assert Bag([], 5).words == ()


def test_counts_are_those_of_plain_counting() -> None:
    bag = Bag(TEXTS, 4)
    counts = bag.count(TEXTS)
    vectors = bag.vectors(counts)
    for name, chosen in (("words", bag.words), ("words without stop words", bag.content_words)):
        dense = counts[:, vectors[name].columns].toarray()
        for row, text in zip(dense, TEXTS, strict=True):
            plain = Counter(text.lower().replace("’", "'").translate(str.maketrans("?!.,", "    ")).split())
            assert row.tolist() == [plain[word] for word in chosen]
