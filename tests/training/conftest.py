"""A very small experiment that trains in a second, and how to run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from palaver.training.experiment import Experiment
from palaver.training.experiment_file import load_experiment
from palaver.training.sample import write_sample

SETTINGS = [
    "data.valid_examples=20",
    "vocabulary.size=330",
    "model.dim=16",
    "model.heads=2",
    "model.layers=1",
    "model.feed_forward=16",
    "model.max_context=16",
    "model.max_response=16",
    "optimiser.epochs=2",
    "optimiser.batch_size=16",
    "log.every=3",
    "log.checkpoint_every=4",
]

Small = Callable[..., Experiment]


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder, 40)
    return folder


@pytest.fixture
def small(sample: Path, tmp_path: Path) -> Small:
    """`small("model.dropout=0")`: an experiment with a folder of its own; prepared data is shared."""

    def make(*assignments: str, out: str = "run", **given: Any) -> Experiment:
        found = load_experiment(sample / "experiment.toml", [*SETTINGS, *assignments])
        data = found.data.model_copy(update={"prepared": sample / "prepared"})
        return found.model_copy(update={"out": tmp_path / out, "data": data, **given})

    return make


@pytest.fixture
def small_settings() -> list[str]:
    """The assignments that make the experiment small."""
    return list(SETTINGS)
