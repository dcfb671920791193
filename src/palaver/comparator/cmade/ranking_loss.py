"""The loss of all pairs with one forward and one backward pass a dialogue (Liang et al. 2020, section 5.4).

With P(i > j) = sigmoid(o_i - o_j) and the pairs I = {(i, j): dialogue i has the higher target},

    L = sum_I log(1 + e^(o_j - o_i)),   lambda_i = dL/do_i
      = - sum_{j: (i,j) in I} sigmoid(o_j - o_i) + sum_{j: (j,i) in I} sigmoid(o_i - o_j)

(theorem 2; its second sum is printed there without the change of sign that j > i needs). L and lambda depend
on the scores alone: the network is run forward once, lambda is its output's gradient, and no pair is ever
encoded. Sorted by group and target the losers of i are a stretch of neighbours, so only real pairs are
visited, and groups cost what they hold. Memory O(N) on a CPU, O(block^2) on a GPU; time O(number of pairs).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_SPREAD = 60.0  # scores closer than this share their exponentials; see `_kernels.add_pairs`


def pair_weights(
    scores: Tensor,
    targets: Tensor,
    *,
    groups: Tensor | None = None,
    weights: Tensor | None = None,
    block: int = 4096,
) -> tuple[Tensor, Tensor]:
    """The mean loss and lambda (N,) = d loss / d scores over all pairs with targets[i] > targets[j].

    `groups`: only pairs within a group count. `weights`: a pair weighs w_i w_j, and the mean is by weight.
    Without any pair both are nought, so that a training step does nothing.
    """
    if block < 1:
        raise ValueError(f"block must be 1 or more, not {block}")
    o = _column("scores", scores.detach(), scores.shape).to(torch.promote_types(scores.dtype, torch.float32))
    order, starts, ends = _bounds(targets, groups, scores.shape)
    w = None
    if weights is not None:
        w = _column("weights", weights.detach(), scores.shape).to(torch.float64).cpu().numpy()[order]
        if (w < 0).any():
            raise ValueError("weights must not be negative")

    if not order.size:
        loss, lambdas = o.new_zeros(()), o
    elif o.device.type == "cpu":
        loss, lambdas = _on_cpu(o.numpy().astype(np.float64)[order], w, starts, ends)
    else:
        loss, lambdas = _in_tiles(o, w, order, starts, ends, block)
    total = _total_weight(w, starts, ends)
    if total:
        loss, lambdas = loss / total, lambdas / total
    result = torch.empty_like(o)
    result[torch.from_numpy(order).to(o.device)] = lambdas.to(o)
    return loss.to(o), result.to(scores.dtype)


def _column(name: str, column: Tensor, shape: torch.Size) -> Tensor:
    if column.ndim != 1 or column.shape != shape:
        raise ValueError(f"{name} must be 1-D and as long as the scores, not of shape {tuple(column.shape)}")
    if column.is_floating_point() and not bool(torch.isfinite(column).all()):
        bad = int((~torch.isfinite(column)).sum())
        raise ValueError(f"{name} must be finite: {bad} of {len(column)} are nan or infinite")
    return column


def _bounds(
    targets: Tensor, groups: Tensor | None, shape: torch.Size
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order by group and target, and for each place in it where its losers begin and end."""
    from palaver.comparator.cmade._kernels import pair_bounds

    t = _column("targets", targets.detach(), shape).cpu().numpy().astype(np.float64)
    if groups is None:
        g = np.zeros(len(t), np.int64)
        order = np.argsort(t, kind="stable")
    else:
        if groups.is_floating_point():
            raise ValueError(f"groups must hold integers, not {groups.dtype}")
        g = _column("groups", groups.detach(), shape).cpu().numpy().astype(np.int64)
        order = np.lexsort((t, g))
    starts, ends = np.empty((2, len(t)), np.int64)
    pair_bounds(t[order], g[order], starts, ends)
    return order, starts, ends


def _total_weight(w: np.ndarray | None, starts: np.ndarray, ends: np.ndarray) -> float:
    if w is None:
        return float((ends - starts).sum())
    before = np.concatenate([[0.0], np.cumsum(w)])
    return float((w * (before[ends] - before[starts])).sum())


def _on_cpu(
    o: np.ndarray, w: np.ndarray | None, starts: np.ndarray, ends: np.ndarray
) -> tuple[Tensor, Tensor]:
    from palaver.comparator.cmade._kernels import add_pairs, add_pairs_weighted

    lambdas = np.zeros(len(o))
    if w is None and np.ptp(o) < _SPREAD:
        loss = add_pairs(o, starts, ends, lambdas)
    else:
        loss = add_pairs_weighted(o, np.ones(len(o)) if w is None else w, starts, ends, lambdas)
    return torch.tensor(loss, dtype=torch.float64), torch.from_numpy(lambdas)


def _in_tiles(
    scores: Tensor, w: np.ndarray | None, order: np.ndarray, starts: np.ndarray, ends: np.ndarray, block: int
) -> tuple[Tensor, Tensor]:
    """The same on an accelerator: tiles of block x block pairs in the scores' type, sums in float64."""
    device = scores.device
    o = scores[torch.from_numpy(order).to(device)]
    begins, stops = torch.from_numpy(starts).to(device), torch.from_numpy(ends).to(device)
    v = None if w is None else torch.from_numpy(w).to(o)
    double = torch.float32 if device.type == "mps" else torch.float64
    loss = torch.zeros((), dtype=double, device=device)
    lambdas = torch.zeros(len(o), dtype=double, device=device)
    for top in range(0, len(o), block):
        rows = slice(top, min(top + block, len(o)))
        for left in range(int(starts[rows].min()), int(ends[rows].max()), block):
            columns = slice(left, min(left + block, len(o)))
            at = torch.arange(columns.start, columns.stop, device=device)
            pair = (at >= begins[rows, None]) & (at < stops[rows, None])  # (R, C)
            gap = o[columns] - o[rows, None]  # (R, C)
            costs = torch.nn.functional.softplus(gap) * pair
            shares = torch.sigmoid(gap) * pair
            if v is not None:
                costs = costs * v[rows, None] * v[columns]
                shares = shares * v[rows, None] * v[columns]
            loss += costs.sum(dtype=double)
            lambdas[rows] -= shares.sum(dim=1, dtype=double)
            lambdas[columns] += shares.sum(dim=0, dtype=double)
    return loss, lambdas
