"""Choosing the sentence a turn should be grounded in.

`oracle` is Topical-Chat's arg max (Gopalakrishnan et al. 2019, section 4.2): the candidate whose TF-IDF
vector has the largest cosine with that of the true response. A live system has no response yet: `tfidf`,
`bm25` and `encoder` compare the candidates with the history instead.

Equal scores go to the candidate that was read first; if nothing fits at all (score 0), that is the very
first. Both cases are marked in the `Selection`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError, check_list, short_repr
from palaver.registry import Named, Registry, call_plugin, parameters_of
from palaver.text.tfidf import Bm25, TermWeights, Tfidf

Floats = NDArray[np.float64]
_CLOSE = 1e-9
"""Scores this near are equal: the order in which a sum was taken must not decide."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen sentence, its place among the candidates and how well it fits."""

    index: int
    sentence: str
    score: float
    n_tied: int = 0
    """Other candidates with the same score."""


class Query(NamedTuple):
    """A turn for which a sentence is wanted: what was said before and, for the oracle, the turn itself."""

    history: Sequence[str]
    response: str | None = None


class Group(NamedTuple):
    """Turns that choose among the same candidates: all those of one speaker in one dialogue."""

    queries: Sequence[Query]
    candidates: Sequence[str]


class Selector(Named, ABC):
    """Scores candidates. A kind of its own needs `scores` alone."""

    name: str
    sees_response: bool = False

    @abstractmethod
    def scores(self, groups: Sequence[Group]) -> list[Floats | None]:
        """For each group a table (queries, candidates), or nothing where nothing is to be chosen."""

    def select(
        self, history: Sequence[str], candidates: Sequence[str], response: str | None = None
    ) -> Selection | None:
        """The best of `candidates` for the turn that follows `history`; nothing if there are none."""
        (table,) = self.scores([Group([Query(history, response)], candidates)])
        return None if table is None or not candidates else best(table[0], candidates)


def best(scores: Floats, candidates: Sequence[str]) -> Selection:
    """The first of the candidates with the highest score."""
    index = int(first_best(scores[None])[0])
    n_tied = int((scores >= scores.max() - _CLOSE).sum()) - 1
    return Selection(index, candidates[index], float(scores[index]), n_tied)


def first_best(scores: Floats) -> NDArray[np.intp]:
    """For each row of `scores` (queries, candidates) the place of its first highest. (queries,)"""
    places: NDArray[np.intp] = (scores >= scores.max(axis=1, keepdims=True) - _CLOSE).argmax(axis=1)
    return places


class NoSelector(Selector):
    """Chooses nothing: a model without knowledge."""

    name = "none"

    def __init__(self, sentences: Sequence[str] = ()) -> None:
        pass

    def scores(self, groups: Sequence[Group]) -> list[Floats | None]:
        return [None] * len(groups)


class VectorSelector(Selector):
    """Scores are products of a query's vector and a candidate's; each distinct text is weighed once."""

    last_turns: int | None = None

    @abstractmethod
    def query_vectors(self, texts: Sequence[str]) -> Any:
        """One row per text, sparse or dense."""

    @abstractmethod
    def candidate_vectors(self, texts: Sequence[str]) -> Any:
        """One row per text, of the same kind."""

    def query_text(self, query: Query) -> str:
        """What the candidates are compared with: the last turns."""
        return " ".join(query.history if self.last_turns is None else query.history[-self.last_turns :])

    def scores(self, groups: Sequence[Group]) -> list[Floats | None]:
        rows: dict[str, int] = {}
        for group in groups:
            for sentence in group.candidates:
                rows.setdefault(sentence, len(rows))
        texts = [self.query_text(query) for group in groups for query in group.queries]
        if not rows or not texts:
            return [np.zeros((len(g.queries), len(g.candidates))) for g in groups]
        candidates, queries = self.candidate_vectors(list(rows)), self.query_vectors(texts)
        tables: list[Floats | None] = []
        begin = 0
        for group in groups:
            end = begin + len(group.queries)
            product = queries[begin:end] @ candidates[[rows[s] for s in group.candidates]].T
            dense = product if isinstance(product, np.ndarray) else product.toarray()
            tables.append(np.asarray(dense, dtype=np.float64))
            begin = end
        return tables


def check_last_turns(last_turns: int | None) -> int | None:
    """`last_turns` if it can be used."""
    if last_turns is not None and last_turns < 1:
        raise UserError(
            f"last_turns must be 1 or more, found {last_turns}", "leave it out for the whole history"
        )
    return last_turns


