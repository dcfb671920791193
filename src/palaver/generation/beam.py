"""Beam search with a length penalty: score = ln p / length^penalty, the end mark counted in the length.

At every step an example's k best continuations count: those that end are finished. The k best of those that
do not end go on. An example is over when it has k finished responses, and none that runs would be among the
best k if it ended with the score it has now. These are the rules of `transformers`, and so are the responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from palaver.generation import choose
from palaver.models.pretrained import Responder
from palaver.text.vocabulary import BOS, EOS, PAD

if TYPE_CHECKING:
    from palaver.generation.decode import Decoding

FEW = 0.75
"""Rows that have ended are taken out once no more than this share still runs: taking out means copying."""


def search(
    model: Responder, state: Any, n: int, decoding: Decoding, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best response (n, longest) to each example and its ln p; `state` holds one row per example."""
    device, k = model.device, decoding.beam_size
    exact = torch.promote_types(model.dtype, torch.float32)
    ends = _Finished(n, k, longest, exact, device)
    place = torch.arange(n, device=device)
    tokens = torch.empty((n, 1, 0), dtype=torch.int64, device=device)  # (n, k, t); one beam to begin with
    scores = torch.zeros((n, 1), dtype=exact, device=device)  # ln p of the running beams
    last = torch.full((n,), BOS, device=device)
    for step in range(longest):
        logits, state = model.step(state, last)  # (n k, V)
        logp = torch.log_softmax(logits.to(exact), 1)
        logp = choose.forbid(logp, step, decoding.min_length)
        logp = choose.forbid_repeats(logp, tokens.flatten(0, 1), decoding.no_repeat_ngram)
        size = logp.shape[1]
        reached = logp.view(len(place), -1, size).add_(scores.unsqueeze(2)).flatten(1)  # (n, k V)
        best, places = reached.topk(min(2 * k, reached.shape[1]), dim=1)  # at most k of the 2k are ends
        beams, words = places // size, places % size  # (n, 2k)
        going_on = words != EOS
        length = (step + 1) ** decoding.length_penalty
        counted = best[:, :k] if step + 1 == longest else best.masked_fill(going_on, -torch.inf)[:, :k]
        worst = ends.offer(place, counted, length, tokens, beams, words)  # (n,)
        if step + 1 == longest:
            break
        scores, kept = best.masked_fill(~going_on, -torch.inf).topk(min(k, best.shape[1]), dim=1)  # (n, k)
        beams, words = beams.gather(1, kept), words.gather(1, kept)
        running = scores[:, 0] / length > worst
        scores.masked_fill_(~running.unsqueeze(1), -torch.inf)  # so that nothing more comes of the others
        left = int(running.sum())
        if not left:
            break
        if left <= FEW * len(place):
            rows = running.nonzero().squeeze(1)
            state = take(state, rows)
            place, tokens, scores, beams, words = (
                part[rows] for part in (place, tokens, scores, beams, words)
            )
        state = reorder(state, beams, model.moving)
        before = tokens.gather(1, beams.unsqueeze(2).expand(-1, -1, step))
        tokens, last = torch.cat((before, words.unsqueeze(2)), 2), words.flatten()
    return ends.tokens.cpu().numpy(), ends.logprob.double().cpu().numpy()


class _Finished:
    """The k best scores of finished responses to each example, and the best response itself."""

    def __init__(self, n: int, k: int, longest: int, exact: torch.dtype, device: torch.device) -> None:
        self.scores = torch.full((n, k), -torch.inf, dtype=exact, device=device)  # from the best down
        self.logprob = torch.full((n,), -torch.inf, dtype=exact, device=device)
        self.tokens = torch.full((n, longest), PAD, device=device)

    def offer(
        self, place: Tensor, logprobs: Tensor, length: float, tokens: Tensor, beams: Tensor, words: Tensor
    ) -> Tensor:
        """Candidates (n, k), -inf those that have not ended: `tokens` of `beams`, and one of `words`.

        The k-th best score of each example so far: (n,).
        """
        before = self.scores[place]
        scores = logprobs / length
        first = scores.argmax(1, keepdim=True)  # (n, 1)
        rows = (scores.gather(1, first) > before[:, :1]).squeeze(1).nonzero().squeeze(1)
        first, new = first[rows], place[rows]
        beam = beams[rows].gather(1, first).squeeze(1)
        step = tokens.shape[2]
        self.tokens[new, :step] = tokens[rows, beam]
        self.tokens[new, step] = words[rows].gather(1, first).squeeze(1)
        self.logprob[new] = logprobs[rows].gather(1, first).squeeze(1)
        after = torch.cat((before, scores), 1).topk(before.shape[1], dim=1).values
        self.scores[place] = after
        return after[:, -1]


def take(state: Any, index: Tensor) -> Any:
    """The rows `index` of all tensors in nested tuples; what is no tensor stays."""
    if isinstance(state, torch.Tensor):
        return state.index_select(0, index)
    if isinstance(state, tuple):
        parts = [take(part, index) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
    return state


def reorder(state: Any, beams: Tensor, fields: tuple[str, ...]) -> Any:
    """Beams `beams` (B, k) of each example. Only the named fields, (B, …), have them; the rest they share."""
    return state._replace(**{name: _gather(getattr(state, name), beams) for name in fields})


def _gather(value: Any, beams: Tensor) -> Any:
    if isinstance(value, tuple):
        return tuple(_gather(part, beams) for part in value)
    places = torch.arange(len(beams), device=beams.device).unsqueeze(1) * value.shape[1] + beams  # (B, k)
    return value.flatten(0, 1).index_select(0, places.flatten()).unflatten(0, beams.shape)
