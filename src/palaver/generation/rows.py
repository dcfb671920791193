"""Rows of a decoder's state: every tensor inside it has the batch in front."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

FEW = 0.75
"""Rows that have ended are taken out once no more than this share still runs: taking out means copying."""


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
