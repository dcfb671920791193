"""The learning rate as a function of step, epoch and validation: two numbers to keep in a checkpoint.

`halve-after` is that of Li et al. (2016) and Xing & Fernández (2018); `plateau` that of Gopalakrishnan et al.
(2019, section 5): multiplied by `decay` when more than `patience` epochs in a row brought nothing better.
"""

from __future__ import annotations

import math
from typing import Any

from palaver.training.experiment import Optimiser

_LOWEST = 0.05
"""Where the cosine ends, as a share of the full rate."""


class Schedule:
    """`rate` before each step, `epoch_done` after each validation."""

    def __init__(self, settings: Optimiser, total_steps: int) -> None:
        self.settings = settings
        self.total_steps = total_steps
        self.share = 1.0
        self.waited = 0

    def rate(self, step: int, epoch: int) -> float:
        """The learning rate of `step`, counted from 1, in `epoch`, counted from 1."""
        s = self.settings
        if s.schedule == "halve-after":
            return s.learning_rate * 0.5 ** max(0, epoch - s.halve_after)
        if s.schedule == "plateau":
            return s.learning_rate * self.share
        if s.schedule == "constant":
            return s.learning_rate
        warm = max(1, s.warmup_steps)
        if step < warm:
            return s.learning_rate * step / warm
        if s.schedule == "warmup-inverse-sqrt":
            return s.learning_rate * math.sqrt(warm / step)
        done = min(1.0, (step - warm) / max(1, self.total_steps - warm))
        return s.learning_rate * (_LOWEST + (1 - _LOWEST) * (1 + math.cos(math.pi * done)) / 2)

    def epoch_done(self, better: bool) -> bool:
        """Whether the rate was lowered now, after an epoch that was `better` than all before, or not."""
        self.waited = 0 if better else self.waited + 1
        if self.settings.schedule != "plateau" or self.waited <= self.settings.patience:
            return False
        self.share *= self.settings.decay
        self.waited = 0
        return True

    def state(self) -> dict[str, Any]:
        return {"share": self.share, "waited": self.waited}

    def restore(self, state: dict[str, Any]) -> None:
        self.share, self.waited = float(state["share"]), int(state["waited"])
