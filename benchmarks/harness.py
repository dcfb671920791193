"""What all benchmarks share: one thread, a warm-up, the best of several runs, one line per case."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

Report = Callable[..., None]
"""report(name, peer=seconds or None, ours=seconds, target=ratio or None, limit=seconds or None, note=text)"""


def best_of(call: Callable[[], Any], times: int, *, warm_up: bool = True) -> tuple[float, Any]:
    """The shortest of several runs in seconds after one that is not counted, and the last result."""
    shortest, result = math.inf, call() if warm_up else None
    for _ in range(times):
        begin = time.perf_counter()
        result = call()
        shortest = min(shortest, time.perf_counter() - begin)
    return shortest, result


class Table:
    """Prints a line per case and remembers what was missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def __call__(
        self,
        name: str,
        *,
        peer: float | None = None,
        ours: float,
        target: float | None = None,
        limit: float | None = None,
        note: str = "",
    ) -> None:
        times = f"{_milliseconds(peer)} {_milliseconds(ours)}"
        if peer is not None:
            reached = target is None or peer / ours >= target
            ratio = f"{peer / ours:>9.1f} x" + (f"   target {target:.3g} x" if target is not None else "")
        else:
            reached = limit is None or ours < limit
            ratio = f"{'':>11}   below {limit:g} s" if limit is not None else ""
        if not reached:
            self.missed.append(name)
        print(f"{name:<66} {times} {ratio:<31} {'' if reached else 'MISSED '}{note}".rstrip(), flush=True)


def _milliseconds(seconds: float | None) -> str:
    return f"{'':>13}" if seconds is None else f"{seconds * 1e3:>10,.2f} ms"


_MEASURE = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run([sys.executable, "-m", "palaver", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
seconds = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def run_palaver(words: Sequence[str]) -> tuple[float, float, float]:
    """Run `palaver WORDS` in a process of its own: seconds, seconds of all cores, peak memory in MB."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *words], capture_output=True, text=True, check=True
    )
    seconds, processor_seconds, megabytes = json.loads(done.stdout)
    return seconds, processor_seconds, megabytes


def fill_block(page: str, name: str, file: str, text: str) -> str:
    """The page with `text` between the two comments that name a block and the results file it is made of."""
    begin, end = f"<!-- {name}: from {file} -->", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise SystemExit(f"the page has no block {begin} … {end}")
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def machine() -> str:
    """Processor, cores and Python, for the head of the table."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"
