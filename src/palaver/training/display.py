"""How training shows itself: a bar with speed, loss and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TextIO

from palaver.errors import require
from palaver.training.checkpoint import Checkpoints, read_progress
from palaver.training.folder import read_metrics
from palaver.training.loop import Watcher

_BARS = "▁▂▃▄▅▆▇█"


class Lines:
    """One line per logging step, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began: tuple[float, float] | None = None

    def row(self, row: dict[str, Any], done: float) -> None:
        now = time.monotonic()
        began, at = self._began = self._began or (now, done)
        line = describe_row(row)
        if done > at and row["kind"] == "step":
            line += f"  {_time((now - began) * (1 - done) / (done - at))} left"
        self.note(line)

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Bar(Lines):
    """A progress bar; only epochs and notes stay on the screen."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=1.0, now="")

    def row(self, row: dict[str, Any], done: float) -> None:
        if row["kind"] == "epoch":
            self.note(describe_row(row))
            return
        now = f"loss {row['loss']:.3f}  ppl {row['ppl']:.1f}  {row['tokens_per_second']:,} tokens/s"
        self._bar.update(self._task, description=f"epoch {row['epoch']}", completed=done, now=now)

    def note(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


class TensorBoard:
    """The same numbers for TensorBoard, besides another watcher."""

    def __init__(self, run: Path, other: Watcher) -> None:
        require("tensorboard", "models")
        self._folder = run / "tensorboard"
        self._other = other
        self._writer: Any = None

    def row(self, row: dict[str, Any], done: float) -> None:
        if self._writer is None:  # only now is it known that the folder is ours, and where the run goes on
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._folder), purge_step=row["step"])
        for key, value in row.items():
            if key not in ("kind", "step", "best"):
                self._writer.add_scalar(f"{row['kind']}/{key}", value, row["step"])
        self._other.row(row, done)

    def note(self, text: str) -> None:
        self._other.note(text)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def watching(run: Path, *, tensorboard: bool = False, stream: TextIO | None = None) -> Iterator[Watcher]:
    """Receives progress while training runs."""
    stream = stream or sys.stderr
    watcher: Watcher = Lines(stream)
    with ExitStack() as stack:
        if stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description:<10}"),
                BarColumn(bar_width=30),
                TextColumn("{task.percentage:>3.0f}%  {task.fields[now]}"),
                TimeRemainingColumn(),
            )
            bar = Progress(*columns, console=Console(file=stream), transient=True)
            watcher = Bar(stack.enter_context(bar))
        if tensorboard:
            watcher = stack.enter_context(closing(TensorBoard(run, watcher)))
        yield watcher


def describe_row(row: dict[str, Any]) -> str:
    """A line of metrics for people."""
    if row["kind"] == "step":
        return (
            f"step {row['step']:>7,}  epoch {row['epoch']}  loss {row['loss']:.4f}  ppl {row['ppl']:.2f}  "
            f"lr {row['lr']:.3g}  {row['tokens_per_second']:,} tokens/s"
        )
    text = f"epoch {row['epoch']:>3} (step {row['step']:,}): training ppl {row['ppl']:.2f}"
    if "valid_ppl" in row:
        text += f", validation ppl {row['valid_ppl']:.2f} per token, {row['valid_ppl_word']:.2f} per word"
    return text + (", the best so far" if row.get("best") else "")


@dataclass(frozen=True)
class RunStatus:
    """How far a run has come."""

    run: Path
    step: int
    epoch: int
    seconds: float
    finished: str | None
    """Why it ended; None while it has not."""
    last: dict[str, Any] | None
    """The newest line of metrics."""
    best: dict[str, Any] | None
    """The line of the epoch with the best validation."""


def read_status(run: Path) -> RunStatus:
    """What `metrics.jsonl` and the checkpoints of a run say."""
    rows = read_metrics(run)
    checkpoint = Checkpoints(run).last()
    finished = read_progress(checkpoint).finished if checkpoint is not None else None
    last = rows[-1] if rows else {"step": 0, "epoch": 0, "seconds": 0.0}
    return RunStatus(
        run=run,
        step=last["step"],
        epoch=last["epoch"],
        seconds=last["seconds"],
        finished=finished or None,
        last=rows[-1] if rows else None,
        best=_best(rows),
    )


def _best(rows: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    validated = [row for row in rows if "valid_nll" in row]
    return min(validated, key=lambda row: row["valid_nll"]) if validated else None


def describe_run(run: Path) -> list[str]:
    """How far a run has come: a few lines and its curve."""
    rows = read_metrics(run)
    if not rows:
        return [f"{run}: nothing logged yet"]
    lines = [f"{run}: step {rows[-1]['step']:,}, epoch {rows[-1]['epoch']}, {_time(rows[-1]['seconds'])}"]
    last = Checkpoints(run).last()
    if last is not None:
        finished = read_progress(last).finished
        state = f"finished: {finished}" if finished else f"not finished; last checkpoint: {last.name}"
        lines.append(f"  {state}")
    training = [row["nll"] for row in rows if row["kind"] == "step"]
    validation = [row["valid_nll"] for row in rows if "valid_nll" in row]
    for name, losses in (("training loss  ", training), ("validation loss", validation)):
        if losses:
            lines.append(f"  {name}  {sparkline(losses)}  {losses[0]:.3f} to {losses[-1]:.3f}")
    best = _best(rows)
    if best is not None:
        lines.append(f"  best: {describe_row(best)}")
    return lines


def sparkline(values: Sequence[float], width: int = 50) -> str:
    """The course of `values` as a line of bars; long ones are thinned out."""
    if len(values) > width:
        values = [values[i * len(values) // width] for i in range(width)]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in values)


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
