"""What the trained selector looks at: numbers about each candidate, given the turns before a reply.

Everything follows from the history and the candidates; the reply is not seen. People are taken to speak in
turn: the last turn, and every second one before it, is the other's, the rest is one's own.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.knowledge.selector import Group, first_best
from palaver.text.tfidf import Bm25, Tfidf, terms

Floats = NDArray[np.float32]

COSINES = ("cosine_1", "cosine_2", "cosine_3", "cosine_4", "cosine_own", "cosine_other", "cosine_fading")
"""TF-IDF cosine with the last turn, the one before it …; the largest with earlier turns; a fading sum."""
OVERLAPS = ("bm25_1", "bm25_2", "rare_1", "rare_2")
"""BM25 and the idf of shared rare words, with the last turn and the one before it."""
USES = ("used_own", "used_other", "times_own", "times_other")
"""Whether a turn before was nearest to this candidate: how near, and how often."""
DISTANCES = ("next_1", "previous_1", "distance_1", "near_1", "next_2", "previous_2", "distance_2", "near_2")
"""Places in reading order from the candidate that is nearest to the last turn, and to the one before."""
SURROUNDINGS = ("around_1", "around_2", "around_fading", "similar_1", "similar_2", "similar_fading")
"""The cosines of candidates beside this one, and of those like it."""
RANKS = ("share_1", "share_2", "best_1", "best_2")
"""The cosine as a share of the best candidate's."""
OWN = ("place", "log_place", "is_first", "log_words", "mean_idf", "max_idf", "common_words", "log_idf")
"""Of the candidate alone."""
OF_TURN = (
    "turn", "log_words_1", "question_1", "asks_1", "top_1", "top_2", "log_candidates",
    "log_words_2", "question_2",
)  # fmt: skip
"""Of the turn alone: the same for all candidates."""
LEARNT = ("popularity", "term_odds", "typical", "association")
"""From conversations: how often the sentence, and sentences with its words, were used; how like replies in
general it is; and how like replies to such a turn."""
FEATURES = (*COSINES, *OVERLAPS, *USES, *DISTANCES, *SURROUNDINGS, *RANKS, *OWN, *OF_TURN, *LEARNT)

_RARE_IDF = 4.5
_N_COMMON = 100
FADING = 0.7
"""What a turn counts of the one after it, in a fading sum."""
_BESIDE = np.array([0.25, 0.5, 1, 0, 1, 0.5, 0.25])


@dataclass(frozen=True)
class Priors:
    """What was counted in the conversations the selector was trained on."""

    sentences: NDArray[np.uint32]
    """Hashes of sentences, ascending."""
    popularity: Floats
    """ln (times used / times expected by chance) of each. (sentences,)"""
    terms: tuple[str, ...]
    term_odds: Floats
    """The same of the sentences that hold a term. (terms,)"""
    mean_reply: Floats
    """The mean TF-IDF vector of replies. (terms,)"""
    said: Floats
    """Terms of a turn … (terms, R)"""
    replied: Floats
    """… and of its reply, such that their products say what goes with what. (terms, R)"""

    def popularity_of(self, sentences: Sequence[str]) -> Floats:
        """Zero for sentences that are not known. (sentences,)"""
        if not len(self.sentences):
            return np.zeros(len(sentences), np.float32)
        hashes = np.array([hash_of(sentence) for sentence in sentences], np.uint32)
        places = np.minimum(np.searchsorted(self.sentences, hashes), len(self.sentences) - 1)
        return np.where(self.sentences[places] == hashes, self.popularity[places], 0).astype(np.float32)


def hash_of(sentence: str) -> int:
    """A number that is the same everywhere."""
    return zlib.crc32(sentence.encode())


