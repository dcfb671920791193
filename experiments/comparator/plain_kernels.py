"""The compiled loops of the comparator in plain NumPy, for machines without numba (many GPU machines).

`use_where_needed()` puts them in the place of `palaver.comparator.cmade._kernels`. They give the same to
rounding.
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np


def use_where_needed() -> None:
    """Only where numba cannot be imported."""
    if importlib.util.find_spec("numba") is None:
        sys.modules["palaver.comparator.cmade._kernels"] = sys.modules[__name__]


def squared_norms(x: Any, centre: Any) -> Any:
    gap = x - centre
    return np.einsum("nd,nd->n", gap, gap).astype(np.float32)


def finish_distances(products: Any, norms: Any, constants: Any) -> None:
    products += norms
    products += constants[:, None]
    np.maximum(products, 0, out=products)


def add_shapley(bits: Any, weights: Any, table: Any, shares: Any, k: int) -> None:
    order = np.argsort(bits, axis=1, kind="stable")  # (B, N) near to far
    y = table[:, 0][order]
    last = y[:, -1:] / max(y.shape[1], k)
    steps = (y[:, :-1] - y[:, 1:]) * shares[1:-1]
    s = np.concatenate([np.cumsum(steps[:, ::-1], axis=1)[:, ::-1], np.zeros_like(last)], axis=1) + last
    np.add.at(table[:, 1], order, weights[:, None] * s)


def pair_bounds(targets: Any, groups: Any, starts: Any, ends: Any) -> None:
    begin = 0
    for end in [*(np.flatnonzero(np.diff(groups)) + 1), len(targets)]:
        own = targets[begin:end]
        starts[begin:end] = begin
        ends[begin:end] = begin + np.searchsorted(own, own, side="left")
        begin = int(end)


def add_pairs(o: Any, starts: Any, ends: Any, lambdas: Any) -> float:
    return add_pairs_weighted(o, np.ones(len(o)), starts, ends, lambdas)


def add_pairs_weighted(o: Any, w: Any, starts: Any, ends: Any, lambdas: Any) -> float:
    loss = 0.0
    for i in range(len(o)):
        part = slice(starts[i], ends[i])
        gap = o[part] - o[i]
        weight = w[i] * w[part]
        share = weight / (1 + np.exp(-np.clip(gap, -700, 700)))
        loss += float((weight * np.logaddexp(0, gap)).sum())
        lambdas[part] += share
        lambdas[i] -= share.sum()
    return loss
