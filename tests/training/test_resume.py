"""A run that was killed goes on to the same weights and the same lines, to the last bit."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from palaver.errors import UserError
from palaver.models.pretrained import load
from palaver.training import checkpoint as checkpoint_module
from palaver.training.checkpoint import Checkpoints
from palaver.training.experiment import Experiment
from palaver.training.folder import read_metrics
from palaver.training.run import train

Small = Callable[..., Experiment]
TIMES = ("seconds", "tokens_per_second", "memory_mb", "valid_seconds")


def rows(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in TIMES} for row in read_metrics(run)]


def assert_same_end(one: Path, other: Path) -> None:
    assert rows(one) == rows(other)
    for name in ("last", "best"):
        assert (one / name).resolve().name == (other / name).resolve().name
        weights = [(run / name / "model.safetensors").read_bytes() for run in (one, other)]
        assert weights[0] == weights[1]
    states = [torch.load(run / "last" / "training.pt", weights_only=True) for run in (one, other)]
    assert str(states[0]["optimiser"]) == str(states[1]["optimiser"])
    assert torch.equal(states[0]["random"][0]["torch"], states[1]["random"][0]["torch"])


@pytest.fixture
def whole(small: Small) -> Path:
    """An uninterrupted run."""
    return train(small(out="whole"), device="cpu").folder


def kill(sample: Path, out: Path, settings: list[str], how: str, where: int) -> None:
    script = Path(__file__).parent / "killed.py"
    words = [sample / "experiment.toml", out, sample / "prepared", how, where, *settings]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        [sys.executable, str(script), *map(str, words)], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr


def test_kill_at_any_step_and_while_saving(
    small: Small, small_settings: list[str], sample: Path, whole: Path
) -> None:
    experiment = small(out="killed")
    first = random.randrange(5, 24)  # after the first checkpoint, before the end
    print("killed at step", first)  # shown if the test fails
    kill(sample, experiment.folder, small_settings, "step", first)
    kill(
        sample, experiment.folder, small_settings, "_link", 1
    )  # the checkpoint has its name, but is not yet `last`
    outcome = train(experiment, device="cpu")
    assert outcome.reason == "2 epochs"
    assert_same_end(whole, experiment.folder)
    assert not list((experiment.folder / "checkpoints").glob(".part*"))


def stopping(experiment: Experiment, monkeypatch: pytest.MonkeyPatch, at: int, number: int) -> None:
    """Send ourselves a signal during a step."""
    from palaver.training.loop import Loop

    step = Loop._step

    def interrupted(self: Loop, batch: Any) -> None:
        step(self, batch)
        if self.progress.step == at:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Loop, "_step", interrupted)
    outcome = train(experiment, device="cpu")
    monkeypatch.setattr(Loop, "_step", step)
    assert outcome.stopped
    assert outcome.step == at
    assert outcome.reason == signal.Signals(number).name


@pytest.mark.parametrize(("number", "at"), [(signal.SIGTERM, 5), (signal.SIGINT, 11)])
def test_signals_keep_everything(
    small: Small, whole: Path, monkeypatch: pytest.MonkeyPatch, number: int, at: int
) -> None:
    experiment = small(out="stopped")
    before = signal.getsignal(number)
    stopping(experiment, monkeypatch, at, number)
    assert signal.getsignal(number) == before
    train(experiment, device="cpu")
    assert_same_end(whole, experiment.folder)


def test_a_finished_run_stays_as_it_is_and_can_be_prolonged(small: Small, whole: Path) -> None:
    once = small("optimiser.epochs=1", "optimiser.schedule=constant", out="longer")
    train(once, device="cpu")
    lines = rows(once.folder)
    assert train(once, device="cpu").reason == "1 epoch"
    assert rows(once.folder) == lines
    longer = small("optimiser.schedule=constant", out="longer")
    train(longer, device="cpu")
    straight = small("optimiser.schedule=constant", out="straight")
    train(straight, device="cpu")
    assert_same_end(longer.folder, straight.folder)


def test_steps_can_be_prolonged_in_the_middle_of_an_epoch(small: Small) -> None:
    for steps in (5, 8):
        train(small("optimiser.schedule=constant", f"optimiser.max_steps={steps}", out="a"), device="cpu")
    train(small("optimiser.schedule=constant", "optimiser.max_steps=8", out="b"), device="cpu")
    one, other = Path(small(out="a").folder), Path(small(out="b").folder)
    assert (one / "last/model.safetensors").read_bytes() == (other / "last/model.safetensors").read_bytes()


def test_another_experiment_does_not_go_on_in_the_same_folder(small: Small, sample: Path) -> None:
    train(small("optimiser.max_steps=2"), device="cpu")
    with pytest.raises(UserError) as error:
        train(small("optimiser.max_steps=2", "model.dim=32", "optimiser.clip=3"), device="cpu")
    assert error.value.problems == ("model.dim: was 16, is 32", "optimiser.clip: was 1, is 3")
    with pytest.raises(UserError, match="other settings") as error:
        train(small("optimiser.max_steps=3"), device="cpu")  # a cosine is another one with another end
    assert "--force" in error.value.hint
    other = sample / "more"
    other.mkdir(exist_ok=True)
    shutil.copy(sample / "dialogues.jsonl", other / "dialogues.jsonl")
    moved = f'data.train=[{{path="{other / "dialogues.jsonl"}"}}]'
    assert train(small("optimiser.max_steps=2", moved), device="cpu").step == 2  # the same data elsewhere
    with (other / "dialogues.jsonl").open("a") as file:
        file.write(
            '{"id": "x", "turns": [{"speaker": "Ada", "text": "a"}, {"speaker": "Ben", "text": "b"}]}\n'
        )
    with pytest.raises(UserError) as error:
        train(small("optimiser.max_steps=2", moved), device="cpu")
    assert error.value.problems == (f"{other / 'dialogues.jsonl'}: its content has changed",)
    changed = small("optimiser.max_steps=2", "model.dim=32")
    assert train(changed, device="cpu", fresh=True).step == 2
    assert load(changed.folder / "best")[0].config.dim == 32  # type: ignore[attr-defined]


def test_full_disk_while_saving_leaves_the_last_checkpoint(
    small: Small, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = small(out="full")
    fsync, calls = os.fsync, [0]

    def full(handle: int) -> None:
        calls[0] += 1
        if calls[0] > 12:  # after the first checkpoint
            raise OSError(28, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(checkpoint_module.os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device") as error:
        train(experiment, device="cpu")
    monkeypatch.setattr(checkpoint_module.os, "fsync", fsync)
    last = Checkpoints(experiment.folder).last()
    assert last is not None
    assert str(last) in error.value.hint
    load(last)
    assert not list((experiment.folder / "checkpoints").glob(".part*"))
    train(experiment, device="cpu")
    assert_same_end(whole, experiment.folder)


def test_only_last_and_best_are_kept(small: Small) -> None:
    run = train(small("optimiser.epochs=3", "optimiser.learning_rate=0.01"), device="cpu").folder
    kept = sorted(p.name for p in (run / "checkpoints").iterdir())
    assert kept == sorted({(run / name).resolve().name for name in ("last", "best")})
    progress = json.loads((run / "last" / "progress.json").read_text())
    assert progress["finished"] == "3 epochs"
    assert not (run / "last").readlink().is_absolute()  # the folder can be moved
    several = train(small("log.keep=3", out="several"), device="cpu").folder
    assert len(list((several / "checkpoints").iterdir())) >= 3


def test_a_damaged_checkpoint_is_named(small: Small) -> None:
    experiment = small("optimiser.max_steps=2")
    run = train(experiment, device="cpu").folder
    state = run / "last" / "training.pt"
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(UserError, match="cannot be read"):
        train(experiment, device="cpu")


def test_two_do_not_train_in_one_folder(small: Small) -> None:
    from palaver.training.folder import RunFolder

    experiment = small("optimiser.max_steps=1")
    held = RunFolder(experiment)
    with pytest.raises(UserError, match="another process is writing into"):
        train(experiment, device="cpu")
    held.close()
    assert train(experiment, device="cpu").step == 1


def test_training_works_in_a_thread(small: Small) -> None:
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(train(small("optimiser.max_steps=2"), device="cpu"))
    )
    thread.start()
    thread.join()
    assert found[0].step == 2
