"""A causal language model as a sentence encoder: the mean of its hidden states.

Which layer and which pooling serve best was not looked for: the last layer and the mean are what people take
first. The mark of the beginning goes before the text and does not count: the first state of a causal model
sees one token only, and the others lean on it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from palaver.artefacts import digest, digest_files
from palaver.errors import UserError, require
from palaver.models.encoders.encoder import Encoder, Places, TokenVectors, Vectors, batches_by_length
from palaver.models.packages import PACKAGES, folder_of

N_LAYERS = 30


class HiddenStates:
    """Texts to the mean state of one layer of a causal model; texts of like length share a batch."""

    def __init__(self, model: Any, tokenizer: Any, layer: int, places: Places) -> None:
        self._torch = require("torch", "models")
        self._model, self._tokenizer = model, tokenizer
        self._layer = layer
        self._batch_size, self._max_tokens = places.batch_size, places.max_tokens
        self._keep_end = places.keep_end

    def __call__(self, texts: list[str]) -> Vectors:
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        vectors: Vectors = np.zeros((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for begin in range(0, len(texts), self._batch_size):
            part = order[begin : begin + self._batch_size]
            vectors[part] = self._means([texts[i] for i in part])
        return vectors

    def tokens(self, texts: list[str]) -> list[TokenVectors]:
        """The state of each token; the mark of the beginning has none."""
        whole = [self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        kept = [self._kept(row) for row in whole]
        vectors: list[Any] = [None] * len(texts)
        for batch in batches_by_length([len(row) + 1 for row in kept], 64 * self._batch_size):
            states, _ = self._states([kept[n] for n in batch])
            for n, of_text in zip(batch, states.numpy(), strict=True):
                ids = np.array(kept[n], dtype=np.int64)
                is_cut = len(ids) < len(whole[n])
                vectors[n] = TokenVectors(ids, of_text[: len(ids)], np.ones(len(ids), bool), is_cut)
        return vectors

    def _kept(self, tokens: list[int]) -> list[int]:
        return tokens[-self._max_tokens :] if self._keep_end else tokens[: self._max_tokens]

    def _means(self, texts: list[str]) -> Vectors:
        whole = [self._tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        states, counted = self._states([self._kept(row) for row in whole])
        mean = (states * counted).sum(1) / counted.sum(1).clamp(min=1)  # (B, C)
        vectors: Vectors = mean.numpy()
        return vectors

    def _states(self, tokens: list[list[int]]) -> tuple[Any, Any]:
        """(B, T, C) states of the tokens, without that of the beginning, and (B, T, 1) 1 where one is."""
        torch, tokenizer = self._torch, self._tokenizer
        rows = [[tokenizer.bos_token_id, *kept] for kept in tokens]
        width = max(map(len, rows))
        ids = torch.full((len(rows), width), tokenizer.pad_token_id)  # (B, T)
        mask = torch.zeros(len(rows), width, dtype=torch.int64)  # (B, T)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = torch.tensor(row)
            mask[n, : len(row)] = 1
        device = self._model.device
        with torch.inference_mode():
            output = self._model.model(
                ids.to(device), attention_mask=mask.to(device), output_hidden_states=True, use_cache=False
            )
        return output.hidden_states[self._layer].float().cpu()[:, 1:], mask[:, 1:, None].float()


def open_smollm2(arguments: list[str], places: Places) -> Encoder:
    """`smollm2`: the last layer of SmolLM2-135M-Instruct; `smollm2=15`: another, 0 for the word vectors."""
    numbers = [int(a) for a in arguments if a.isdecimal()]
    if len(arguments) > 1 or len(numbers) < len(arguments) or any(n > N_LAYERS for n in numbers):
        raise UserError(
            f"smollm2 takes the number of a layer, 0 to {N_LAYERS}", f"found: {', '.join(arguments)}"
        )
    require("torch", "models")
    require("transformers", "models")
    require("gguf", "llm")
    from palaver.models.smollm2 import GGUF, NAME, load_smollm2

    layer = numbers[0] if numbers else N_LAYERS
    gguf = folder_of("smollm2") / GGUF
    which = "the last layer" if layer == N_LAYERS else f"layer {layer} of {N_LAYERS}"

    @cache
    def load() -> HiddenStates:
        # Full precision also on a GPU: cosines that differ by little are compared.
        model, tokenizer = load_smollm2(places.torch_device(), "float32")
        return HiddenStates(model, tokenizer, layer, places)

    return Encoder(
        "smollm2" if layer == N_LAYERS else f"smollm2={layer}",
        digest("hidden-states", digest_files([gguf]), layer, places.max_tokens, places.keep_end),
        f"{NAME}, mean of {which} ({PACKAGES['smollm2'].provenance})",
        lambda texts: load()(texts),
        tokens=lambda texts: load().tokens(texts),
    )
