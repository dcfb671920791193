"""Progress: only for a person who waits."""

from __future__ import annotations

import io
import sys
import time

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
