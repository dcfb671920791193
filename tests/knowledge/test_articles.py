"""Articles: kept or not, cut, chosen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.knowledge.articles import article_fault, choose_articles, cut_article, is_profane
from palaver.knowledge.leads import count_spaced_words

ENOUGH = {"a": 3, "b": 2, "c": 1}


def text_of(n_words: int) -> str:
    sentence = "Nine plain words that stand here for a text."
    return " ".join([sentence] * (n_words // 9) + ["word"] * (n_words % 9))


@pytest.mark.parametrize(
    ("text", "mentions", "fault"),
    [
        (text_of(600), ENOUGH, None),
        (text_of(1000), ENOUGH, None),
        (text_of(599), ENOUGH, "fewer than 600 words"),
        (text_of(1001), ENOUGH, "more than 1,000 words"),
        (text_of(700), {"a": 9, "b": 1}, "mentions fewer than 3 of the entities"),
        (text_of(700) + " Oh, Shit!", ENOUGH, "profane"),
        (" ".join(["word"] * 700), ENOUGH, "fewer than 4 sentences to cut it into sections"),
    ],
)
def test_what_is_kept(text: str, mentions: dict[str, int], fault: str | None) -> None:
    assert article_fault(text, mentions) == fault


def test_profane_words_are_whole_words() -> None:
    assert is_profane("What the FUCKING hell")
    assert not is_profane("Scunthorpe has a shiitake and a cockpit; the dam was damned.")


@given(
    st.lists(st.integers(1, 30), min_size=4, max_size=40),
    st.sets(st.integers(0, 38)),
)
@settings(max_examples=150, deadline=None)
def test_parts_are_similar_and_whole(sizes: list[int], ends: set[int]) -> None:
    sentences = [" ".join([f"W{n}", *["word"] * (size - 1)]) + "." for n, size in enumerate(sizes)]
    text = "".join(s + ("\n\n" if n in ends else " ") for n, s in enumerate(sentences))
    parts = cut_article(text)
    assert len(parts) == 4
    assert all(parts)
    assert " ".join(parts).split() == text.split()  # nothing lost, nothing moved
    for part in parts:
        assert part.startswith("W")
        assert part.endswith(".")
        if len(sizes) >= 12 and max(sizes) * 4 <= sum(sizes):
            assert abs(count_spaced_words(part) - sum(sizes) / 4) <= max(sizes)


def test_too_few_sentences_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="2 sentences cannot be cut into 4 parts"):
        cut_article("One. Two.")


def test_paragraphs_stay() -> None:
    text = "One is here.\n\nTwo is here. Three is here.\n\nFour is here. Five is here."
    assert cut_article(text, 2) == (
        "One is here.\n\nTwo is here.",
        "Three is here.\n\nFour is here. Five is here.",
    )


def test_articles_are_chosen_for_the_topics_that_lack_them() -> None:
    topics = [["x", "x", "x"]] * 5 + [["y", "y", "x"], ["y", "y", "y"]]
    assert choose_articles(topics, {"x": 1, "y": 1}, 2) == [0, 5]
    assert choose_articles(topics, {"x": 9, "y": 1}, 3) == [0, 1, 5]
    assert choose_articles(topics, {"x": 1, "y": 1}, 9) == list(range(7))


def test_the_choice_is_better_than_the_first_ones() -> None:
    topics = [["x", "x", "x"]] * 90 + [["y", "y", "z"]] * 10
    chosen = choose_articles(topics, {"x": 10, "y": 10, "z": 10}, 20)
    slots = [topic for place in chosen for topic in topics[place]]
    assert {topic: slots.count(topic) for topic in "xyz"} == {"x": 30, "y": 20, "z": 10}
