"""Utterances as counts: shard by shard, then one matrix, then pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.files import sha256_of
from palaver.personality.bag import Bag
from palaver.personality.pools import Pools
from palaver.personality.samples import CountVectors, TextVectors


@dataclass
class UtteranceShard:
    """A shard of utterances, counted; the texts only where the recogniser cannot count."""

    counts: Any
    bag: Any
    texts: list[str] | None = None


def count_texts(texts: list[str], recogniser: Any, bag: Bag | None) -> UtteranceShard:
    """What the recogniser counts in each text, and the words of the bag."""
    in_bag = bag.count(texts) if bag is not None else None
    if getattr(recogniser, "count", None) is None:
        return UtteranceShard(None, in_bag, texts)
    return UtteranceShard(recogniser.count(texts), in_bag)


def stacked(parts: list[Any]) -> Any:
    """One matrix of many; the parts are let go one after the other, for together they may fill the memory."""
    from scipy.sparse import csr_matrix

    parts[:] = [csr_matrix(part) for part in parts]
    if len(parts) == 1:
        return parts[0]
    ends = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum()
    width, n = parts[0].shape[1], int(ends[-1])
    data = np.empty(n, dtype=parts[0].dtype)
    indices = np.empty(n, dtype=parts[0].indices.dtype)
    begin = 0
    for i, part in enumerate(parts):
        data[begin : begin + part.nnz], indices[begin : begin + part.nnz] = part.data, part.indices
        begin += part.nnz
        parts[i] = None
    return csr_matrix((data, indices, ends), shape=(ends.size - 1, width), copy=False)


def build_pools(
    counted: list[UtteranceShard],
    recogniser: Any,
    bag: Bag | None,
    *,
    characters: tuple[str, ...],
    label: Any,
    groups: Any,
    group_noun: str,
    source: str,
    path: Path,
    left_out: Mapping[str, int],
    notes: Sequence[str],
) -> Pools:
    """Pools of all shards. A label below 0 marks utterances of nobody who is looked at."""
    traits: CountVectors | TextVectors
    if any(part.texts is not None for part in counted):
        texts = [text for part in counted for text in part.texts or ()]
        traits = TextVectors(texts, recogniser.score_texts)
    else:
        matrices = [part.counts for part in counted]
        for part in counted:
            part.counts = None
        traits = CountVectors(stacked(matrices), recogniser.score)
    bags = bag.vectors(stacked([part.bag for part in counted])) if bag is not None else {}
    if (label < 0).any():
        rows = np.flatnonzero(label >= 0)
        label, groups = label[rows], groups[rows]
        traits = traits.take(rows)
        bags = {name: vectors.take(rows) for name, vectors in bags.items()}
    return Pools(
        characters=characters,
        label=label,
        group=np.unique(groups, return_inverse=True)[1].astype(np.int32),
        group_noun=group_noun,
        traits=traits,
        words=bags,
        recogniser=str(getattr(recogniser, "name", type(recogniser).__name__)),
        source=source,
        left_out=tuple((reason, n) for reason, n in left_out.items() if n),
        notes=tuple(notes),
        hashes={path.name: sha256_of(path)} if path.is_file() else {},
    )
