"""Run by test_resume: trains, and kills itself at a step, or while a checkpoint is written."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

from palaver.training import checkpoint
from palaver.training.experiment_file import load_experiment
from palaver.training.loop import Loop
from palaver.training.run import train

torch.set_num_threads(1)
path, out, prepared, how, where = sys.argv[1:6]
experiment = load_experiment(path, sys.argv[6:])
data = experiment.data.model_copy(update={"prepared": Path(prepared)})
experiment = experiment.model_copy(update={"out": Path(out), "data": data})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if how == "step":
    step = Loop._step

    def mortal_step(self: Loop, batch: Any) -> None:
        if self.progress.step == int(where):
            die()
        step(self, batch)

    Loop._step = mortal_step  # type: ignore[method-assign]
else:
    function = getattr(checkpoint, how)
    calls = [0]

    def mortal(*args: Any) -> Any:
        calls[0] += 1
        if calls[0] == int(where):
            die()
        return function(*args)

    setattr(checkpoint, how, mortal)
train(experiment, device="cpu")
