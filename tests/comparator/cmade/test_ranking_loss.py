"""The factorised loss against explicit pairs: values and gradients."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from palaver.comparator.cmade.ranking_loss import (  # noqa: E402
    _bounds,
    _in_tiles,
    _total_weight,
    pair_weights,
)


def explicit(scores, targets, groups=None, weights=None):
    """Every pair by itself, and what they weigh."""
    total, weight = scores.sum() * 0, 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if targets[i] > targets[j] and (groups is None or groups[i] == groups[j]):
                w = 1.0 if weights is None else float(weights[i] * weights[j])
                total = total - w * torch.nn.functional.logsigmoid(scores[i] - scores[j])
                weight += w
    return total, weight


def example(seed, n, spread=1.0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    scores = (spread * torch.randn(n, generator=g, dtype=torch.float64)).to(dtype).requires_grad_()
    targets = torch.randint(1, 6, (n,), generator=g).double()
    groups = torch.randint(-1, 3, (n,), generator=g)
    weights = torch.rand(n, generator=g, dtype=torch.float64)
    return scores, targets, groups, weights


options = st.tuples(st.booleans(), st.booleans())


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 14), st.sampled_from([0.1, 3.0, 200.0]), options)
def test_loss_and_gradient_are_those_of_explicit_pairs(seed, n, spread, option) -> None:
    grouped, weighted = option
    scores, targets, groups, weights = example(seed, n, spread)
    chosen = {"groups": groups if grouped else None, "weights": weights if weighted else None}
    total, weight = explicit(scores, targets, **chosen)
    (expected,) = torch.autograd.grad(total, scores)
    mean, lambdas = pair_weights(scores, targets, **chosen)
    assert torch.allclose(mean * (weight or 1), total, rtol=1e-9, atol=1e-9)
    assert torch.allclose(lambdas * (weight or 1), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [63, 700])
@pytest.mark.parametrize("weighted", [False, True])
def test_tiles_for_accelerators_give_the_same(n, weighted) -> None:
    scores, targets, groups, weights = example(n, n)
    loss, lambdas = pair_weights(scores, targets, groups=groups, weights=weights if weighted else None)
    order, starts, ends = _bounds(targets, groups, targets.shape)
    w = weights.numpy()[order] if weighted else None
    total = _total_weight(w, starts, ends)
    for block in (50, 4096):
        tiled, sorted_lambdas = _in_tiles(scores.detach(), w, order, starts, ends, block)
        assert torch.allclose(tiled / total, loss)
        assert torch.allclose(sorted_lambdas / total, lambdas[torch.from_numpy(order)], atol=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same() -> None:
    scores, targets, groups, weights = example(8, 900, dtype=torch.float32)
    for chosen in ({}, {"groups": groups, "weights": weights}):
        there = {name: value.cuda() for name, value in chosen.items()}
        expected, gradient = pair_weights(scores, targets, **chosen)
        loss, lambdas = pair_weights(scores.detach().cuda(), targets.cuda(), block=256, **there)
        assert loss.is_cuda
        assert torch.allclose(loss.cpu(), expected, atol=1e-6)
        assert torch.allclose(lambdas.cpu(), gradient, atol=1e-6)


def test_a_network_gets_the_gradient_of_all_pairs() -> None:
    """Weights of a small network: one weighted backward pass a dialogue, to 1e-6 also in float32."""
    torch.manual_seed(0)
    inputs, targets = torch.randn(90, 8), torch.randint(0, 100, (90,)).float()
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    wins = targets[:, None] > targets
    scores = net(inputs).squeeze(1)
    (torch.nn.functional.softplus(scores[None] - scores[:, None])[wins].mean()).backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    again = net(inputs).squeeze(1)
    again.backward(pair_weights(again, targets)[1])
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    scores = torch.tensor([0.0, 5000.0, -5000.0], dtype=torch.float64)
    loss, lambdas = pair_weights(scores, torch.tensor([3.0, 1.0, 2.0]))
    # pairs (0,1): 5000; (0,2): 0; (2,1): 10000
    assert math.isclose(float(loss), 5000.0)
    assert torch.allclose(lambdas, torch.tensor([-1.0, 2.0, -1.0], dtype=torch.float64) / 3)


def test_without_a_pair_a_step_does_nothing() -> None:
    for n in (0, 1, 4):
        loss, lambdas = pair_weights(torch.randn(n), torch.ones(n))
        assert loss.item() == 0
        assert not lambdas.any()


def test_types_and_memory() -> None:
    half = torch.randn(20, dtype=torch.bfloat16)
    loss, lambdas = pair_weights(half, torch.arange(20))
    assert loss.dtype == torch.float32
    assert lambdas.dtype == torch.bfloat16
    scores, targets = torch.randn(20_000), torch.arange(20_000) % 7
    tracemalloc.start()
    pair_weights(scores, targets)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 * 20_000  # a table of all pairs would be 20,000 times that


def test_groups_cost_only_their_own_pairs() -> None:
    groups = np.repeat(np.arange(1000), 6)
    targets = np.tile(np.arange(6), 1000)
    _, starts, ends = _bounds(torch.from_numpy(targets), torch.from_numpy(groups), targets.shape)
    assert (ends - starts).sum() == 1000 * 15


def test_bad_input_is_refused() -> None:
    scores, targets = torch.zeros(3), torch.arange(3)
    for call, text in [
        (lambda: pair_weights(scores, targets[:2]), "targets must be 1-D and as long"),
        (lambda: pair_weights(torch.zeros(3, 1), targets), "scores must be 1-D"),
        (lambda: pair_weights(scores * math.nan, targets), "scores must be finite: 3 of 3"),
        (lambda: pair_weights(scores, torch.tensor([1.0, math.nan, 2.0])), "targets must be finite: 1 of 3"),
        (lambda: pair_weights(scores, targets, groups=scores), "groups must hold integers"),
        (lambda: pair_weights(scores, targets, weights=torch.tensor([1.0, -1.0, 1.0])), "not be negative"),
        (lambda: pair_weights(scores, targets, block=0), "block must be 1 or more"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()
