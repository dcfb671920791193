"""Progress on standard error, shown only when something takes more than a second and a person is watching."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from palaver.progress import Progress, no_progress


@contextmanager
def progress() -> Iterator[Progress]:
    """Yields `tell(what, done, total)`. Nothing appears in pipes and logs, or before the first second."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBar

    bar = ProgressBar(
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    began = time.monotonic()
    task = bar.add_task("", total=None)
    started = False
    step = ""

    def tell(what: str, done: int, total: int) -> None:
        nonlocal started, step
        if not started and time.monotonic() - began > 1:
            bar.start()
            started = True
        if what != step:  # the speed of one step says nothing about the next
            bar.reset(task)
            step = what
        bar.update(task, description=what, completed=done, total=total)

    try:
        yield tell
    finally:
        if started:
            bar.stop()
