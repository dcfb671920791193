"""Knowledge selection by meaning: cosine of sentence embeddings of the history and of each candidate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from palaver.knowledge.selector import VectorSelector, check_last_turns
from palaver.models.encoders import Places, open_encoder
from palaver.models.encoders.encoder import Encode, Vectors, checked, remember

_MOST_KEPT = 200_000
"""Texts whose vectors are kept: 300 MB for MiniLM."""


class UnitVectors:
    """Vectors of length 1, from any encoder.

    `encode` is a function from texts to vectors, or an encoder's name (see `palaver.models.encoders`);
    without it MiniLM is used. `device` is where a named one runs.
    """

    def __init__(
        self, encode: Encode | str | Path | None = None, *, device: str = "cpu", half: bool = False
    ) -> None:
        if not callable(encode):
            places = Places(device=device, keep_end=True, batch_size=64, half=half)
            encode = open_encoder(encode, places).encode
        self._encode: Encode = encode
        self.once = remember(self.of, _MOST_KEPT)
        """As `of`, for texts that come again: each is encoded once."""

    def of(self, texts: Sequence[str]) -> Vectors:
        """One row per text; an empty text has no direction and fits nothing."""
        given = checked(self._encode(list(texts)), texts, "the encoder")
        norms = np.linalg.norm(given, axis=1, keepdims=True)
        vectors = (given / np.where(norms > 0, norms, 1)).astype(np.float32)
        vectors[[not text.strip() for text in texts]] = 0
        return vectors


class EncoderSelector(VectorSelector):
    """Cosine with the history's embedding; see `UnitVectors` for `encode` and `device`."""

    name = "encoder"

    def __init__(
        self,
        sentences: Sequence[str] = (),
        *,
        encode: Encode | str | Path | None = None,
        device: str = "cpu",
        last_turns: int | None = 2,
    ) -> None:
        self._vectors = UnitVectors(encode, device=device)
        self.last_turns = check_last_turns(last_turns)

    def query_vectors(self, texts: Sequence[str]) -> Vectors:
        return self._vectors.of(texts)

    def candidate_vectors(self, texts: Sequence[str]) -> Vectors:
        vectors: Vectors = self._vectors.once(list(texts))
        return vectors
