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

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Reduction = Literal["mean", "sum"]
_SPREAD = 60.0  # scores closer than this share their exponentials; see `_kernels.add_pairs`


def pair_weights(
    scores: Tensor,
    targets: Tensor,
    *,
    margin: float = 0.0,
    groups: Tensor | None = None,
    block: int = 4096,
    weights: Tensor | None = None,
    reduction: Reduction = "mean",
) -> tuple[Tensor, Tensor]:
    """The loss and lambda (N,) = d loss / d scores over all pairs with targets[i] - margin > targets[j].

    `groups`: only pairs within a group count. `weights`: a pair weighs w_i w_j, and the mean is by weight.
    Without any pair both are nought, so that a training step does nothing; `count_pairs` tells beforehand.
    """
    if reduction not in ("mean", "sum"):
        raise ValueError(f"reduction must be 'mean' or 'sum', not {reduction!r}")
    if block < 1:
        raise ValueError(f"block must be 1 or more, not {block}")
    o = _column("scores", scores.detach(), scores.shape).to(torch.promote_types(scores.dtype, torch.float32))
    order, starts, ends = _bounds(targets, groups, margin, scores.shape)
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
    if reduction == "mean":
        total = _total_weight(w, starts, ends)
        loss, lambdas = (loss / total, lambdas / total) if total else (loss, lambdas)
    result = torch.empty_like(o)
    result[torch.from_numpy(order).to(o.device)] = lambdas.to(o)
    return loss.to(o), result.to(scores.dtype)


def pairwise_loss(scores: Tensor, targets: Tensor, **options: Any) -> Tensor:
    """`pair_weights` as a loss to call `backward` on; takes the same options."""
    loss: Tensor = _PairwiseLoss.apply(scores, targets, options)  # type: ignore[no-untyped-call]
    return loss


def count_pairs(targets: Tensor, *, margin: float = 0.0, groups: Tensor | None = None) -> int:
    """How many pairs the loss has: 0 where all targets (of each group) are equal."""
    _, starts, ends = _bounds(targets, groups, margin, targets.shape)
    return int((ends - starts).sum())


def backward_all_pairs(
    forward: Callable[[Any], Tensor],
    batches: Sequence[Any],
    targets: Tensor,
    *,
    keep_graph: bool = True,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Gradients of the loss over all pairs of all batches, added to those there are; the loss and the scores.

    `forward(batch)` gives the scores (B,) of a batch, `targets` those of all batches in their order. With
    `keep_graph` every batch is run forward once, and the memory of all of them is needed at once. Without, a
    first pass without gradients finds the scores and a second runs each batch forward and back: the memory
    of one batch, a third more time. Dropout then draws the same twice.
    """
    if not len(batches):
        raise ValueError("there are no batches")
    if keep_graph:
        scores = torch.cat([forward(batch) for batch in batches])
        loss = pairwise_loss(scores, targets, **options)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach(), scores.detach()
    parts, states = [], []
    with torch.no_grad():
        for batch in batches:
            states.append(_random_states())
            parts.append(forward(batch))
    after = _random_states()
    loss, lambdas = pair_weights(torch.cat(parts), targets, **options)
    begin = 0
    for batch, part, state in zip(batches, parts, states, strict=True):
        _set_random_states(state)
        forward(batch).backward(lambdas[begin : begin + len(part)])  # type: ignore[no-untyped-call]
        begin += len(part)
    _set_random_states(after)
    return loss, torch.cat(parts)


def _random_states() -> tuple[Tensor, list[Tensor]]:
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def _set_random_states(states: tuple[Tensor, list[Tensor]]) -> None:
    torch.set_rng_state(states[0])
    if states[1]:
        torch.cuda.set_rng_state_all(states[1])


class _PairwiseLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor, options: dict[str, Any]) -> Tensor:
        loss, lambdas = pair_weights(scores, targets, **options)
        ctx.save_for_backward(lambdas)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (lambdas,) = ctx.saved_tensors
        return (grad * lambdas).to(lambdas.dtype), None, None


def _column(name: str, column: Tensor, shape: torch.Size) -> Tensor:
    if column.ndim != 1 or column.shape != shape:
        raise ValueError(f"{name} must be 1-D and as long as the scores, not of shape {tuple(column.shape)}")
    if column.is_floating_point() and not bool(torch.isfinite(column).all()):
        bad = int((~torch.isfinite(column)).sum())
        raise ValueError(f"{name} must be finite: {bad} of {len(column)} are nan or infinite")
    return column


def _bounds(
    targets: Tensor, groups: Tensor | None, margin: float, shape: torch.Size
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order by group and target, and for each place in it where its losers begin and end."""
    from palaver.comparator.cmade._kernels import pair_bounds

    if not margin >= 0:
        raise ValueError(f"margin must be 0 or more, not {margin}")
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
    pair_bounds(t[order], g[order], float(margin), starts, ends)
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
