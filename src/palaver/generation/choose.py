"""The next token of every row: the best one, or one drawn with the row's own random numbers.

A row's numbers depend on the seed, the example's key and the step alone, so that a response does not change
with the batch it was made in. "Stochastic greedy sampling" (Li et al. 2017, used by Xing & Fernández 2018)
draws among the k most probable tokens at every step.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from palaver.text.vocabulary import BOS, EOS, PAD, SEP, UNK

_NEVER = (slice(PAD, BOS + 1), slice(UNK, SEP + 1))
"""Marks that are no words; EOS is between them. Slices, because filling columns by a list is slow."""


_PLAUSIBLE = 0.1


def _logsumexp(logits: Tensor) -> Tensor:
    return torch.logsumexp(logits.to(torch.promote_types(logits.dtype, torch.float32)), 1)


_fused = functools.cache(lambda: torch.compile(_logsumexp, dynamic=True))


def total(logits: Tensor) -> Tensor:
    """ln of the sum that turns `logits` (B, V) into probabilities: (B,). On a GPU in one pass over them."""
    if logits.is_cuda:
        return _fused()(logits)
    exact = logits.to(torch.promote_types(logits.dtype, torch.float32))
    any_finite = PAD if exact[0, PAD] > -torch.inf else EOS  # a language model never says <pad>
    column = exact[:, any_finite]
    return column - torch.log_softmax(exact, 1)[:, any_finite]  # half the time of logsumexp


def most_probable(logits: Tensor) -> Tensor:
    """The best token of each row: (B,)."""
    if logits.is_cuda or logits.dtype not in (torch.float32, torch.float64):
        return logits.argmax(1)
    return torch.from_numpy(logits.numpy().argmax(1))  # a tenth of the time of torch's own


def forbid(logits: Tensor, step: int, min_length: int) -> Tensor:
    """`logits` (B, V) without the marks that are no words, and without the end while it is too early."""
    for marks in _NEVER:
        logits[:, marks] = -torch.inf
    if step < min_length:
        logits[:, EOS] = -torch.inf
    return logits


def forbid_repeats(logits: Tensor, tokens: Tensor, n: int) -> Tensor:
    """No n-gram of `tokens` (B, t) a second time."""
    if n < 1 or tokens.shape[1] < n:
        return logits
    grams = tokens.unfold(1, n, 1)  # (B, t - n + 1, n)
    last = tokens[:, tokens.shape[1] - n + 1 :]  # (B, n - 1)
    again = (grams[:, :, :-1] == last.unsqueeze(1)).all(2)  # (B, t - n + 1)
    row, place = again.nonzero(as_tuple=True)
    logits[row, grams[row, place, -1]] = -torch.inf
    return logits


def penalise(logits: Tensor, tokens: Tensor, penalty: float) -> Tensor:
    """`logits` (B, V) of `tokens` (B, t), which were said: divided by `penalty`, multiplied where below 0."""
    said = logits.gather(1, tokens)  # (B, t)
    return logits.scatter_(1, tokens, torch.where(said < 0, said * penalty, said / penalty))


def guide(logits: Tensor, other: Tensor, strength: float) -> Tensor:
    """`logits` (B, V) moved away from `other`: what makes a token likelier here counts 1 + `strength` times.

    Only tokens that are at least `_PLAUSIBLE` times as probable as the best one are left, or what is rare in
    both would win (Li et al. 2023).
    """
    moved = logits + strength * (logits - other)
    least = logits.amax(1, keepdim=True) + math.log(_PLAUSIBLE)
    return torch.where(logits >= least, moved, -torch.inf)


def uniform(seed: int, keys: Tensor, step: int) -> Tensor:
    """A number in [0, 1) per row: two rounds of the splitmix64 finaliser over seed, key and step."""
    mixed = _mix(keys ^ as_signed(seed * 0x9E3779B97F4A7C15))
    mixed = _mix(mixed + as_signed((step + 1) * 0xD1B54A32D192ED03))
    return (_shift(mixed, 11)).to(torch.float64) * 2.0**-53  # (B,)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift(x, 30)) * as_signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shift(x, 27)) * as_signed(0x94D049BB133111EB)
    return x ^ _shift(x, 31)


def _shift(x: Tensor, by: int) -> Tensor:
    """Shift right, zeros coming in: torch has signed integers only."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def as_signed(x: int) -> int:
    """The 64 lowest bits as a signed number, which is what torch has."""
    x &= (1 << 64) - 1
    return x - (1 << 64) if x >> 63 else x


def draw(
    logits: Tensor, numbers: Tensor, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> Tensor:
    """One token per row (B,): among the `top_k` best, of these the fewest that hold `top_p` of the mass."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    if 0 < top_k < logits.shape[1]:
        best, ids = torch.topk(logits, top_k, dim=1)  # (B, k), from the most probable down
        best = best.to(exact) / temperature
    elif top_p < 1:
        best, ids = _nucleus(logits.to(exact) / temperature, top_p)
    else:
        return _invert(torch.softmax(logits.to(exact) / temperature, 1), numbers).squeeze(1)
    weights = torch.softmax(best, 1)
    if top_p < 1:
        before = weights.cumsum(1) - weights
        weights = weights.masked_fill(before >= top_p, 0.0)
    return ids.gather(1, _invert(weights, numbers)).squeeze(1)


def _nucleus(logits: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """The most probable tokens in order, as many as surely hold `top_p` of the mass, then the rest as one.

    Sorting a whole vocabulary is what makes nucleus sampling slow; its nucleus is nearly always among the
    first hundred.
    """
    size = logits.shape[1]
    total = torch.logsumexp(logits, 1, keepdim=True)  # (B, 1)
    wanted = 128
    while wanted < size:
        best, ids = torch.topk(logits, wanted, dim=1)
        held = (best - total).exp().sum(1, keepdim=True)
        if bool((held >= top_p).all()):
            rest = torch.log((1 - held).clamp(min=1e-30)) + total  # comes after `top_p`, so it is never drawn
            return torch.cat((best, rest), 1), torch.cat((ids, ids[:, :1]), 1)
        wanted *= 4
    return torch.topk(logits, size, dim=1)


def _invert(weights: Tensor, numbers: Tensor) -> Tensor:
    """The place (B, 1) where the cumulated weights pass `numbers` of their total."""
    cumulated = weights.double().cumsum(1)
    total = cumulated[:, -1:]
    wanted = torch.minimum(numbers.unsqueeze(1) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulated, wanted, right=True)