class FeatureTable:
    """Makes the features of groups. Term weights are fitted on `sentences`."""

    def __init__(self, sentences: Sequence[str], priors: Priors) -> None:
        self.tfidf = Tfidf(sentences)
        self._bm25 = Bm25(sentences)
        self._idf = self.tfidf.idf
        self._is_common = self._idf < np.sort(self._idf)[min(_N_COMMON, len(self._idf) - 1)]
        self._terms = self.tfidf.terms
        self._use(priors)

    def with_priors(self, priors: Priors) -> FeatureTable:
        """The same term weights, other priors."""
        other = copy(self)
        other._use(priors)
        return other

    def _use(self, priors: Priors) -> None:
        self._priors = priors
        place = {term: i for i, term in enumerate(priors.terms)}
        known = [(column, place[term]) for column, term in enumerate(self._terms) if term in place]
        columns = np.array([column for column, _ in known], np.intp)
        places = np.array([place for _, place in known], np.intp)
        self._columns = columns
        self._term_odds, self._mean_reply = priors.term_odds[places], priors.mean_reply[places]
        self._said, self._replied = priors.said[places], priors.replied[places]

    def of_groups(self, groups: Sequence[Group]) -> Iterator[list[Floats]]:
        """For each group, and each of its queries, a table (candidates, FEATURES)."""
        sentences: dict[str, int] = {}
        texts: dict[str, int] = {}
        for group in groups:
            for sentence in group.candidates:
                sentences.setdefault(sentence, len(sentences))
            for query in group.queries:
                for text in query.history:
                    texts.setdefault(text, len(texts))
        candidates = _Candidates(self, list(sentences))
        turns = _Turns(self, list(texts))
        for group in groups:
            heard = list(dict.fromkeys(texts[text] for query in group.queries for text in query.history))
            place = {row: i for i, row in enumerate(heard)}
            said = _Comparison(turns, heard, candidates, [sentences[s] for s in group.candidates])
            yield [
                self._of_query([place[texts[text]] for text in query.history], said)
                for query in group.queries
            ]

    def _of_query(self, turns: list[int], said: _Comparison) -> Floats:
        n = len(said.own)
        nothing = np.zeros(n, np.float32)
        history = said.cosines[turns]  # (turns, candidates)
        best, top = said.best[turns], said.top[turns]

        def last(table: Any, j: int) -> Any:
            return table[turns[-j]] if len(turns) >= j else np.zeros_like(nothing)

        def largest(first: int) -> Floats:
            return history[-first::-2].max(axis=0) if len(turns) >= first else nothing

        fading: Any = nothing if not turns else FADING ** np.arange(len(turns)) @ history[::-1]
        one, two = last(said.cosines, 1), last(said.cosines, 2)
        columns: list[Any] = [
            one,
            two,
            last(said.cosines, 3),
            last(said.cosines, 4),
            largest(4),
            largest(3),
            fading,
        ]
        columns += [last(said.bm25, 1), last(said.bm25, 2), last(said.rare, 1), last(said.rare, 2)]
        columns += _uses(best[-2::-2], top[-2::-2], best[-1::-2], top[-1::-2], n)
        columns += _distances(best, 1, n) + _distances(best, 2, n)
        columns += [beside(one), beside(two), beside(fading)]
        columns += [one @ said.alike, two @ said.alike, fading @ said.alike]
        columns += [part / max(part.max(), 1e-9) for part in (one, two)]
        columns += [part >= part.max() - 1e-9 for part in (one, two)]
        columns += [*said.own.T]
        of_turn = [
            min(len(turns), 30) / 10,
            last(said.log_words, 1),
            last(said.questions, 1),
            last(said.asks, 1),
        ]
        of_turn += [last(said.top, 1), last(said.top, 2), np.log(max(n, 1))]
        of_turn += [last(said.log_words, 2), last(said.questions, 2)]
        columns += [np.broadcast_to(np.asarray(value, np.float32), n) for value in of_turn]
        columns += [*said.learnt.T, last(said.association, 1)]
        return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


