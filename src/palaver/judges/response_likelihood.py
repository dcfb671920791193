"""How likely SmolLM2 finds a reply: alone, after the last turn, after the history, with the knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_PREFIX_TOKENS = 160
"""Of a history the last so many, of knowledge the first so many."""
_REPLY_TOKENS = 96


@dataclass(frozen=True)
class ReplyPrompt:
    """What a reply is scored against; all texts in the one form of `normalise_text`."""

    turns: tuple[str, ...]
    knowledge: str
    reply: str


class ReplyLikelihood:
    """SmolLM2 over replies. Replies to one context share its tokens, which are read once."""

    def __init__(self, device: str = "auto") -> None:
        from palaver.models.smollm2 import load_smollm2

        self._model, self._tokenizer = load_smollm2(device, "float32")
        self._begin = [self._tokenizer.bos_token_id or 0]

    def score(self, prompts: Sequence[ReplyPrompt]) -> list[dict[str, Floats]]:
        """Of each reply the log-probability of each token and of the end of the line, after each prefix."""
        by_context: dict[tuple[tuple[str, ...], str], list[int]] = {}
        for place, prompt in enumerate(prompts):
            by_context.setdefault((prompt.turns, prompt.knowledge), []).append(place)
        scores: list[dict[str, Floats]] = [{} for _ in prompts]
        for (turns, knowledge), places in by_context.items():
            replies = [self._reply_ids(prompts[place].reply) for place in places]
            for name, prefix in self._prefixes(turns, knowledge).items():
                for place, values in zip(places, self._score(prefix, replies), strict=True):
                    scores[place][name] = values
        return scores

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _reply_ids(self, reply: str) -> list[int]:
        return [*self._ids(" " + reply)[:_REPLY_TOKENS], *self._ids("\n")]

    def _prefixes(self, turns: Sequence[str], knowledge: str) -> dict[str, list[int]]:
        speakers = ["B" if (len(turns) - place) % 2 == 0 else "A" for place in range(len(turns))]
        lines = [f"{speaker}: {turn}\n" for speaker, turn in zip(speakers, turns, strict=True)]
        last = self._ids(lines[-1])[-_PREFIX_TOKENS:] if lines else []
        reply = self._ids("B:")
        prefixes = {
            "alone": reply,
            "last": [*last, *reply],
            "context": [*self._ids("".join(lines))[-_PREFIX_TOKENS:], *reply],
        }
        if knowledge:
            fact = self._ids(knowledge)[:_PREFIX_TOKENS]
            prefixes["knowledge"] = [*fact, *self._ids("\n\n"), *last, *reply]
        return prefixes

    def _score(self, prefix: Sequence[int], replies: Sequence[Sequence[int]]) -> list[Floats]:
        import torch

        device = self._model.device
        with torch.inference_mode():
            first: Any = self._model(
                torch.tensor([[*self._begin, *prefix]], device=device), use_cache=True, logits_to_keep=1
            )
            cache = first.past_key_values
            cache.batch_repeat_interleave(len(replies))
            longest = max(map(len, replies))
            padded = torch.zeros((len(replies), longest), dtype=torch.long)
            for row, ids in enumerate(replies):
                padded[row, : len(ids)] = torch.tensor(ids)
            padded = padded.to(device)
            later = self._model(padded[:, :-1], past_key_values=cache, use_cache=True).logits  # (B, T-1, V)
            begin = first.logits.expand(len(replies), 1, -1)  # (B, 1, V)
            logits = torch.cat([begin, later], dim=1).float()  # (B, T, V)
            chosen = logits.gather(2, padded[..., None])[..., 0] - logits.logsumexp(dim=2)  # (B, T)
        values = chosen.double().cpu().numpy()
        return [values[row, : len(ids)] for row, ids in enumerate(replies)]
