"""Weights of 16 bits, for answering on a processor: a language model that says one token at a time is as fast
as its weights come out of the memory.

Each row of a weight is rounded to 65,535 levels of its own. The model then *is* the rounded one: where
several rows come at once they are multiplied with the rounded weights in float32, so a reply does not depend
on those around it. With 8 bits a token comes hardly sooner, and most greedy replies of SmolLM2 change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEVELS = 32_767


class Int16Linear(nn.Module):
    """A linear layer that reads two bytes per weight when a single row comes."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        from palaver.models._int16_kernel import multiply

        self._multiply = multiply
        levels, scale = round_rows(linear.weight.detach())
        self._levels: NDArray[np.int16] = levels.numpy()  # (N, M)
        self._scale: NDArray[np.float32] = scale.numpy()  # (N,)
        self.weight = nn.Parameter(levels * scale.unsqueeze(1), requires_grad=False)  # (N, M)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        if x.numel() != x.shape[-1]:
            return F.linear(x, self.weight, self.bias)
        out = np.empty(len(self._scale), np.float32)
        self._multiply(self._levels, self._scale, x.detach().reshape(-1).numpy(), out)
        product = torch.from_numpy(out).view(*x.shape[:-1], -1)
        return product if self.bias is None else product + self.bias


def round_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(N, M) -> whole numbers up to 32,767 (N, M), and what one of them is worth in each row (N,)."""
    scale = weight.float().abs().amax(1).clamp(min=1e-12) / LEVELS
    return (weight / scale.unsqueeze(1)).round().to(torch.int16), scale


def round_weights(model: nn.Module) -> None:
    """Put 16-bit layers in place of all linear ones. Adapters must have been merged; there is no way back."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            linear = _merged_linear(child)
            if linear is not None:
                setattr(parent, name, Int16Linear(linear))


def _merged_linear(module: Any) -> nn.Linear | None:
    """The layer itself; of one with an adapter, the layer that the adapter was added to."""
    if getattr(module, "merged", False):
        module = module.get_base_layer()
    return module if isinstance(module, nn.Linear) else None
