"""Rows of a decoder's state: every tensor inside it has the batch in front."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def take(state: Any, index: Tensor) -> Any:
    """The rows `index` of all tensors in nested named tuples; what is no tensor stays."""
    if isinstance(state, torch.Tensor):
        return state.index_select(0, index)
    if isinstance(state, tuple):
        return type(state)(*(take(part, index) for part in state))
    return state


def reorder(state: Any, index: Tensor, fields: tuple[str, ...]) -> Any:
    """The rows `index` of the named fields only: what beams of one example share needs no moving."""
    return state._replace(**{name: take(getattr(state, name), index) for name in fields})
