"""How likely SmolLM2 finds a reply: alone, after the last turn, after the history, with the knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class ContextReplies:
    """Replies to one context, as tokens."""

    places: list[int]
    """Among all prompts."""
    prefixes: dict[str, list[int]]
    replies: list[list[int]]


class ReplyLikelihood:
    """SmolLM2 over replies. Replies to one context share its tokens, which are read once."""

    def __init__(self, device: str = "auto") -> None:
        from palaver.models.smollm2 import load_smollm2

        self.model, self._tokenizer = load_smollm2(device, "float32")
        self._begin = [self._tokenizer.bos_token_id or 0]

    def score(self, prompts: Sequence[ReplyPrompt]) -> list[dict[str, Floats]]:
        """Of each reply the log-probability of each token and of the end of the line, after each prefix."""
        scores: list[dict[str, Floats]] = [{} for _ in prompts]
        for shared in self.by_context(prompts):
            for name, prefix in shared.prefixes.items():
                for place, values in zip(shared.places, self._score(prefix, shared.replies), strict=True):
                    scores[place][name] = values
        return scores

    def by_context(self, prompts: Sequence[ReplyPrompt]) -> Iterator[ContextReplies]:
        """The replies as tokens, those to one context together."""
        places_of: dict[tuple[tuple[str, ...], str], list[int]] = {}
        for place, prompt in enumerate(prompts):
            places_of.setdefault((prompt.turns, prompt.knowledge), []).append(place)
        for (turns, knowledge), places in places_of.items():
            replies = [self._reply_ids(prompts[place].reply) for place in places]
            yield ContextReplies(places, self._prefixes(turns, knowledge), replies)

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
        return {name: [*self._begin, *ids] for name, ids in prefixes.items()}

    def _score(self, prefix: Sequence[int], replies: Sequence[Sequence[int]]) -> list[Floats]:
        from palaver.models.likelihood import continue_prefix

        logits, tokens = continue_prefix(self.model, prefix, replies)  # (B, T, V), (B, T)
        chosen = logits.gather(2, tokens[..., None])[..., 0] - logits.logsumexp(dim=2)  # (B, T)
        values = chosen.double().cpu().numpy()
        return [values[row, : len(ids)] for row, ids in enumerate(replies)]
