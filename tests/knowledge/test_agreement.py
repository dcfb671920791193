"""Agreement with the oracle, against counting by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import DataError, UserError
from palaver.knowledge.agreement import _measures, agreement
from palaver.knowledge.candidates import candidates, reading_sentences
from palaver.knowledge.selector import Group, Selector, make_selector
from palaver.schema import Dialogue

pytest.importorskip("sklearn")


def by_hand(talks: list[Dialogue], selector: Selector, oracle: Selector) -> dict[str, float]:
    rows = []
    for talk in talks:
        texts = [turn.text for turn in talk.turns]
        for i in range(1, len(texts)):
            own = candidates(talk, i)
            if len(own) < 2:
                continue
            left, ranking = list(own), []
            truth = oracle.select(texts[:i], own, texts[i])
            assert truth is not None
            if truth.score == 0:
                continue
            while left:  # the selector's whole ranking, one choice after the other
                chosen = selector.select(texts[:i], left)
                assert chosen is not None
                ranking.append(left.pop(chosen.index))
            rank = ranking.index(truth.sentence) + 1
            first = oracle.select(texts[:i], [ranking[0]], texts[i])
            assert first is not None
            rows.append((rank == 1, rank <= 5, 1 / rank, first.score, truth.score, 1 / len(own)))
    table = np.array(rows, dtype=float)
    top1, top5, mrr, cosine, best, chance = table.mean(axis=0)
    return {
        "top1": top1,
        "top5": top5,
        "mrr": mrr,
        "share": cosine / best,
        "chance": chance,
        "n": len(table),
    }


@pytest.mark.parametrize("name", ["tfidf", "bm25"])
def test_against_counting_by_hand(name: str, talks: list[Dialogue]) -> None:
    sentences = reading_sentences(talks)
    selector, oracle = make_selector(name, sentences), make_selector("oracle", sentences)
    told: list[int] = []
    (found,) = agreement(iter(talks), [selector], oracle, n_replicates=50, tell=told.append)
    expected = by_hand(talks, selector, oracle)
    assert found.selector == name
    assert found.top1.value == pytest.approx(expected["top1"])
    assert found.top5.value == pytest.approx(expected["top5"])
    assert found.reciprocal_rank.value == pytest.approx(expected["mrr"])
    assert found.cosine_share.value == pytest.approx(expected["share"])
    assert found.chance_top1 == pytest.approx(expected["chance"])
    assert (found.n_turns, found.n_dialogues) == (expected["n"], 9)
    assert found.skipped == {
        "no turn before it": 10,
        "fewer than two sentences to choose from": 5,
        "nothing in common": 9,
    }
    assert found.n_turns + sum(found.skipped.values()) == sum(len(talk.turns) for talk in talks)
    assert sum(told) == 10


def test_the_oracle_agrees_with_itself(talks: list[Dialogue]) -> None:
    oracle = make_selector("oracle", reading_sentences(talks))
    (found,) = agreement(talks, [oracle], oracle, n_replicates=20)
    for estimate in (found.top1, found.top5, found.reciprocal_rank, found.cosine_share):
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx((1, 1, 1))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 7), st.integers(0, 2**32))
def test_ranks_with_ties(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    oracle, own = rng.integers(0, 4, (3, n)).astype(float), rng.integers(0, 3, (3, n)).astype(float)
    total = np.zeros(5)
    for truth, scores in zip(oracle, own, strict=True):
        order = sorted(range(n), key=lambda i: (-scores[i], i))
        target = int(truth.argmax())
        rank = order.index(target) + 1
        total += (rank == 1, rank <= 5, 1 / rank, truth[order[0]], truth[target])
    np.testing.assert_allclose(_measures(oracle, own), total)


def test_the_same_seed_gives_the_same_interval(talks: list[Dialogue]) -> None:
    sentences = reading_sentences(talks)
    both = [make_selector(name, sentences) for name in ("tfidf", "bm25")]
    oracle = make_selector("oracle", sentences)
    once, again = (agreement(talks, both, oracle, seed=3, n_replicates=50) for _ in range(2))
    assert once == again
    assert [one.selector for one in once] == ["tfidf", "bm25"]
    assert once[0].as_dict()["top1"].keys() == {"value", "low", "high"}


def test_dialogues_without_knowledge_cannot_be_compared(talks: list[Dialogue]) -> None:
    oracle = make_selector("oracle", ["a b"])
    with pytest.raises(DataError) as caught:
        agreement(talks[-1:], [oracle], oracle)
    assert caught.value.problems == (
        "1 turns: no turn before it",
        "5 turns: fewer than two sentences to choose from",
    )


def test_a_selector_that_chooses_nothing(talks: list[Dialogue]) -> None:
    class Silent(Selector):
        name = "silent"

        def scores(self, groups: Sequence[Group]) -> list[Any]:
            return [None] * len(groups)

    with pytest.raises(UserError, match="silent"):
        agreement(talks, [Silent()], make_selector("oracle", reading_sentences(talks)))


def test_on_topical_chat(shared_data: Path) -> None:
    from itertools import islice

    from palaver.corpora.catalogue import read_corpus

    talks = list(islice(read_corpus("topical-chat", root=shared_data, split="valid_rare"), 60))
    sentences = reading_sentences(talks)
    selectors = [make_selector(name, sentences) for name in ("tfidf", "bm25")]
    for found in agreement(talks, selectors, make_selector("oracle", sentences), n_replicates=100):
        assert found.chance_top1 < 0.05 < found.top1.low < found.top1.high < 0.3
        assert found.top1.value < found.reciprocal_rank.value < 0.5
        assert 0.1 < found.cosine_share.value < 0.6
