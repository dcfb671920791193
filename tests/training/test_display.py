"""What is shown while training, on a terminal and elsewhere."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from palaver.errors import UserError
from palaver.training.display import describe_run, sparkline, watching
from palaver.training.experiment import Experiment
from palaver.training.folder import draw_curves
from palaver.training.run import train

Small = Callable[..., Experiment]
STEP: dict[str, Any] = {
    "kind": "step", "step": 1200, "epoch": 2, "loss": 3.21, "nll": 3.1, "ppl": 22.2, "ppl_word": 30.0,
    "lr": 0.001, "tokens_per_second": 12345, "seconds": 10.0,
}  # fmt: skip
EPOCH: dict[str, Any] = {
    "kind": "epoch", "step": 1200, "epoch": 2, "nll": 3.1, "ppl": 22.2, "ppl_word": 30.0, "valid_nll": 3.0,
    "valid_ppl": 20.1, "valid_ppl_word": 28.8, "best": True, "seconds": 11.0,
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines() -> None:
    stream = io.StringIO()
    with watching(Path("run"), stream=stream) as watcher:
        watcher.note("hello [bold]")
        watcher.row(STEP, 0.25)
        watcher.row(STEP, 0.5)
        watcher.row(EPOCH, 1.0)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "hello [bold]"
    assert lines[1].startswith("step   1,200  epoch 2  loss 3.2100  ppl 22.20  lr 0.001  12,345 tokens/s")
    assert lines[2].endswith(" left")
    assert "validation ppl 20.10 per token, 28.80 per word, the best so far" in lines[3]


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with watching(Path("run"), stream=stream) as watcher:
        watcher.note("hello [bold]")
        watcher.row(STEP, 0.25)
        watcher.row(EPOCH, 0.5)
    shown = stream.getvalue()
    assert "hello [bold]" in shown
    assert "validation ppl 20.10" in shown
    assert "25%" in shown or "12,345 tokens/s" in shown


def test_sparklines() -> None:
    assert sparkline([]) == ""
    assert sparkline([1.0, 1.0]) == "▁▁"
    assert sparkline([3.0, 2.0, 1.0]) == "█▄▁" or sparkline([3.0, 2.0, 1.0]) == "█▅▁"
    assert len(sparkline(list(map(float, range(1000))), width=20)) == 20


def test_state_of_a_run(small: Small, tmp_path: Path) -> None:
    run = train(small(), device="cpu").folder
    text = "\n".join(describe_run(run))
    assert "finished: 2 epochs" in text
    assert "training loss" in text
    assert "best: epoch" in text
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "st')  # being written
    assert "\n".join(describe_run(run)) == text
    with pytest.raises(UserError, match="not the folder of a run"):
        describe_run(tmp_path / "none")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "metrics.jsonl").touch()
    assert "nothing logged yet" in describe_run(empty)[0]


def test_the_picture_of_a_run(small: Small) -> None:
    run = train(small(), device="cpu").folder
    text = (run / "curves.svg").read_text()
    ElementTree.fromstring(text)
    draw_curves(run, "trial")
    assert "trial, validation" in text
    assert "trial, training" in text
    assert text == (run / "curves.svg").read_text()  # the same picture is the same file
