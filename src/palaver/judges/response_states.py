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
        whole = likelihood._model.model
        self._layers = copy.copy(whole)
        self._layers._modules = dict(whole._modules)  # a copy of a module shares its parts with the original
        self._layers.layers = whole.layers[:LAYERS]
        self._layers.norm = Identity()

    def read(self, prompts: Sequence[ReplyPrompt]) -> Floats:
        """(replies, twice the width of the model). A context that replies share is read once."""
        by_context: dict[tuple[tuple[str, ...], str], list[int]] = {}
        for place, prompt in enumerate(prompts):
            by_context.setdefault((prompt.turns, prompt.knowledge), []).append(place)
        states = np.empty((len(prompts), 2 * self._layers.config.hidden_size))
        for (turns, knowledge), places in by_context.items():
            prefix = self._likelihood._prefixes(turns, knowledge)["context"]
            replies = [self._likelihood._reply_ids(prompts[place].reply) for place in places]
            states[places] = self._read(prefix, replies)
        return states

    def _read(self, prefix: Sequence[int], replies: Sequence[Sequence[int]]) -> Floats:
        import torch

        device = self._likelihood._model.device
        longest = max(map(len, replies))
        padded = torch.zeros((len(replies), longest), dtype=torch.long)
        for row, ids in enumerate(replies):
            padded[row, : len(ids)] = torch.tensor(ids)
        with torch.inference_mode():
            begin = torch.tensor([[*self._likelihood._begin, *prefix]], device=device)
            cache = self._layers(begin, use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(replies))
            later: Any = self._layers(padded.to(device), past_key_values=cache, use_cache=True)
        hidden = later.last_hidden_state.double().cpu().numpy()  # (B, T, C)
        rows = [hidden[row, : len(ids)] for row, ids in enumerate(replies)]
        return np.array([np.concatenate([of_reply.mean(axis=0), of_reply[-1]]) for of_reply in rows])
