"""What workers do in benchmarks/engine.py; in a module of its own, so that every worker can import it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

POISONED = -1


def spin(n: int) -> int:
    """A fixed amount of work."""
    total = 0
    for i in range(n):
        total += i & 7
    return total


class Shift(NamedTuple):
    """When a worker began and ended a shard, by the clock that all processes of a Linux machine share."""

    worker: int
    began: float
    ended: float


def timed_spin(n: int) -> Shift:
    """A fixed amount of work, and when it was done."""
    began = time.monotonic()
    spin(n)
    return Shift(os.getpid(), began, time.monotonic())


def square(rows: Sequence[int]) -> list[int]:
    """One row of the file is poisoned."""
    if POISONED in rows:
        raise ValueError("poisoned")
    return [row * row for row in rows]


class Diary:
    """Squares that take a while; each begun batch is a file, so that one can count what was done again."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds

    def __call__(self, rows: Sequence[int]) -> list[int]:
        (Path(self.folder) / f"{rows[0]}-{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(self.seconds)
        return square(rows)
