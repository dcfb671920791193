"""Each way of choosing a sentence, alone and for a whole corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import UserError
from palaver.knowledge.candidates import candidates, reading_sentences
from palaver.knowledge.corpus import Tally, select_for
from palaver.knowledge.selector import (
    SELECTORS,
    FunctionSelector,
    Group,
    Query,
    Selection,
    Selector,
    best,
    make_selector,
)
from palaver.schema import Dialogue, Turn
from palaver.text.tfidf import Tfidf

pytest.importorskip("sklearn")
HISTORY = ["Do you like music?", "I play the piano every day."]


def encode(texts: list[str]) -> Any:
    """A sentence encoder for tests: how often each letter occurs."""
    return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


def options(name: str) -> dict[str, Any]:
    return {"encode": encode} if name == "encoder" else {}


def test_the_oracle_is_the_largest_cosine_with_the_response(talk: Dialogue) -> None:
    sentences = reading_sentences([talk])
    oracle = make_selector("oracle", sentences)
    weights = Tfidf(sentences)
    for i, turn in enumerate(talk.turns):
        own = candidates(talk, i)
        found = oracle.select([], own, turn.text)
        assert found is not None
        cosines = (weights.queries([turn.text]) @ weights.documents(own).T).toarray()[0]
        assert found.index == int(np.argmax(cosines))
        assert found.score == pytest.approx(cosines.max(), abs=1e-12)
        assert found.sentence == own[found.index]
    chosen = oracle.select(HISTORY, candidates(talk, 0), "Blue blood, three hearts")
    assert chosen is not None
    assert chosen.sentence == "It has three hearts and blue blood."


def test_the_oracle_needs_the_response(talk: Dialogue) -> None:
    with pytest.raises(UserError, match="true response"):
        make_selector("oracle", ["a b"]).select(HISTORY, ["a", "b"])


@pytest.mark.parametrize("name", ["tfidf", "bm25"])
def test_words_of_the_history_choose(name: str, talk: Dialogue) -> None:
    selector = make_selector(name, reading_sentences([talk]))
    found = selector.select(HISTORY, candidates(talk, 1), response="Genoa is a port.")
    assert found is not None
    assert found.sentence == "A piano has eighty-eight keys."


def test_only_the_last_turns_count(talk: Dialogue) -> None:
    sentences = reading_sentences([talk])
    history = ["Genoa, Genoa, Genoa!", "piano?"]
    for name in ("tfidf", "bm25", "encoder"):
        one = make_selector(name, sentences, last_turns=1, **options(name))
        alone = one.select(history[1:], sentences)
        assert one.select(history, sentences) == alone
        everything = make_selector(name, sentences, last_turns=None, **options(name))
        assert everything.select(history, sentences) != alone
        with pytest.raises(UserError, match="last_turns"):
            make_selector(name, sentences, last_turns=0, **options(name))


def test_ties_and_nothing_in_common() -> None:
    selector = make_selector("tfidf", ["red fish", "blue bird", "old ship"])
    tied = selector.select(["fish and bird"], ["old ship", "red fish", "blue bird"])
    assert tied is not None
    assert (tied.index, tied.n_tied) == (1, 1)
    assert selector.select(["xyzzy"], ["old ship", "red fish"]) == Selection(0, "old ship", 0.0, 1)
    assert selector.select([], ["old ship"]) == Selection(0, "old ship", 0.0, 0)
    assert selector.select(["fish"], []) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_best_is_the_first_maximum(scores: list[int]) -> None:
    found = best(np.array(scores, dtype=float), [f"s{i}" for i in range(len(scores))])
    assert found.index == scores.index(max(scores))
    assert found.n_tied == scores.count(max(scores)) - 1


def test_sums_in_another_order_are_no_reason() -> None:
    assert best(np.array([0.6, 0.1 + 0.2 + 0.3]), ["a", "b"]).index == 0
    assert best(np.array([0.1 + 0.2 + 0.3, 0.6]), ["a", "b"]).index == 0


def test_none_chooses_nothing(talk: Dialogue) -> None:
    selector = make_selector("none")
    assert selector.select(HISTORY, ["a"], "b") is None
    tally = Tally()
    ((_, chosen),) = select_for([talk], selector, tally=tally)
    assert chosen == [None] * 6
    assert (tally.n_turns, tally.n_selected, tally.n_without_candidates) == (6, 0, 0)


@pytest.mark.parametrize("name", ["oracle", "tfidf", "bm25", "encoder"])
@pytest.mark.parametrize("block", [1, 3, 256])
def test_a_corpus_at_once_equals_turn_by_turn(name: str, block: int, talks: list[Dialogue]) -> None:
    selector = make_selector(name, reading_sentences(talks), **options(name))
    tally = Tally()
    found = list(select_for(iter(talks), selector, tally=tally, block=block))
    assert [dialogue for dialogue, _ in found] == talks
    for dialogue, chosen in found:
        texts = [turn.text for turn in dialogue.turns]
        alone = [selector.select(texts[:i], candidates(dialogue, i), texts[i]) for i in range(len(texts))]
        assert [s and (s.index, s.sentence, s.n_tied) for s in chosen] == [
            s and (s.index, s.sentence, s.n_tied) for s in alone
        ]
        np.testing.assert_allclose([s.score for s in chosen if s], [s.score for s in alone if s], atol=1e-6)
    assert (tally.n_turns, tally.n_selected, tally.n_without_candidates) == (60, 54, 6)
    if name == "oracle":
        assert tally.n_zero == 9  # "zzz"
    if name in ("tfidf", "bm25"):
        assert tally.n_zero >= 9  # the first turns


def test_it_streams(talk: Dialogue) -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield talk

    stream = select_for(endless(), make_selector("bm25", reading_sentences([talk])), block=4)
    for _ in range(5):
        next(stream)
    assert taken == 8


def test_an_own_selector_needs_only_scores() -> None:
    class Longest(Selector):
        name = "longest"

        def scores(self, groups: Sequence[Group]) -> list[Any]:
            return [np.array([[float(len(c)) for c in g.candidates]] * len(g.queries)) for g in groups]

    assert Longest().select(["x"], ["aa", "a", "aaaa"]) == Selection(2, "aaaa", 4.0, 0)
    assert Longest().scores([Group([Query(["x"])], ["a"])])[0].shape == (1, 1)


def test_unknown_selector() -> None:
    with pytest.raises(UserError, match="did you mean 'oracle'"):
        make_selector("orcale")
    assert list(SELECTORS) == ["oracle", "tfidf", "bm25", "encoder", "trained", "trained-encoder", "none"]


def test_empty_dialogues_and_speakers_without_turns() -> None:
    empty = Dialogue(id="x", turns=(), speakers=("a", "b"))
    quiet = Dialogue(id="y", turns=(Turn(speaker="a", text=""),))
    found = list(select_for([empty, quiet], make_selector("tfidf", ["a b"])))
    assert [chosen for _, chosen in found] == [[], [None]]


def by_length(history: list[str], sentences: list[str]) -> list[float]:
    return [len(sentence) for sentence in sentences]


def test_a_function_scores_the_candidates() -> None:
    selector = make_selector("tests.knowledge.test_selector:by_length")
    found = selector.select(HISTORY, ["short", "the longest of all", "long"])
    assert found is not None
    assert (found.sentence, found.score) == ("the longest of all", 18.0)


@pytest.mark.parametrize("returned", [[1.0], "no", None, [float("nan"), 1.0]])
def test_a_function_that_returns_something_else(returned: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FunctionSelector, "function", staticmethod(lambda h, c: returned), raising=False)
    monkeypatch.setattr(FunctionSelector, "name", "mine", raising=False)
    with pytest.raises(UserError, match="mine should return a number for each of the 2 candidates"):
        FunctionSelector().select(HISTORY, ["a", "b"])
