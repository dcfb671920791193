"""Learning rates, step by step."""

from __future__ import annotations

import pytest

from palaver.training.experiment import Optimiser
from palaver.training.schedule import Schedule


def schedule(total: int = 100, **settings: object) -> Schedule:
    return Schedule(Optimiser(batch_size=1, learning_rate=1.0, **settings), total)  # type: ignore[arg-type]


def test_halved_with_every_epoch_after_the_sixth() -> None:
    rates = [schedule(schedule="halve-after").rate(1, epoch) for epoch in range(1, 10)]
    assert rates == [1.0] * 6 + [0.5, 0.25, 0.125]


def test_plateau_is_that_of_torch() -> None:
    import torch

    weight = torch.nn.Parameter(torch.zeros(1))
    peer_optimiser = torch.optim.SGD([weight], lr=1.0)
    peer = torch.optim.lr_scheduler.ReduceLROnPlateau(peer_optimiser, factor=0.5, patience=3, threshold=0.0)
    ours = schedule(schedule="plateau")
    best = float("inf")
    for value in (9, 8, 8, 8, 8, 8, 8, 7, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5, 7.5, 1):
        ours.epoch_done(value < best)
        best = min(best, value)
        peer.step(value)
        assert ours.rate(1, 1) == peer_optimiser.param_groups[0]["lr"]
    assert ours.share == 0.125


def test_warm_up_then_down() -> None:
    cosine = schedule(schedule="warmup-cosine", warmup_steps=10)
    assert [cosine.rate(step, 1) for step in (1, 5, 10)] == pytest.approx([0.1, 0.5, 1.0])
    assert cosine.rate(55, 1) == pytest.approx((1 + 0.05) / 2)
    assert cosine.rate(100, 1) == cosine.rate(500, 1) == pytest.approx(0.05)
    root = schedule(schedule="warmup-inverse-sqrt", warmup_steps=10)
    assert [root.rate(step, 1) for step in (5, 10, 40)] == pytest.approx([0.5, 1.0, 0.5])
    assert schedule(schedule="warmup-cosine", warmup_steps=0).rate(1, 1) == pytest.approx(1.0, abs=1e-3)
    assert schedule().rate(77, 9) == 1.0


def test_state_comes_back() -> None:
    one = schedule(schedule="plateau", patience=0)
    one.epoch_done(False)
    other = schedule(schedule="plateau", patience=0)
    other.restore(one.state())
    assert other.rate(1, 1) == 0.5
