"""Samples of utterances as vectors: many utterances in, one vector of traits or word counts out.

Xing & Fernández (2018, sections 3.1 and 4) score random samples of 500 utterances. Within a sample no
utterance comes twice; between samples it may. What a sample needs is additive, so utterances are counted
once, and a sample is drawn and added up in one compiled pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from palaver.errors import DataError
from palaver.personality.counts import sum_rows

Floats = NDArray[np.float64]
Rows = NDArray[np.integer[Any]]

N_TRAITS = 5
_DENSE_BYTES = 1 << 28
_SHORT = 1 << 16


class Vectors(Protocol):
    """Draws samples from pools, given as rows of the table of utterances, and turns them into vectors."""

    def of(self, pools: Sequence[Rows], n: int, size: int, seeds: Sequence[int]) -> Floats:
        """(pools * n, d): `n` samples of `size` from each pool, one pool after the other.

        The same seeds draw the same samples, whatever the vectors are.
        """
        ...

    def take(self, rows: Rows) -> Vectors:
        """The same for a part of the utterances, in the order of `rows`."""
        ...


def draw_rows(pool: Rows, n: int, size: int, seed: int) -> Rows:
    """(n, size): samples of a pool, none twice within a sample."""
    from palaver.personality import _draws

    out = np.empty((n, size), dtype=np.int64)
    _draws.draw_rows(_copied(pool, size), size, np.uint64(seed), out)
    return out


@dataclass(frozen=True)
class CountVectors:
    """Vectors of additive counts: their sums as they are, or what `score` makes of the sums."""

    counts: Any
    """A `csr_matrix`, one row an utterance."""
    score: Callable[[Any], Any] | None = None
    columns: Rows | None = None
    """Only these columns of the sums."""

    def of(self, pools: Sequence[Rows], n: int, size: int, seeds: Sequence[int]) -> Floats:
        totals = self.totals(pools, n, size, seeds)
        return totals if self.score is None else checked_scores(self.score(totals))

    def totals(self, pools: Sequence[Rows], n: int, size: int, seeds: Sequence[int]) -> Floats:
        """(pools * n, columns): the sums of counts over each sample."""
        from palaver.personality import _draws

        dense, m = self._dense, self.counts
        out = np.zeros((len(pools) * n, m.shape[1] if dense is None else dense.shape[1]))
        for i, (pool, seed) in enumerate(zip(pools, seeds, strict=True)):
            rows, part = _copied(pool, size), out[i * n : (i + 1) * n]
            if dense is not None:
                _draws.draw_dense_totals(rows, size, np.uint64(seed), dense, part)
            elif self._packed is not None:
                _draws.draw_packed_totals(rows, size, np.uint64(seed), m.indptr, self._packed, part)
            else:
                part[:] = sum_rows(m, draw_rows(pool, n, size, seed))
        return out if dense is not None or self.columns is None else out[:, self.columns]

    @cached_property
    def _dense(self) -> Any:
        """The counts with all their noughts, where they are not too many."""
        chosen = self.counts if self.columns is None else self.counts[:, self.columns]
        n, width = chosen.shape
        return chosen.astype(np.float32).toarray() if 4 * n * width <= _DENSE_BYTES else None

    @cached_property
    def _packed(self) -> Any:
        """Column and count in one number each, where the counts are whole and both are small enough."""
        m = self.counts
        if m.shape[1] > _SHORT or not m.nnz or m.data.min() < 0 or m.data.max() >= _SHORT:
            return None
        packed = m.indices.astype(np.uint32) << np.uint32(16)
        for begin in range(0, m.nnz, 1 << 24):  # in parts, for memory
            part = m.data[begin : begin + (1 << 24)]
            whole = part.astype(np.uint32)
            if (whole != part).any():
                return None
            packed[begin : begin + (1 << 24)] |= whole
        return packed

    def take(self, rows: Rows) -> CountVectors:
        return CountVectors(self.counts[rows], self.score, self.columns)


@dataclass(frozen=True)
class TextVectors:
    """Vectors of a recogniser that reads whole texts: the utterances of a sample, a line each."""

    texts: Sequence[str]
    score: Callable[[Sequence[str]], Any]

    def of(self, pools: Sequence[Rows], n: int, size: int, seeds: Sequence[int]) -> Floats:
        texts = [
            "\n".join(self.texts[i] for i in sample)
            for pool, seed in zip(pools, seeds, strict=True)
            for sample in draw_rows(pool, n, size, seed).tolist()
        ]
        return checked_scores(self.score(texts))

    def take(self, rows: Rows) -> TextVectors:
        return TextVectors([self.texts[i] for i in rows.tolist()], self.score)


def checked_scores(scores: Any) -> Floats:
    """Five finite numbers a sample, whatever recogniser they come from."""
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != N_TRAITS:
        raise DataError(
            f"the recogniser gave scores of shape {table.shape}, expected five traits a sample",
            "openness, conscientiousness, extraversion, agreeableness, neuroticism, in this order",
        )
    if not np.isfinite(table).all():
        raise DataError(f"the recogniser gave {int((~np.isfinite(table)).sum())} scores that are no numbers")
    return table


def _copied(pool: Rows, size: int) -> NDArray[np.int64]:
    """The kernels shuffle what they get."""
    if size > pool.size:
        raise ValueError(f"cannot draw {size} of {pool.size} without drawing one twice")
    return pool.astype(np.int64)
