"""A BERT in bfloat16 for a processor that has it, faster than the general one and without padding.

The tokens of a batch stand in one long row, text after text: all but attention treats each token by itself,
so texts of any length share a product of matrices. A text's vector does not depend on its neighbours.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from palaver.models import devices

_HALF = torch.bfloat16


class PackedLinear:
    """A linear map in bfloat16. Its weights are packed once for the processor; what follows is fused."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(_HALF))  # (N, M)
        self._bias = bias.detach().to(_HALF)  # (N,)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "none", [], "")

    def gelu(self, x: Tensor) -> Tensor:
        """The GELU of the map of `x`."""
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, self._bias, "gelu", [], "none")

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """The map of `x`, plus `other`."""
        return torch.ops.mkldnn._linear_pointwise.binary(x, other, self._weight, self._bias, "add")


class HalfLayer:
    """One layer of a BERT."""

    def __init__(self, layer: Any, n_heads: int) -> None:
        attention, after = layer.attention.self, layer.attention.output
        self._n_heads = n_heads
        scale = (attention.query.out_features // n_heads) ** -0.5
        projections = (attention.key, attention.value)
        self._project = PackedLinear(
            torch.cat([attention.query.weight * scale, *(each.weight for each in projections)]),
            torch.cat([attention.query.bias * scale, *(each.bias for each in projections)]),
        )
        self._attended = PackedLinear(after.dense.weight, after.dense.bias)
        self._widen = PackedLinear(layer.intermediate.dense.weight, layer.intermediate.dense.bias)
        self._narrow = PackedLinear(layer.output.dense.weight, layer.output.dense.bias)
        self._norms = [_halved_norm(after.LayerNorm), _halved_norm(layer.output.LayerNorm)]

    def __call__(self, states: Tensor, spans: list[tuple[int, int]]) -> Tensor:
        """(N, C) -> (N, C); `spans` are numbers of tokens one after another, and of how long texts."""
        projected = self._project(states).split([n_tokens for n_tokens, _ in spans])
        attended = torch.cat(
            [self._attend(part, length) for part, (_, length) in zip(projected, spans, strict=True)]
        )
        states = self._norms[0](self._attended.plus(attended, states))
        return self._norms[1](self._narrow.plus(self._widen.gelu(states), states))

    def _attend(self, projected: Tensor, length: int) -> Tensor:
        """(B * T, 3C) queries, keys and values of B texts of T tokens -> (B * T, C)."""
        parts = projected.view(-1, length, 3, self._n_heads, projected.shape[1] // 3 // self._n_heads)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4).flatten(1, 2)  # (B * H, T, D)
        weights = torch.bmm(queries, keys.transpose(1, 2)).softmax(-1)  # (B * H, T, T)
        attended = torch.bmm(weights, values).unflatten(0, (-1, self._n_heads))  # (B, H, T, D)
        return attended.transpose(1, 2).reshape(len(projected), -1)


class HalfBert:
    """The layers of a BERT in bfloat16. The embeddings stay in full precision."""

    def __init__(self, model: Any) -> None:
        self._embeddings = model.embeddings
        self._layers = [HalfLayer(layer, model.config.num_attention_heads) for layer in model.encoder.layer]

    @staticmethod
    def can_take(model: Any) -> bool:
        """Whether this is a BERT as it was published, on a processor that has bfloat16."""
        config = model.config
        is_bert = config.model_type == "bert" and config.hidden_act == "gelu"
        is_on_cpu = model.device.type == "cpu"
        return is_bert and is_on_cpu and devices.has_bfloat16() and _can_pack()

    def mean_states(self, rows: list[list[int]]) -> Tensor:
        """(B, C) the mean of the last states of each text; texts of equal length follow one another."""
        ids = torch.tensor([token for row in rows for token in row])  # (N,)
        places = torch.tensor([place for row in rows for place in range(len(row))])  # (N,)
        spans = [(length * len(list(texts)), length) for length, texts in groupby(map(len, rows))]
        states = self._embeddings(input_ids=ids[None], position_ids=places[None])[0].to(_HALF)  # (N, C)
        for layer in self._layers:
            states = layer(states, spans)
        parts = states.split([n_tokens for n_tokens, _ in spans])
        means = [
            part.float().unflatten(0, (-1, length)).mean(1)
            for part, (_, length) in zip(parts, spans, strict=True)
        ]
        return torch.cat(means)


def _can_pack() -> bool:
    """Whether this torch has the operations of `PackedLinear`, which it does not promise to keep."""
    names = ("_reorder_linear_weight", "_linear_pointwise")
    return torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in names)


def _halved_norm(norm: nn.LayerNorm) -> Any:
    weight, bias = norm.weight.detach().to(_HALF), norm.bias.detach().to(_HALF)  # (C,)
    return lambda states: F.layer_norm(states, weight.shape, weight, bias, norm.eps)