class _Candidates:
    """Distinct sentences, weighed once; a row each."""

    def __init__(self, maker: FeatureTable, sentences: list[str]) -> None:
        self.tfidf = maker.tfidf.documents(sentences) if sentences else _no_rows(maker)
        self.bm25 = maker._bm25.documents(sentences) if sentences else _no_rows(maker)
        self.holds = self.tfidf.copy()
        self.holds.data = np.ones_like(self.holds.data)
        n_terms = np.maximum(np.diff(self.holds.indptr), 1)
        total = self.holds @ maker._idf
        rarest = self.holds.multiply(maker._idf).max(axis=1).toarray().ravel()
        common = self.holds @ maker._is_common.astype(np.float64)
        n_words = [len(terms(sentence)) for sentence in sentences]
        own = [np.log1p(n_words), total / n_terms, rarest, common / n_terms, np.log1p(total)]
        self.own = np.column_stack(own).astype(np.float32)
        part = self.tfidf[:, maker._columns]
        self.learnt = np.column_stack(
            [
                maker._priors.popularity_of(sentences),
                part.multiply(part) @ maker._term_odds,
                part @ maker._mean_reply,
            ]
        )
        self.replied = part @ maker._replied  # (sentences, R)


class _Turns:
    """Distinct turns of histories, weighed once; a row each."""

    def __init__(self, maker: FeatureTable, texts: list[str]) -> None:
        self.tfidf = maker.tfidf.documents(texts) if texts else _no_rows(maker)
        self.counts = maker._bm25.queries(texts) if texts else _no_rows(maker)
        self.rare = self.tfidf.copy()
        idf = maker._idf[self.rare.indices]
        self.rare.data = np.where(idf > _RARE_IDF, idf, 0)
        self.said = self.tfidf[:, maker._columns] @ maker._said  # (turns, R)
        self.log_words = np.log1p([len(terms(text)) for text in texts])
        self.questions = np.array(["?" in text for text in texts], np.float32)
        self.asks = np.array([text.rstrip().endswith("?") for text in texts], np.float32)


class _Comparison:
    """A group's candidates beside the turns before its queries: tables (turns, candidates)."""

    def __init__(self, turns: _Turns, heard: list[int], candidates: _Candidates, own: list[int]) -> None:
        vectors = candidates.tfidf[own]
        self.cosines = _product(turns.tfidf[heard], vectors)
        self.bm25 = _product(turns.counts[heard], candidates.bm25[own])
        self.rare = _product(turns.rare[heard], candidates.holds[own])
        self.best = first_best(self.cosines.astype(np.float64)) if heard else np.zeros(0, np.intp)
        self.top = self.cosines.max(axis=1) if heard else np.zeros(0, np.float32)
        self.alike = _product(vectors, vectors)
        np.fill_diagonal(self.alike, 0)
        self.association = turns.said[heard] @ candidates.replied[own].T
        self.log_words, self.questions = turns.log_words[heard], turns.questions[heard]
        self.asks = turns.asks[heard]
        places = np.arange(len(own))
        of_place = [places / max(len(own), 1), np.log1p(places), places == 0]
        self.own = np.column_stack([*of_place, candidates.own[own]]).astype(np.float32)
        self.learnt = candidates.learnt[own]


def _product(left: Any, right: Any) -> Floats:
    table: Floats = (left @ right.T).toarray().astype(np.float32)
    return table


def _no_rows(maker: FeatureTable) -> Any:
    return maker.tfidf.documents([""])[:0]


def _uses(own: Any, own_top: Any, other: Any, other_top: Any, n: int) -> list[Floats]:
    """The features USES, from the candidates that were nearest to each turn."""
    columns = []
    for best, top in ((own, own_top), (other, other_top)):
        nearest = np.zeros(n, np.float32)
        np.maximum.at(nearest, best, top)
        columns.append(nearest)
    return [*columns, np.log1p(np.bincount(own, minlength=n)), np.log1p(np.bincount(other, minlength=n))]


def _distances(best: Any, j: int, n: int) -> list[Floats]:
    if len(best) < j:
        return [np.zeros(n, np.float32)] * 4
    away = np.arange(n) - best[-j]
    return [away == 1, away == -1, np.sign(away) * np.log1p(abs(away)), np.exp(-abs(away) / 3)]


def beside(cosines: Floats) -> Floats:
    """The cosines of the three candidates on either side, the nearest most."""
    padded = np.pad(cosines, len(_BESIDE) // 2)
    return np.convolve(padded, _BESIDE, "valid")
