"""Batches of similar length, in an order fixed by seed and epoch alone, so that a run can go on anywhere.

The plan of an epoch is an array, not a stream: batch 1,000 is looked up, not reached by making 999 others.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from palaver.text.vocabulary import PAD
from palaver.training.store import Ragged, Store

_PREFETCHED = 4
"""Batches that are made ahead."""


@dataclass(frozen=True)
class Plan:
    """One epoch: example ids, batch after batch."""

    order: np.ndarray
    bounds: np.ndarray
    """Batch b is `order[bounds[b]:bounds[b + 1]]`."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, batch: int) -> np.ndarray:
        return self.order[self.bounds[batch] : self.bounds[batch + 1]]


def plan_epoch(
    lengths: np.ndarray,
    *,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    n_processes: int = 1,
    bucket: int = 100,
    seed: int = 0,
    epoch: int = 0,
) -> Plan:
    """Every example once. `lengths` (N, 3) are those of context, response and knowledge.

    A batch has `batch_size` examples, or `batch_tokens` tokens with padding, for each of `n_processes`.
    The shuffled examples are cut into pools of `bucket` batches, each pool is sorted by length and cut into
    batches, and the batches are shuffled. With `bucket=0` the shuffled examples are cut as they come.
    """
    n = len(lengths)
    rng = np.random.default_rng((seed, epoch))
    order = rng.permutation(n)
    budget = (batch_tokens or 1) * n_processes
    size = batch_size * n_processes if batch_size else max(1, budget // max(1, int(lengths.sum(1).mean())))
    if bucket:
        order = _sort_pools(lengths, order, size, bucket)
    bounds = np.append(np.arange(0, n, size), n) if batch_size else _cut_by_tokens(lengths[order], budget)
    if bucket:
        order, bounds = _shuffle_batches(order, bounds, rng)
    return Plan(order, bounds)


def _sort_pools(lengths: np.ndarray, order: np.ndarray, size: int, bucket: int) -> np.ndarray:
    """Two lengths matter, so a pool is sorted by the one into strips, and each strip by the other."""
    place = np.arange(len(order))
    pool = place // (size * bucket)
    order = order[np.lexsort((lengths[order, 1], pool))]
    strip = place % (size * bucket) // (size * max(1, round(bucket**0.5)))
    return order[np.lexsort((lengths[order, 0] + lengths[order, 2], strip, pool))]


def _cut_by_tokens(lengths: np.ndarray, budget: int) -> np.ndarray:
    """Cuts such that rows x padded length stays within the budget; an example longer than it stands alone."""
    bounds = [0]
    while bounds[-1] < len(lengths):
        start = bounds[-1]
        ahead = max(1, budget // max(1, int(lengths[start].sum()))) * 2 + 1
        widest = np.maximum.accumulate(lengths[start : start + ahead]).sum(1)
        cost = widest * np.arange(1, len(widest) + 1)
        bounds.append(start + max(1, int(np.searchsorted(cost, budget, side="right"))))
    return np.array(bounds)


def _shuffle_batches(
    order: np.ndarray, bounds: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.diff(bounds)
    moved = rng.permutation(len(sizes))
    new = np.append(0, np.cumsum(sizes[moved]))
    return order[_ranges(bounds[moved], sizes[moved])], new


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """starts[0], starts[0]+1, … (sizes[0] of them), starts[1], …"""
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def pad(column: Ragged, ids: np.ndarray, multiple: int = 1, longest: int | None = None) -> np.ndarray:
    """The sequences `ids` as one array (B, T) filled up with PAD."""
    sizes = column.lengths(ids)
    width = max(1, int(sizes.max(initial=0)))
    rounded = math.ceil(width / multiple) * multiple
    width = max(width, rounded if longest is None else min(rounded, longest))  # no positions are beyond it
    rows = np.full((len(ids), width), PAD, np.int64)
    rows[np.arange(width) < sizes[:, None]] = column.values[_ranges(column.offsets[ids], sizes)]
    return rows


@dataclass(frozen=True)
class Batch:
    """What one process computes of a batch, and the size of the whole batch over all processes."""

    inputs: dict[str, Any]
    """Tensors, and for some models how wide they are put together."""
    n_tokens: int
    """Target tokens of the whole batch."""
    n_words: int
    spelling: float
    """What the unknown words of the whole batch cost on top."""
    n_examples: int
    n_read: int
    """All tokens of the whole batch, those of contexts and knowledge included, without padding."""
    weight: float = 1.0
    """0 for a process for which nothing was left: it computes along and counts nothing."""

    def to(self, device: torch.device) -> Batch:
        moved = {
            name: x.to(device, non_blocking=True) if isinstance(x, Tensor) else x
            for name, x in self.inputs.items()
        }
        return replace(self, inputs=moved)


@dataclass
class Collator:
    """Example ids into tensors, for one process of `n_ranks`."""

    store: Store
    config: Any
    _: KW_ONLY
    ocean: np.ndarray | None = None
    rank: int = 0
    n_ranks: int = 1
    pad_multiple: int = 1
    pin: bool = False
    takes_width: bool = False

    def __call__(self, ids: np.ndarray) -> Batch:
        store, config = self.store, self.config
        ids = np.asarray(ids)
        own = ids[self.rank :: self.n_ranks]
        weight = 1.0 if len(own) else 0.0
        own = own if len(own) else ids[:1]
        arrays = {
            "context": pad(store.context, own, self.pad_multiple, config.max_context),
            "response": pad(store.response, own, self.pad_multiple, config.max_response),
        }
        if config.knowledge:
            arrays["knowledge"] = pad(store.knowledge, own, self.pad_multiple, config.max_knowledge)
        if config.conditioning == "speaker":
            arrays["speaker"] = store.speaker[own].astype(np.int64)
        elif config.conditioning == "personality" and self.ocean is not None:
            arrays["ocean"] = self.ocean[store.speaker[own]].astype(np.float32)
        inputs: dict[str, Any] = {
            name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in arrays.items()
        }
        if self.pin:
            inputs = {name: x.pin_memory() for name, x in inputs.items()}
        if self.takes_width:
            inputs["width"] = self._width(own)
        n_tokens = int(store.response.lengths(ids).sum())
        n_read = n_tokens + int(store.context.lengths(ids).sum() + store.knowledge.lengths(ids).sum())
        n_words, spelling = int(store.n_words[ids].sum()), float(store.spelling[ids].sum())
        return Batch(inputs, n_tokens, n_words, spelling, len(ids), n_read, weight)

    def _width(self, ids: np.ndarray) -> int:
        """The longest example, all its parts together."""
        longest = int(example_lengths(self.store, ids).sum(1).max())
        return math.ceil(longest / self.pad_multiple) * self.pad_multiple


def example_lengths(store: Store, ids: np.ndarray) -> np.ndarray:
    """(N, 3): context, response, knowledge of the examples `ids`."""
    columns = (store.context, store.response, store.knowledge)
    return np.stack([c.lengths(ids).astype(np.int32) for c in columns], axis=1)


def prefetch(batches: Iterator[Batch]) -> Generator[Batch]:
    """The same batches, made by a thread while the last ones are computed with. To be closed when done."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        waiting = deque(pool.submit(next, batches, None) for _ in range(_PREFETCHED))
        while (batch := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, batches, None))
            yield batch
    finally:
        pool.shutdown(cancel_futures=True)
