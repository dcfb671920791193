"""The lower layers of a Llama with low-rank changes, in few and large kernels, for training.

The weights of all layers lie in one array a kind, (L, out, in). The changes up @ down are added to them once
a step, so that a pass costs what the base costs. Equal to the network of `transformers` (there is a test).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

N_LIKELIHOODS = 3
_CHUNK = 8192
"""Tokens whose likelihoods are computed at a time."""
_USUAL_LIKELIHOOD, _LIKELIHOOD_UNIT = -3.0, 0.25
KINDS = {
    "q_proj": "self_attn", "k_proj": "self_attn", "v_proj": "self_attn", "o_proj": "self_attn",
    "gate_proj": "mlp", "up_proj": "mlp", "down_proj": "mlp",
}  # fmt: skip


class PlainLlama:
    """The frozen base. `merge` adds changes to its weights, `states` reads tokens with the sum."""

    def __init__(
        self, base: Any, device: torch.device, dtype: torch.dtype, *, compiled: bool = False
    ) -> None:
        config = base.config
        self.layer = torch.compile(self._layer, dynamic=True) if compiled else self._layer
        self.n_heads, self.n_kv = config.num_attention_heads, config.num_key_value_heads
        self.width, self.epsilon = config.hidden_size, config.rms_norm_eps
        self.rotary = base.rotary_emb.to(device)

        def stack(arrays: list[torch.Tensor]) -> torch.Tensor:
            return torch.stack([array.detach() for array in arrays]).to(device, dtype)

        self.weights = {
            kind: stack([getattr(getattr(layer, part), kind).weight for layer in base.layers])
            for kind, part in KINDS.items()
        }
        self.first_norms = stack([layer.input_layernorm.weight for layer in base.layers])
        self.second_norms = stack([layer.post_attention_layernorm.weight for layer in base.layers])
        self.last_norm = base.norm.weight.detach().to(device, dtype)
        self.embedding = base.embed_tokens.weight.detach().to(device, dtype)  # (V, C)
        self.n_layers = len(base.layers)

    def fresh_adapter(self, rank: int, n_frozen: int = 0) -> dict[str, torch.Tensor]:
        """An adapter that changes nothing yet: `KIND.down` (L, r, in) and `KIND.up` (L, out, r).

        The lowest `n_frozen` layers get none.
        """
        adapter = {}
        for kind, weight in self.weights.items():
            n_layers, n_out, n_in = weight[n_frozen:].shape
            down = torch.randn(n_layers, rank, n_in, device=weight.device) / math.sqrt(n_in)
            adapter[f"{kind}.down"] = down.requires_grad_()
            adapter[f"{kind}.up"] = torch.zeros(n_layers, n_out, rank, device=weight.device).requires_grad_()
        return adapter

    def merge(self, adapter: dict[str, torch.Tensor], scale: float) -> dict[str, Any]:
        """The weights of the layers that have changes, and scale * up @ down; `adapter` may hold more."""
        merged = {}
        for kind, weight in self.weights.items():
            down, up = (adapter[f"{kind}.{side}"].to(weight.dtype) for side in ("down", "up"))
            merged[kind] = weight[-len(down) :] + (scale * up) @ down
        return merged

    def states(self, tokens: torch.Tensor, weights: dict[str, Any]) -> torch.Tensor:
        """(B, T, C) what the last layer holds at every token, behind the last norm."""
        return self.upper_states(self.embedding[tokens], weights)

    def lower_states(self, tokens: torch.Tensor, n_layers: int) -> torch.Tensor:
        """(B, T, C) what the lowest layers of the base make of the tokens."""
        with torch.no_grad():
            lowest = {kind: weight[:n_layers] for kind, weight in self.weights.items()}
            return self._through(self.embedding[tokens], lowest, 0)

    def upper_states(self, x: torch.Tensor, weights: dict[str, Any]) -> torch.Tensor:
        """(B, T, C) what the last layer holds, from what the layers below `weights` made."""
        n_frozen = self.n_layers - len(next(iter(weights.values())))
        x = self._through(x, weights, n_frozen)
        return functional.rms_norm(x, (self.width,), self.last_norm, self.epsilon)

    def _through(self, x: torch.Tensor, weights: dict[str, Any], begin: int) -> torch.Tensor:
        """(B, T, C) after the layers from number `begin` on whose weights these are."""
        at = torch.arange(x.shape[1], device=x.device)[None]
        cos, sin = (part[:, None] for part in self.rotary(x, at))  # (1, 1, T, d)
        of_layers = [dict(zip(weights, own, strict=True)) for own in zip(*weights.values(), strict=True)]
        for i, own in enumerate(of_layers, begin):
            x = self.layer(x, cos, sin, own, self.first_norms[i], self.second_norms[i])
        return x

    def _layer(
        self, x: Any, cos: Any, sin: Any, w: dict[str, Any], first_norm: Any, second_norm: Any
    ) -> torch.Tensor:
        """(B, T, C) attention and the gated map."""
        y = functional.rms_norm(x, (self.width,), first_norm, self.epsilon)
        q, k, v = (
            functional.linear(y, w[kind]).unflatten(-1, (n, -1)).transpose(1, 2)  # (B, n, T, d)
            for kind, n in (("q_proj", self.n_heads), ("k_proj", self.n_kv), ("v_proj", self.n_kv))
        )
        q, k = _turn(q, cos, sin), _turn(k, cos, sin)
        k, v = (part.repeat_interleave(self.n_heads // self.n_kv, 1) for part in (k, v))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + functional.linear(heads.transpose(1, 2).flatten(2), w["o_proj"])
        y = functional.rms_norm(x, (self.width,), second_norm, self.epsilon)
        gated = functional.silu(functional.linear(y, w["gate_proj"])) * functional.linear(y, w["up_proj"])
        return x + functional.linear(gated, w["down_proj"])


def _turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def reply_likelihoods(hidden: Any, embedding: Any, tokens: Any, roles: Any, of_system: Any) -> Any:
    """(B, 3) the mean log-likelihood of the system's tokens: of all, of its least likely turn, of its last.

    `of_system` holds the places, in (B, T - 1) laid flat, whose next token is the system's.
    """
    n, length = tokens.shape[0], tokens.shape[1] - 1
    before = hidden[:, :-1].reshape(n * length, -1)[of_system]  # (m, C)
    goal = tokens[:, 1:].reshape(-1)[of_system]  # (m,)
    parts = [
        -functional.cross_entropy((states @ embedding.T).float(), goals, reduction="none")
        for states, goals in zip(before.split(_CHUNK), goal.split(_CHUNK), strict=True)
    ]
    likelihood = torch.cat(parts)  # (m,)
    changes = (roles[:, 1:] != roles[:, :-1]).long().cumsum(1)  # (B, T - 1) the number of the turn
    n_turns = length + 1
    turn = (changes + n_turns * torch.arange(n, device=tokens.device)[:, None]).reshape(-1)[of_system]
    flat = likelihood.new_zeros(n * n_turns)
    sums = flat.index_add(0, turn, likelihood).view(n, n_turns)
    counts = flat.index_add(0, turn, torch.ones_like(likelihood)).view(n, n_turns)
    means = sums / counts.clamp(min=1)
    every = sums.sum(1) / counts.sum(1).clamp(min=1)
    lowest = means.masked_fill(counts == 0, math.inf).amin(1)
    numbers = torch.arange(n_turns, device=tokens.device)
    last_turn = torch.where(counts > 0, numbers, 0).amax(1)
    last = means.gather(1, last_turn[:, None])[:, 0]
    spoken = counts.sum(1) > 0
    values = torch.stack([every, torch.where(spoken, lowest, 0.0), last], 1)
    usual = torch.where(spoken[:, None], values, _USUAL_LIKELIHOOD)
    return (usual - _USUAL_LIKELIHOOD) / _LIKELIHOOD_UNIT
