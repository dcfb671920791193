"""Beam search with a length penalty: score = ln p / length^penalty, the end mark counted in the length.

An example ends when no running beam can still beat its best finished one, which is exact: ln p only falls,
and no response gets longer than the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from palaver.generation import choose
from palaver.generation.rows import reorder, take
from palaver.models import Responder
from palaver.text.vocabulary import BOS, EOS, PAD

if TYPE_CHECKING:
    from palaver.generation.decode import Decoding


def search(
    model: Responder, state: Any, n: int, decoding: Decoding, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best response (n, longest) to each example and its ln p; `state` holds one row per example."""
    device, k = model.device, decoding.beam_size
    exact = torch.promote_types(model.dtype, torch.float32)
    output = np.full((n, longest), PAD, dtype=np.int64)
    logprobs = np.zeros(n)
    examples = torch.arange(n, device=device)
    state = take(state, examples.repeat_interleave(k))
    tokens = torch.full((n, k, longest), PAD, device=device)
    scores = torch.full((n, k), -torch.inf, dtype=exact, device=device)  # ln p of the running beams
    scores[:, 0] = 0  # all beams are equal at first: one is enough
    best = _Best(n, longest, exact, device)
    last = torch.full((n * k,), BOS, device=device)
    for step in range(longest):
        logits, state = model.step(state, last)  # (n k, V)
        logp = torch.log_softmax(logits.to(exact), 1)
        logp = choose.forbid(logp, step, decoding.min_length)
        logp = choose.forbid_repeats(logp, tokens.flatten(0, 1)[:, :step], decoding.no_repeat_ngram)
        size = logp.shape[1]
        reached = scores.unsqueeze(2) + logp.view(len(examples), k, size)  # (n, k, V)
        ended = reached[:, :, EOS] / (step + 1) ** decoding.length_penalty  # (n, k)
        best.offer(ended, tokens, step, EOS, reached[:, :, EOS])
        reached[:, :, EOS] = -torch.inf
        scores, places = reached.flatten(1).topk(k, dim=1)  # (n, k)
        beams, words = places // size, places % size
        tokens = tokens.gather(1, beams.unsqueeze(2).expand(-1, -1, longest))
        tokens[:, :, step] = words
        order = (torch.arange(len(examples), device=device).unsqueeze(1) * k + beams).flatten()
        state = reorder(state, order, model.moving)
        last = words.flatten()
        if step + 1 == longest:
            best.offer(scores / longest**decoding.length_penalty, tokens, longest, PAD, scores)
        most = scores[:, 0] / (longest**decoding.length_penalty if decoding.length_penalty > 0 else 1)
        running = best.score < most
        if step + 1 == longest or not running.all():
            over = ~running if step + 1 < longest else torch.ones_like(running)
            rows = examples[over].cpu().numpy()
            output[rows] = best.tokens[over].cpu().numpy()
            logprobs[rows] = best.logprob[over].double().cpu().numpy()
            kept = (~over).nonzero().squeeze(1)
            if not len(kept):
                break
            examples, tokens, scores = examples[kept], tokens[kept], scores[kept]
            best.keep(kept)
            rows_kept = (kept.unsqueeze(1) * k + torch.arange(k, device=device)).flatten()
            state, last = take(state, rows_kept), last[rows_kept]
    return output, logprobs


class _Best:
    """The best finished response of each example so far."""

    def __init__(self, n: int, longest: int, exact: torch.dtype, device: torch.device) -> None:
        self.score = torch.full((n,), -torch.inf, dtype=exact, device=device)
        self.logprob = self.score.clone()
        self.tokens = torch.full((n, longest), PAD, device=device)

    def offer(self, scores: Tensor, tokens: Tensor, step: int, end: int, logprobs: Tensor) -> None:
        """Beams (n, k, …) that end here with `scores` (n, k); `end` is their last token, at `step`."""
        score, beam = scores.max(1)
        rows = torch.arange(len(score), device=score.device)
        offered = tokens[rows, beam].clone()
        if step < offered.shape[1]:
            offered[:, step] = end
            offered[:, step + 1 :] = PAD
        better = score > self.score
        self.score = torch.where(better, score, self.score)
        self.logprob = torch.where(better, logprobs[rows, beam], self.logprob)
        self.tokens = torch.where(better.unsqueeze(1), offered, self.tokens)

    def keep(self, index: Tensor) -> None:
        self.score, self.logprob, self.tokens = self.score[index], self.logprob[index], self.tokens[index]
