"""Characters whose truth is known: each has a favourite word, or none has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from palaver.personality.pools import Pools
from palaver.personality.samples import CountVectors

MARKERS = ("alpha", "beta", "gamma", "delta", "epsilon")


@dataclass(frozen=True)
class Toy:
    """A recogniser with one word for each trait: the score is the word's share, from 1 to 7."""

    name: str = "toy"

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        split = [text.split() for text in utterances]
        return csr_matrix([[len(w), *(w.count(m) for m in MARKERS)] for w in split], dtype=np.float32)

    def score(self, totals: Any) -> Any:
        return 1 + 6 * totals[:, 1:] / np.maximum(totals[:, :1], 1)


def speak(rng: np.random.Generator, likes: int | None, n: int, strength: float = 0.3) -> list[str]:
    """`n` utterances of 4 words; a favourite is said more often than the other markers."""
    words = (*MARKERS, "and", "so", "well")
    p = np.ones(len(words))
    if likes is not None:
        p[likes] += strength * len(words)
    return [" ".join(rng.choice(words, 4, p=p / p.sum())) for _ in range(n)]


def make_pools(
    likes: Sequence[int | None], n: int = 200, n_groups: int = 20, strength: float = 0.3, seed: int = 0
) -> Pools:
    rng = np.random.default_rng(seed)
    texts = [text for who in likes for text in speak(rng, who, n, strength)]
    toy = Toy()
    return Pools(
        characters=tuple(f"person {i}" for i in range(len(likes))),
        label=np.repeat(np.arange(len(likes)), n).astype(np.int32),
        group=rng.permutation(np.arange(len(texts)) % n_groups).astype(np.int32),
        group_noun="scene",
        traits=CountVectors(toy.count(texts), toy.score),
        words={"words": CountVectors(toy.count(texts))},
        recogniser=toy.name,
        source="toy",
    )


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def known(toy: Toy) -> SimpleNamespace:
    """`known.pools([0, 1])`: two characters who like different words; `known.speak`: their utterances."""
    pools: Callable[..., Pools] = make_pools
    return SimpleNamespace(pools=pools, speak=speak, toy=toy, markers=MARKERS)
