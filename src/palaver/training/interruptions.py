"""What may end a run before its time: a signal, or memory that is not enough."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from palaver.errors import UserError
from palaver.training.experiment import Experiment


class Stopped(Exception):
    """The run was asked to stop, and can go on from its last checkpoint."""


class Signals:
    """The first Ctrl-C or SIGTERM is noted, and obeyed after the step; the second ends it at once."""

    def __init__(self) -> None:
        self.heard = ""

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Listen until the block ends; then whoever listened before does so again."""
        before: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):  # not the main thread: somebody else minds the signals
                before[number] = signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.heard:
            raise KeyboardInterrupt
        self.heard = signal.Signals(number).name


@contextlib.contextmanager
def memory_errors(experiment: Experiment, device: torch.device) -> Iterator[None]:
    """Out of memory becomes a `UserError` that says which batch to try."""
    try:
        yield
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and not _is_about_memory(str(error)):
            raise
        raise out_of_memory(experiment, device) from None


def _is_about_memory(text: str) -> bool:
    known = ("not enough memory", "can't allocate memory", "out of memory", "ALLOC_FAILED")
    return any(words in text for words in known)


def out_of_memory(experiment: Experiment, device: torch.device) -> UserError:
    """What to try when a batch does not fit."""
    s = experiment.optimiser
    key, size = ("batch_size", s.batch_size) if s.batch_size else ("batch_tokens", s.batch_tokens)
    where = "the GPU" if device.type == "cuda" else "this machine"
    if (size or 1) > 1:
        hint = f"try half the batch: --set optimiser.{key}={(size or 1) // 2}"
    else:
        hint = "one example is too much already: try a smaller model, or a lower model.max_context"
    return UserError(f"{where} has not enough memory for batches with optimiser.{key} = {size}", hint)
