"""What models read of a dialogue: the same in training and in generation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.models.turns import encode_knowledge, encode_turns, first_turn_seen, join_turns
from palaver.text.vocabulary import SEP, Vocabulary

TEXTS = ["Hello there, how are you?", "I'm fine: thanks!", "The moon is up; what about pizza & tea?"] * 3


@pytest.fixture(scope="module", params=["word", "bpe"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return Vocabulary.train(TEXTS, kind=request.param, size=300)


turns_of_ids = st.lists(st.lists(st.integers(5, 9), max_size=6), max_size=8)


@given(turns_of_ids, st.integers(1, 12))
def test_a_history_is_the_end_of_all_turns(turns: list[list[int]], longest: int) -> None:
    whole = [token for turn in turns for token in [*turn, SEP]][:-1]
    assert join_turns(turns, longest) == (whole[-longest:], len(whole) > longest)


def test_only_the_last_turns_are_seen() -> None:
    assert [first_turn_seen(n, 2) for n in range(5)] == [0, 0, 0, 1, 2]
    assert first_turn_seen(5, 0) == 0


@pytest.mark.parametrize(
    "text", ["hello there " * 100_000, "x" * 100_000, "a b " + "x" * 100_000, "x" * 900 + " a b"]
)
def test_very_long_turns_end_as_if_read_whole(vocabulary: Vocabulary, text: str) -> None:
    (tokens,) = encode_turns(vocabulary, [text], 20)
    whole = vocabulary.encode(text.strip())
    assert join_turns([tokens], 20) == join_turns([whole], 20)
    assert len(tokens) < 2000 or len(text.split()) < 4  # only the end of many words is read


def test_white_space_around_a_text_is_not_read(vocabulary: Vocabulary) -> None:
    texts = [" Hello there \n", "\tthe moon", ""]
    plain = [text.strip() for text in texts]
    assert encode_turns(vocabulary, texts) == encode_turns(vocabulary, plain, 50)
    assert encode_turns(vocabulary, texts) == vocabulary.encode_batch(plain)
    assert encode_knowledge(vocabulary, texts, 50) == encode_knowledge(vocabulary, plain, 50)


def test_knowledge_keeps_its_beginning(vocabulary: Vocabulary) -> None:
    ids = vocabulary.encode("the moon is up")
    assert encode_knowledge(vocabulary, ["the moon is up"], 2) == [(ids[:2], True)]
    assert encode_knowledge(vocabulary, ["the moon is up"], len(ids)) == [(ids, False)]
