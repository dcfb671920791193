"""The trained selector with a sentence encoder: features of meaning beside those of words.

To the features of `palaver.knowledge.features` come cosines of MiniLM vectors between the turns before a
reply and the candidates. It needs the extra `models`; its weights were learnt as those of `trained` were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.knowledge.encoder import UnitVectors
from palaver.knowledge.features import FADING, FEATURES, beside
from palaver.knowledge.ranker import Ranker, TrainedSelector, shipped_ranker
from palaver.knowledge.selector import Group

Floats = NDArray[np.float32]

COSINES = ("meaning_1", "meaning_2", "meaning_3", "meaning_4", "meaning_own", "meaning_other")
"""Cosine with the last turn, the one before it …; the largest with earlier turns of each speaker."""
SUMS = ("meaning_fading", "told_own", "told_other")
"""A fading sum; and by how much the turns of each speaker are nearer than a paraphrase must be."""
IN_SET = ("below_1", "below_2", "standard_1", "standard_2", "standard_fading", "rank_1", "rank_2")
"""Cosines beside those of the other candidates: the best, mean and deviation, the share that is ahead."""
LIKE = ("like_1", "like_2", "like_others", "like_nearest")
"""How like the candidate is to the one nearest to the last turn (and to the one before), to all others in
the mean, and to the nearest of them."""
SURROUNDINGS = ("near_1", "near_2", "near_fading", "alike_1", "alike_fading")
"""The cosines of candidates beside this one, and of those like it."""
OF_TURN = ("best_1", "best_2")
"""The best candidate's cosine: the same for all candidates."""
MEANINGS = (*COSINES, *SUMS, *IN_SET, *LIKE, *SURROUNDINGS, *OF_TURN)
ALL_FEATURES = (*FEATURES, *MEANINGS)
WEIGHTS = "selector_encoder.npz"

_TOLD = 0.4
"""A turn with a larger cosine than this is taken to have told some of the sentence."""


class Meanings:
    """A group's candidates beside the turns before its queries, by their vectors of length 1."""

    def __init__(self, heard: Floats, candidates: Floats) -> None:
        self._cosines = heard @ candidates.T  # (turns, candidates)
        self._alike = candidates @ candidates.T
        np.fill_diagonal(self._alike, 0)
        self._likeness = np.maximum(self._alike, 0) ** 4

    def of_query(self, turns: list[int]) -> Floats:
        """The features MEANINGS, given the rows of the turns before a reply. (candidates, MEANINGS)"""
        n = len(self._alike)
        history = self._cosines[turns]  # (turns, candidates)
        nothing = np.zeros(n, np.float32)

        def last(j: int) -> Floats:
            return history[-j] if len(turns) >= j else nothing

        def largest(first: int) -> Floats:
            return history[-first::-2].max(axis=0) if len(turns) >= first else nothing

        def like_best(j: int) -> Floats:
            return self._alike[history[-j].argmax()] if len(turns) >= j else nothing

        one, two = last(1), last(2)
        fading = FADING ** np.arange(len(turns)) @ history[::-1]
        told = np.maximum(history - _TOLD, 0)
        columns: list[Any] = [one, two, last(3), last(4), largest(4), largest(3)]
        columns += [fading, told[-2::-2].sum(axis=0), told[-1::-2].sum(axis=0)]
        columns += [one - one.max(), two - two.max(), _standard(one), _standard(two), _standard(fading)]
        columns += [_rank(one), _rank(two)]
        columns += [like_best(1), like_best(2), self._alike.mean(axis=0), self._alike.max(axis=0)]
        columns += [beside(one), beside(two), beside(fading), one @ self._likeness, fading @ self._likeness]
        columns += [np.full(n, one.max()), np.full(n, two.max())]
        return np.stack(columns, axis=1).astype(np.float32)


def _standard(cosines: Floats) -> Floats:
    units: Floats = (cosines - cosines.mean()) / (cosines.std() + 1e-6)
    return units


def _rank(cosines: Floats) -> NDArray[np.float64]:
    """The share of candidates that are ahead; of equal ones the first."""
    order = np.argsort(-cosines, kind="stable")
    ranks = np.empty(len(order))
    ranks[order] = np.arange(len(order))
    return ranks / len(order)


class TrainedEncoderSelector(TrainedSelector):
    """`trained` that also compares by meaning. `device` is where MiniLM runs."""

    name = "trained-encoder"

    def __init__(
        self,
        sentences: Sequence[str],
        *,
        device: str = "cpu",
        vectors: UnitVectors | None = None,
        ranker: Ranker | None = None,
    ) -> None:
        self._vectors = vectors or UnitVectors(device=device, half=True)
        super().__init__(sentences, ranker=ranker or shipped_ranker(WEIGHTS, len(ALL_FEATURES)))

    def features(self, groups: Sequence[Group]) -> Iterator[list[Floats]]:
        return with_meanings(super().features(groups), groups, self._vectors)


def with_meanings(
    tables: Iterable[list[Floats]], groups: Sequence[Group], vectors: UnitVectors
) -> Iterator[list[Floats]]:
    """The `tables` of words of each group, (candidates, FEATURES) for each query, with MEANINGS beside."""
    said = [text for group in groups for query in group.queries for text in query.history]
    texts = list(dict.fromkeys([*said, *(sentence for group in groups for sentence in group.candidates)]))
    rows = vectors.once(texts) if texts else np.zeros((0, 1), np.float32)
    place = {text: i for i, text in enumerate(texts)}
    for group, of_words in zip(groups, tables, strict=True):
        heard = list(dict.fromkeys(text for query in group.queries for text in query.history))
        turn = {text: i for i, text in enumerate(heard)}
        meanings = Meanings(rows[[place[t] for t in heard]], rows[[place[s] for s in group.candidates]])
        yield [
            np.concatenate([table, meanings.of_query([turn[text] for text in query.history])], axis=1)
            for query, table in zip(group.queries, of_words, strict=True)
        ]
