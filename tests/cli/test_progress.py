"""Progress: only for a person who waits."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from palaver.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_in_pipes_and_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(time, "monotonic", iter(range(0, 10_000, 100)).__next__)
    with progress() as tell:
        tell("reading", 1, 2)
        tell("reading", 2, 2)
    assert pipe.getvalue() == ""


def test_nothing_before_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress() as tell:
        tell("reading", 1, 2)
    assert terminal.getvalue() == ""


def test_a_bar_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    clock = iter([0.0, 5.0])
    monkeypatch.setattr("palaver.cli.progress.time.monotonic", lambda: next(clock, 6.0))
    with progress() as tell:
        tell("reading ratings", 1, 2)
        tell("reading ratings", 2, 2)
    assert "reading ratings" in terminal.getvalue()


def test_it_is_taken_away_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())

    def work() -> None:
        with progress() as tell:
            tell("reading", 1, 2)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        work()


def test_each_step_has_its_own_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousand rows a second of one step must not promise that the next is as fast."""
    from rich.progress import Progress as Bar

    seconds_left: list[float | None] = []
    update = Bar.update

    def remember(bar: Bar, task: Any, **fields: Any) -> None:
        update(bar, task, **fields)
        seconds_left.append(bar.tasks[0].time_remaining)

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Bar, "update", remember)
    with progress() as tell:
        for done in (1000, 2000, 3000):
            tell("fast", done, 100_000)
        assert seconds_left[-1] is not None
        tell("slow", 1, 100_000)
    assert seconds_left[-1] is None, "nothing is known of it yet"
