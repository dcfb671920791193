"""Drawing samples and adding them up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from palaver.errors import DataError
from palaver.personality import samples
from palaver.personality.samples import CountVectors, TextVectors, checked_scores, draw_rows

COUNTS = csr_matrix(np.random.default_rng(0).poisson(0.4, size=(300, 7)).astype(np.float32))


@given(st.integers(1, 60), st.data())
@settings(max_examples=50, deadline=None)
def test_a_sample_holds_members_none_twice(n_pool: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, n_pool))
    seed = data.draw(st.integers(0, 2**62))
    pool = np.arange(n_pool) * 3 + 7
    found = draw_rows(pool, 5, size, seed)
    assert found.shape == (5, size)
    assert np.isin(found, pool).all()
    assert all(len(set(row)) == size for row in found.tolist())
    assert (pool == np.arange(n_pool) * 3 + 7).all()  # the kernel shuffles a copy
    assert (found == draw_rows(pool, 5, size, seed)).all()


def test_every_member_is_as_likely_as_any_other() -> None:
    pool = np.arange(20)
    times = np.bincount(draw_rows(pool, 20_000, 5, 1).ravel(), minlength=20)
    expected = 20_000 * 5 / 20
    assert (np.abs(times - expected) < 5 * np.sqrt(expected)).all()
    first = np.bincount(draw_rows(pool, 20_000, 1, 2).ravel(), minlength=20)
    assert (np.abs(first - 1000) < 5 * np.sqrt(1000)).all()


def test_other_seeds_draw_other_samples() -> None:
    assert (draw_rows(np.arange(99), 3, 9, 1) != draw_rows(np.arange(99), 3, 9, 2)).any()


@pytest.mark.parametrize("way", ["dense", "packed", "sparse"])
@pytest.mark.parametrize("columns", [None, np.array([5, 0])])
def test_sums_are_those_of_the_rows(way: str, columns: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "_DENSE_BYTES", 1 << 20 if way == "dense" else 0)
    counts = COUNTS * np.float32(0.5) if way == "sparse" else COUNTS
    vectors = CountVectors(counts, columns=columns)
    assert (vectors._dense is not None) is (way == "dense")
    assert (vectors._packed is not None) is (way != "sparse")
    pools = [np.arange(100), np.arange(100, 300)]
    found = vectors.of(pools, 4, 30, [11, 12])
    whole = counts.toarray() if columns is None else counts.toarray()[:, columns]
    expected = [
        whole[row].sum(axis=0) for pool, seed in zip(pools, (11, 12), strict=True)
        for row in draw_rows(pool, 4, 30, seed)
    ]  # fmt: skip
    assert found.tolist() == np.array(expected).tolist()


def test_a_part_of_the_utterances() -> None:
    rows = np.arange(200, 300)
    part = CountVectors(COUNTS).take(rows).of([np.arange(100)], 2, 10, [5])
    assert (part == CountVectors(COUNTS).of([rows], 2, 10, [5])).all()
    texts = TextVectors(list("abcdef"), _lengths).take(np.array([4, 2]))
    assert texts.texts == ["e", "c"]


def _lengths(texts: Sequence[str]) -> Any:
    return [[len(text), text.count("\n"), 3, 4, 5] for text in texts]


def test_whole_texts_are_the_utterances_of_a_sample() -> None:
    vectors = TextVectors(["aa", "bb", "cc", "dd"], _lengths)
    assert vectors.of([np.arange(4), np.arange(2)], 2, 2, [1, 2]).tolist() == [[5, 1, 3, 4, 5]] * 4


def test_more_than_there_are() -> None:
    with pytest.raises(ValueError, match="5 of 4"):
        draw_rows(np.arange(4), 1, 5, 0)


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([[1, 2, 3, 4]], r"\(1, 4\), expected five traits"),
        ([1, 2, 3, 4, 5], "five"),
        ([[1, 2, 3, 4, np.nan]], "1 scores"),
    ],
)
def test_scores_of_a_wrong_recogniser(scores: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        checked_scores(scores)
