"""What SmolLM2 makes of a reply half way through its layers: states that a regression can read."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.judges.response_likelihood import ReplyLikelihood, ReplyPrompt

Floats = NDArray[np.float64]
LAYERS = 15
"""Of thirty: later ones turn to the next token."""


class ReplyStates:
    """The states of replies after their history: the mean over their tokens, and that of the last."""

    def __init__(self, likelihood: ReplyLikelihood) -> None:
        from torch.nn import Identity

        self._likelihood = likelihood
        whole = likelihood.model.model
        self._layers = copy.copy(whole)
        self._layers._modules = dict(whole._modules)  # a copy of a module shares its parts with the original
        self._layers.layers = whole.layers[:LAYERS]
        self._layers.norm = Identity()

    def read(self, prompts: Sequence[ReplyPrompt]) -> Floats:
        """(replies, twice the width of the model). A context that replies share is read once."""
        states = np.empty((len(prompts), 2 * self._layers.config.hidden_size))
        for shared in self._likelihood.by_context(prompts):
            states[shared.places] = self._read(shared.prefixes["context"], shared.replies)
        return states

    def _read(self, prefix: Sequence[int], replies: Sequence[Sequence[int]]) -> Floats:
        import torch

        from palaver.models.likelihood import pad_rows

        device = self._likelihood.model.device
        tokens, _ = pad_rows(replies, 0, device)
        with torch.inference_mode():
            cache = self._layers(torch.tensor([prefix], device=device), use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(replies))
            later: Any = self._layers(tokens, past_key_values=cache, use_cache=True)
        hidden = later.last_hidden_state.double().cpu().numpy()  # (B, T, C)
        rows = [hidden[row, : len(ids)] for row, ids in enumerate(replies)]
        return np.array([np.concatenate([of_reply.mean(axis=0), of_reply[-1]]) for of_reply in rows])
