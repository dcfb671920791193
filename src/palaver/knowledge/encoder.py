"""Knowledge selection by meaning: cosine of sentence embeddings of the history and of each candidate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaver.knowledge.selector import VectorSelector, check_last_turns
from palaver.models.encoders import Places, open_encoder
from palaver.models.encoders.encoder import Vectors, checked

Encode = Callable[[list[str]], Any]
_MOST_KEPT = 200_000
"""Candidates whose vectors are kept: 300 MB for MiniLM."""


class EncoderSelector(VectorSelector):
    """Cosine with the history's embedding.

    `encode` is a function from texts to vectors, or any encoder by name (see `palaver.models.encoders`);
    without it MiniLM is used. `device` is where a named one runs.
    """

    name = "encoder"

    def __init__(
        self,
        sentences: Sequence[str] = (),
        *,
        encode: Encode | str | Path | None = None,
        device: str = "cpu",
        last_turns: int | None = 2,
    ) -> None:
        if not callable(encode):
            encode = open_encoder(encode, Places(device=device, keep_end=True, batch_size=64)).encode
        self._encode: Encode = encode
        self.last_turns = check_last_turns(last_turns)
        self._known: dict[str, Vectors] = {}

    def query_vectors(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts)

    def candidate_vectors(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in texts if text not in self._known]
        if new:
            if len(self._known) + len(new) > _MOST_KEPT:
                self._known.clear()
                new = list(texts)
            self._known.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        """Rows of length 1; an empty text has no direction and fits nothing."""
        given = checked(self._encode(list(texts)), texts, "the encoder")
        norms = np.linalg.norm(given, axis=1, keepdims=True)
        vectors = (given / np.where(norms > 0, norms, 1)).astype(np.float32)
        vectors[[not text.strip() for text in texts]] = 0
        return vectors
