"""Unknown words cost their spelling, so that word vocabularies do not look better than they are."""

from __future__ import annotations

import math

import pytest

from palaver.text.spelling import Spelling
from palaver.text.vocabulary import UNK, Vocabulary

TEXTS = ["a bee sees a bad bead", "a cab fades", "bad bees fed"] * 3


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.train(TEXTS, kind="word", size=12)


def test_the_costs_are_those_of_a_distribution(vocabulary: Vocabulary) -> None:
    """Letters, the end, and one share for everything else sum to one."""
    spelling = Spelling(vocabulary)
    letters = {letter for token in vocabulary.tokens[5:] for letter in token}
    end = spelling.word("")
    shares = [math.exp(end - spelling.word(letter)) for letter in letters]
    other = math.exp(end - spelling.word("é")) * 0x110000
    assert sum(shares) + math.exp(-end) + other == pytest.approx(1)


def test_a_word_costs_its_letters_and_one_end(vocabulary: Vocabulary) -> None:
    spelling = Spelling(vocabulary)
    end = spelling.word("")
    assert spelling.word("bad") == pytest.approx(end + sum(spelling.word(letter) - end for letter in "bad"))
    assert spelling.word("é") > spelling.word("e")


def test_only_unknown_words_within_the_tokens_count(vocabulary: Vocabulary) -> None:
    spelling = Spelling(vocabulary)
    text = "a xylophone sees a zebra"
    ids = vocabulary.encode(text)
    unknown = [word for word, i in zip(text.split(), ids, strict=True) if i == UNK]
    assert {"xylophone", "zebra"} <= set(unknown)
    assert spelling.unknown(text, ids) == pytest.approx(sum(map(spelling.word, unknown)))
    assert spelling.unknown(text, ids[:2]) == pytest.approx(spelling.word("xylophone"))
    assert spelling.unknown("a a a", vocabulary.encode("a a a")) == 0


def test_pieces_of_words_need_no_spelling() -> None:
    vocabulary = Vocabulary.train(TEXTS, kind="bpe", size=270)
    text = "a xylophone"
    assert Spelling(vocabulary).unknown(text, vocabulary.encode(text)) == 0
