"""Folders of runs that are damaged, copied without their links, or somebody else's."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from palaver.errors import DataError, UserError
from palaver.training.display import describe_run
from palaver.training.experiment import Experiment
from palaver.training.run import train

Small = Callable[..., Experiment]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first run is kept, to be copied by the others."""
    return tmp_path_factory.mktemp("begun") / "run"


@pytest.fixture
def run(small: Small, begun: Path, tmp_path: Path) -> tuple[Experiment, Path]:
    """A run of five steps with nothing wrong, and the experiment that goes on with it."""
    settings = ("optimiser.schedule=constant", "optimiser.epochs=1", "log.checkpoint_every=2")
    if not begun.exists():
        shutil.copytree(
            train(small(*settings, "optimiser.max_steps=5"), device="cpu").folder, begun, symlinks=True
        )
        shutil.rmtree(tmp_path / "run")
    shutil.copytree(begun, tmp_path / "run", symlinks=True)
    return small(*settings, "optimiser.max_steps=6"), tmp_path / "run"


class Heard:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def row(self, row: dict[str, Any], done: float) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    path.write_bytes(b"\xff\x00[{")


def deep(path: Path) -> None:
    path.write_text("[" * 100_000)


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("run.json", garble, "is damaged"),
        ("run.json", deep, "is damaged"),
        ("run.json", lambda p: p.write_text("[]"), "is damaged"),
        ("run.json", lambda p: p.write_text("{}"), "is damaged"),
        ("run.json", Path.unlink, "no run of ours"),
        ("experiment.toml", Path.unlink, "but no experiment.toml"),
        ("metrics.jsonl", Path.unlink, "is shorter than"),
        ("last/model.safetensors", cut, "cannot be read"),
        ("last/model.safetensors", Path.unlink, "cannot be read"),
        ("last/training.pt", cut, "cannot be read"),
        ("last/training.pt", garble, "cannot be read"),
        ("last/training.pt", Path.unlink, "cannot be read"),
        ("last/training.pt", lambda p: torch.save([1], p), "cannot be read"),
        ("last/training.pt", lambda p: torch.save({"optimiser": {}, "random": []}, p), "cannot be read"),
        ("last/progress.json", cut, "cannot be read"),
        ("last/progress.json", deep, "cannot be read"),
        ("last/progress.json", lambda p: p.write_text("[]"), "cannot be read"),
        (
            "last/progress.json",
            lambda p: p.write_text('{"step": "a"}'),
            "progress.json: step: Input should be",
        ),
        ("last/progress.json", Path.unlink, "cannot be gone on from"),
    ],
)
def test_damage_is_named_and_nothing_is_lost(
    name: str, spoil: Callable[[Path], None], said: str, run: tuple[Experiment, Path]
) -> None:
    experiment, folder = run
    spoil(folder / name)
    before = sorted(p.relative_to(folder) for p in folder.rglob("*"))
    with pytest.raises(UserError) as caught:
        train(experiment, device="cpu")
    assert said in str(caught.value)
    assert sorted(p.relative_to(folder) for p in folder.rglob("*")) == before


def test_a_copy_without_links_goes_on(run: tuple[Experiment, Path]) -> None:
    experiment, folder = run
    for name in ("last", "best"):
        (folder / name).unlink()
    heard = Heard()
    assert train(experiment, device="cpu", watcher=heard).step == 6
    assert "going on after step 5 (epoch 1)" in heard.notes
    assert json.loads((folder / "last" / "progress.json").read_text())["step"] == 6


def test_a_copy_with_folders_in_place_of_links_goes_on(run: tuple[Experiment, Path], tmp_path: Path) -> None:
    experiment, folder = run
    shutil.copytree(folder, tmp_path / "copy", symlinks=False)
    shutil.rmtree(folder)
    (tmp_path / "copy").rename(folder)
    assert train(experiment, device="cpu").step == 6
    assert (folder / "last").is_symlink()


def test_metrics_that_are_damaged_cost_the_picture_not_the_model(run: tuple[Experiment, Path]) -> None:
    experiment, folder = run
    path = folder / "metrics.jsonl"
    path.write_bytes(b"x" * (path.stat().st_size - 1) + b"\n")
    assert train(experiment, device="cpu").step == 6
    with pytest.raises(DataError, match="metrics.jsonl, line 1: this is not a line of metrics"):
        describe_run(folder)


def test_the_state_of_a_damaged_run(run: tuple[Experiment, Path]) -> None:
    garble(run[1] / "last" / "progress.json")
    with pytest.raises(DataError, match="cannot be read"):
        describe_run(run[1])


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", ["experiment.toml", "checkpoints", "best", "metrics.jsonl"])
def test_what_others_wrote_is_not_touched(name: str, fresh: bool, small: Small, tmp_path: Path) -> None:
    theirs = tmp_path / "run" / name
    theirs.parent.mkdir()
    theirs.write_text("# mine")
    with pytest.raises(UserError, match="no run of ours"):
        train(small(), device="cpu", fresh=fresh)
    assert theirs.read_text() == "# mine"


def test_fresh_throws_nothing_away_before_a_run_can_begin(run: tuple[Experiment, Path], small: Small) -> None:
    _, folder = run
    weights = (folder / "best" / "model.safetensors").read_bytes()
    broken = folder.parent / "broken.jsonl"
    broken.write_text("{\n")
    for experiment, said in (
        (small(f'data.train=[{{path="{broken}"}}]'), "line 1"),
        (small(f'model.initialise_from="{folder / "best"}"'), "fresh=True would throw away"),
    ):
        with pytest.raises(UserError, match=said):
            train(experiment, device="cpu", fresh=True)
        assert (folder / "best" / "model.safetensors").read_bytes() == weights
    again = train(small("optimiser.max_steps=1"), device="cpu", fresh=True)
    assert (again.step, os.listdir(folder / "checkpoints")) == (1, ["step-000000001"])


def test_a_checkpoint_of_another_kind_is_named_before_data_is_read(small: Small, tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text('{"format": 1, "model": "seq2seq"}')
    with pytest.raises(UserError, match="holds a seq2seq model, not a knowledge-transformer"):
        small(f'model.initialise_from="{tmp_path / "base"}"')