class _TermSelector(VectorSelector):
    def __init__(self, weights: TermWeights) -> None:
        self._weights = weights

    def query_vectors(self, texts: Sequence[str]) -> Any:
        return self._weights.queries(texts)

    def candidate_vectors(self, texts: Sequence[str]) -> Any:
        return self._weights.documents(texts)


class OracleSelector(_TermSelector):
    """TF-IDF cosine with the true response: the upper bound that training uses."""

    name = "oracle"
    sees_response = True

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__(Tfidf(sentences))

    def query_text(self, query: Query) -> str:
        if query.response is None:
            raise UserError(
                "the oracle compares candidates with the true response, which is not known here",
                "choose tfidf, bm25 or encoder, which need the history alone",
            )
        return query.response


class TfidfSelector(_TermSelector):
    """TF-IDF cosine with the history."""

    name = "tfidf"

    def __init__(self, sentences: Sequence[str], *, last_turns: int | None = 2) -> None:
        super().__init__(Tfidf(sentences))
        self.last_turns = check_last_turns(last_turns)


class Bm25Selector(_TermSelector):
    """BM25 with the history as the query."""

    name = "bm25"

    def __init__(
        self, sentences: Sequence[str], *, last_turns: int | None = 2, k1: float = 1.2, b: float = 0.75
    ) -> None:
        super().__init__(Bm25(sentences, k1=k1, b=b))
        self.last_turns = check_last_turns(last_turns)


class FunctionSelector(Selector):
    """A function of the history and the candidates that returns one score for each candidate."""

    function: Callable[[list[str], list[str]], Any]

    def __init__(self, sentences: Sequence[str] = ()) -> None:
        pass

    def scores(self, groups: Sequence[Group]) -> list[Floats | None]:
        return [
            np.stack([self._row(query, group.candidates) for query in group.queries])
            if group.queries
            else np.zeros((0, len(group.candidates)))
            for group in groups
        ]

    def _row(self, query: Query, candidates: Sequence[str]) -> Floats:
        returned = call_plugin(self.name, self.function, list(query.history), list(candidates))
        try:
            row = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.empty(0)
        if row.shape != (len(candidates),) or not np.isfinite(row).all():
            raise UserError(
                f"{self.name} should return a number for each of the {len(candidates)} candidates, "
                f"returned {short_repr(returned)}",
                "it is called with the history and the candidates, both lists of texts",
            )
        return row


def _adapt(name: str, thing: Any) -> type[Selector]:
    """A plug-in is a `Selector` or a function of history and candidates."""
    if isinstance(thing, type) and issubclass(thing, Selector):
        return thing
    if not callable(thing):
        raise UserError(f"the knowledge selector {name} is no function, found {short_repr(thing)}")
    return type("FunctionSelector", (FunctionSelector,), {"name": name, "function": staticmethod(thing)})


SELECTORS: Registry[type[Selector]] = Registry(
    "knowledge selector",
    {
        "oracle": OracleSelector,
        "tfidf": TfidfSelector,
        "bm25": Bm25Selector,
        "encoder": "palaver.knowledge.encoder:EncoderSelector",
        "trained": "palaver.knowledge.ranker:TrainedSelector",
        "trained-encoder": "palaver.knowledge.trained_encoder:TrainedEncoderSelector",
        "none": NoSelector,
    },
    group="palaver.selectors",
    adapt=_adapt,
)
HISTORY_SELECTORS = ("tfidf", "bm25", "encoder", "trained", "trained-encoder")
"""Ours that need no response."""


def make_selector(
    name: str,
    sentences: Sequence[str] = (),
    *,
    last_turns: int | None = 2,
    k1: float = 1.2,
    b: float = 0.75,
    encode: Callable[[list[str]], Any] | str | Path | None = None,
    device: str = "cpu",
) -> Selector:
    """The selector called `name`: "tfidf", "trained", "oracle" or another of `SELECTORS`, or MODULE:FUNCTION.

    Term weights are fitted on `sentences` (see `reading_sentences`). `last_turns` is how much of the history
    is looked at, None for all. `k1` and `b` are for bm25; `encode` (a function or an encoder's name) is for
    encoder, `device` for encoder and trained-encoder.
    """
    check_list("sentences", sentences)
    kind = SELECTORS.get(name)
    known = parameters_of(kind)
    defaults: dict[str, Any] = {"last_turns": 2, "k1": 1.2, "b": 0.75, "encode": None, "device": "cpu"}
    given = {"last_turns": last_turns, "k1": k1, "b": b, "encode": encode, "device": device}
    strange = [option for option in given if option not in known and given[option] != defaults[option]]
    if strange:
        raise UserError(f"the selector {name} takes no {' and no '.join(strange)}")
    options = {option: value for option, value in given.items() if option in known}
    return kind(sentences, **options)  # type: ignore[call-arg]
