"""How training shows itself: a bar with speed, loss and time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from palaver.errors import require
from palaver.training.curves import sparkline
from palaver.training.folder import read_metrics
from palaver.training.loop import Watcher


class Lines:
    """One line per logging step, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began: tuple[float, float] | None = None

    def row(self, row: dict[str, Any], done: float) -> None:
        now = time.monotonic()
        began, at = self._began = self._began or (now, done)
        left = (now - began) * (1 - done) / (done - at) if done > at else None
        self.note(
            describe_row(row)
            + (f"  {_time(left)} left" if left is not None and row["kind"] == "step" else "")
        )

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Bar(Lines):
    """A progress bar; only epochs and notes stay on the screen."""

    def __init__(self, stream: TextIO, bar: Any) -> None:
        super().__init__(stream)
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
        if (
            self._writer is None
        ):  # only now is it known that the folder is ours, and from which step it goes on
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
    if not stream.isatty():
        lines = Lines(stream)
        yield from _also(run, lines, tensorboard)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[now]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        yield from _also(run, Bar(stream, bar), tensorboard)


def _also(run: Path, watcher: Watcher, tensorboard: bool) -> Iterator[Watcher]:
    if not tensorboard:
        yield watcher
        return
    both = TensorBoard(run, watcher)
    try:
        yield both
    finally:
        both.close()


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


def describe_run(run: Path) -> list[str]:
    """How far a run has come: a few lines and its curve."""
    rows = read_metrics(run)
    steps = [row for row in rows if row["kind"] == "step"]
    epochs = [row for row in rows if row["kind"] == "epoch"]
    if not rows:
        return [f"{run}: nothing logged yet"]
    from palaver.training.checkpoint import Checkpoints, read_progress

    lines = [f"{run}: step {rows[-1]['step']:,}, epoch {rows[-1]['epoch']}, {_time(rows[-1]['seconds'])}"]
    last = Checkpoints(run).last()
    if last is not None:
        finished = read_progress(last).finished
        lines.append(
            f"  finished: {finished}" if finished else f"  not finished; last checkpoint: {last.name}"
        )
    if steps:
        losses = [row["nll"] for row in steps]
        lines.append(f"  training loss    {sparkline(losses)}  {losses[0]:.3f} to {losses[-1]:.3f}")
    valid = [row["valid_nll"] for row in epochs if "valid_nll" in row]
    if valid:
        lines.append(f"  validation loss  {sparkline(valid)}  {valid[0]:.3f} to {valid[-1]:.3f}")
        best = min((row for row in epochs if "valid_nll" in row), key=lambda row: row["valid_nll"])
        lines.append(f"  best: {describe_row(best)}")
    return lines


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
