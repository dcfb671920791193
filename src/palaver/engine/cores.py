"""The processors of this machine, and how many threads a worker takes of them."""

from __future__ import annotations

import os
import sys

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def n_cores() -> int:
    """The processors this process may use, which in a container are fewer than the machine has."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def limit_threads(n: int) -> None:
    """Let the matrix libraries of this process take `n` threads: workers share the processors."""
    os.environ.update(dict.fromkeys(_THREADS, str(n)))
    torch = sys.modules.get("torch")  # what is loaded already does not read the environment again
    if torch is not None:
        torch.set_num_threads(n)
