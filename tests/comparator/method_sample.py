"""Rated dialogues with known raters, and an encoder of words as fixed random vectors."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.training_data import RatedDialogue, RatedDialogues
from palaver.schema import Dialogue, Turn

GOOD = (
    "that sounds like a lovely trip, where did you go?",
    "i love hiking with my dog near the lake",
    "what do you cook when friends come over?",
    "the concert was great, have you been to one?",
)
BAD = ("i do not know", "pizza pizza pizza", "i do not know what to say", "go go go go no no")
USER = ("hello there how are you", "do you like music", "i went to the lake", "why do you say that again?")


def encode(texts: list[str], dim: int = 24) -> NDArray[np.float32]:
    """The mean of a fixed random vector for each word."""
    vectors = np.zeros((len(texts), dim), np.float32)
    for row, text in zip(vectors, texts, strict=True):
        for word in text.lower().split():
            row += np.random.default_rng(zlib.crc32(word.encode())).normal(size=dim).astype(np.float32)
    return vectors


def dialogue(i: int, quality: float, rng: np.random.Generator, n: int = 5) -> Dialogue:
    turns = []
    for _ in range(n):
        turns.append(Turn(speaker="user", text=USER[int(rng.integers(len(USER)))]))
        said = GOOD if rng.random() < quality else BAD
        turns.append(Turn(speaker="system", text=said[int(rng.integers(len(said)))]))
    return Dialogue(id=f"d{i}", turns=tuple(turns))


def sample(
    n_raters: int = 20, n_bad: int = 6, seed: int = 0, each: int = 6
) -> tuple[RatedDialogues, set[str]]:
    """Raters with levels of their own; the last `n_bad` rate at random, the very last all the same."""
    rng = np.random.default_rng(seed)
    rows: list[RatedDialogue] = []
    bad = {f"w{r}" for r in range(n_raters - n_bad, n_raters)}
    for r in range(n_raters):
        level = rng.normal(50, 15)
        for _ in range(each):
            quality = float(rng.random())
            value: Any = level + 40 * (quality - 0.5) + rng.normal(0, 5)
            if f"w{r}" in bad:
                value = level + rng.normal(0, 12) if r < n_raters - 1 else 70.0
            rows.append(
                RatedDialogue(
                    dialogue(len(rows), quality, rng),
                    float(np.clip(value, 0, 100)),
                    f"w{r}",
                    f"h{r}",
                    "good" if quality > 0.5 else "bad",
                )
            )
    return RatedDialogues(tuple(rows), (0.0, 100.0)), bad
