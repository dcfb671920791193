"""Prepared data: made once, made anew when anything that matters changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from palaver.errors import UserError
from palaver.text.vocabulary import Vocabulary
from palaver.training import prepare as prepare_module
from palaver.training.experiment import Experiment
from palaver.training.experiment_file import load_experiment
from palaver.training.prepare import prepare
from palaver.training.sample import write_sample

Small = Callable[..., Experiment]


def test_made_once(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(small())
    monkeypatch.setattr(prepare_module, "write_store", None)
    monkeypatch.setattr(Vocabulary, "train", None)
    monkeypatch.setattr(prepare_module, "sha256_of", lambda path: "0" * 64)
    assert (prepare(small()).train, prepare(small()).vocabulary) == (first.train, first.vocabulary)
    assert prepare(small("model.dim=64", "optimiser.batch_size=3", "seed=9")).train == first.train


@pytest.mark.parametrize(
    "change",
    [
        "data.history_turns=1",
        "data.merge_turns=true",
        'data.speakers=["Ada"]',
        "data.max_examples=50",
        "model.max_context=10",
        "vocabulary.size=300",
    ],
)
def test_made_anew_when_something_changes(small: Small, change: str) -> None:
    first, other = prepare(small()), prepare(small(change))
    assert first.train != other.train
    assert (first.vocabulary == other.vocabulary) is ("vocabulary" not in change)


def test_made_anew_when_the_file_changes(tmp_path: Path, small_settings: list[str]) -> None:
    write_sample(tmp_path, 40)
    found = load_experiment(tmp_path / "experiment.toml", small_settings)
    found = found.model_copy(update={"out": tmp_path / "run"})
    first = prepare(found)
    assert prepare(found) == first
    write_sample(tmp_path, 41)
    later = prepare(found)
    assert later.train != first.train
    assert later.hashes != first.hashes


def test_validation_sources_of_their_own(small: Small, sample: Path) -> None:
    path = f'[{{path="{sample / "dialogues.jsonl"}"}}]'
    found = prepare(small(f"data.valid={path}", 'data.speakers=["Ben"]'))
    assert found.valid is not None
    assert len(found.notes) == 2
    assert "validation examples" in found.notes[1]
    assert found.speakers == ("Ben",)


def test_real_characters(shared_data: Path, tmp_path: Path) -> None:
    """Six of Friends, seven of The Big Bang Theory have 2,000 turns (Xing & Fernández 2018, section 3.1)."""
    path = tmp_path / "e.toml"
    path.write_text('preset = "xing2018-speaker"\n[model]\nhidden = 8\nembedding = 8\n')
    found = load_experiment(path, ["data.max_examples=100", "data.valid_examples=10"])
    data = found.data.model_copy(update={"root": shared_data, "prepared": tmp_path / "prepared"})
    prepared = prepare(found.model_copy(update={"data": data}))
    assert len(prepared.speakers) == 13
    assert {"Ross", "Sheldon", "Amy"} <= set(prepared.speakers)


def test_too_few_to_hold_out(small: Small) -> None:
    with pytest.raises(UserError, match="lower data.valid_examples|only"):
        experiment = small("data.valid_examples=5000")
        prepare_module.open_splits(experiment, prepare(experiment))
