"""Prepared data: made once, made anew when anything that matters changes."""

from __future__ import annotations

import json
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
from palaver.training.store import Store

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


def of(small: Small, tmp_path: Path, *dialogues: list[str], also: tuple[str, ...] = ()) -> Experiment:
    """The small experiment on these dialogues of two speakers, with nothing held out."""
    path = tmp_path / "own.jsonl"
    rows = [
        {"id": str(i), "turns": [{"speaker": "AB"[j % 2], "text": text} for j, text in enumerate(texts)]}
        for i, texts in enumerate(dialogues)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = small(f'data.train=[{{path="{path}"}}]', "data.valid_examples=0", *also)
    return found.model_copy(
        update={"data": found.data.model_copy(update={"prepared": tmp_path / "prepared"})}
    )


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["hello there my friend"], "1 left out: the first turn"),
        (["hello there my friend", " ", "\t"], "2 left out: an empty response"),
        (["", "hello there my friend"], "1 left out: nothing but empty turns before it"),
    ],
)
def test_data_without_examples(texts: list[str], reason: str, small: Small, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no examples came of the data") as caught:
        prepare(of(small, tmp_path, texts))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "texts", [["hello there my friend", "yes"], ["\0\1", "你好 😀"], ["a " * 50_000, "b " * 50_000]]
)
def test_one_odd_example_is_enough(texts: list[str], small: Small, tmp_path: Path) -> None:
    store = Store(prepare(of(small, tmp_path, texts)).train)
    assert len(store) == 1
    assert store.response.lengths()[0] <= 16


def test_windows_leave_nothing_out(small: Small, tmp_path: Path) -> None:
    also = ("data.task=windows", "data.window=4")
    found = prepare(of(small, tmp_path, ["hello there my friend", "yes indeed"], also=also))
    assert not any(Store(found.train).skipped.values())


@pytest.mark.parametrize("text", ["[]", "5", "{", '{"a": 5}'])
def test_a_damaged_memory_of_hashes_costs_nothing_but_time(text: str, small: Small, tmp_path: Path) -> None:
    experiment = of(small, tmp_path, ["hello there my friend", "yes"])
    before = prepare(experiment)
    (tmp_path / "prepared" / "hashes.json").write_text(text)
    assert prepare(experiment) == before
