"""A causal language model through `train`: cost per word, going on, adapters, answering."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.causal_base import write_base

from palaver.errors import ConfigError
from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.decode import Decoding, pad
from palaver.models.pretrained import load
from palaver.schema import Dialogue, Request, Turn
from palaver.training.experiment import Experiment
from palaver.training.experiment_file import load_experiment, preset_experiment
from palaver.training.folder import read_metrics
from palaver.training.prepare import open_splits, prepare
from palaver.training.run import train

FILE = """
[data]
train = [{ path = "dialogues.jsonl" }]
valid_examples = 6
max_examples = 30
history_turns = 2

[model]
kind = "causal"
base = "BASE"
max_context = 60
max_response = 40

[optimiser]
batch_tokens = 1500
epochs = 2
learning_rate = 3e-3

[log]
every = 1
checkpoint_every = 1
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_base(tmp_path_factory.mktemp("base"))


def experiment(sample: Path, base: Path, out: Path, *assignments: str) -> Experiment:
    path = sample / "causal.toml"
    path.write_text(FILE.replace("BASE", str(base)), encoding="utf-8")
    return load_experiment(path, [*assignments, f"out={out}", f"data.prepared={sample / 'causal'}"])


def test_a_run_that_was_stopped_ends_as_if_it_was_not_and_the_figure_is_per_word(
    sample: Path, base: Path, tmp_path: Path
) -> None:
    whole = experiment(sample, base, tmp_path / "whole")
    train(whole, device="cpu")
    train(experiment(sample, base, tmp_path / "parts", "optimiser.max_steps=1"), device="cpu")
    train(experiment(sample, base, tmp_path / "parts"), device="cpu")
    first, second = (load_file(tmp_path / n / "last" / "model.safetensors") for n in ("whole", "parts"))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)

    rows = [row for row in read_metrics(tmp_path / "whole") if row["kind"] == "epoch"]
    assert rows[-1]["valid_ppl_word"] < rows[0]["valid_ppl_word"]
    model, _ = load(tmp_path / "whole" / "last")
    split = open_splits(whole, prepare(whole))[1]
    assert split is not None
    nll = 0.0
    for i in split.ids:  # one by one, without padding
        context, response = (
            pad([column[i].tolist()], "cpu") for column in (split.store.context, split.store.response)
        )
        nll += float(model(context, response).nll.detach())
    per_word = math.exp(nll / int(split.store.n_words[split.ids].sum()))
    assert rows[-1]["valid_ppl_word"] == pytest.approx(per_word, rel=1e-5)


def test_a_run_goes_on_with_the_end_that_it_has_learnt(sample: Path, base: Path, tmp_path: Path) -> None:
    train(experiment(sample, base, tmp_path / "run", "optimiser.max_steps=1"), device="cpu")
    path = tmp_path / "run" / "last" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | {"end": 6}), encoding="utf-8")
    train(experiment(sample, base, tmp_path / "run", "optimiser.max_steps=2"), device="cpu")
    assert config["end"] == 7
    assert json.loads(path.read_text(encoding="utf-8"))["end"] == 6
    assert load(tmp_path / "run" / "last")[0].config.end == 6


def test_an_adapter_is_kept_alone_and_speaks_as_somebody(sample: Path, base: Path, tmp_path: Path) -> None:
    pytest.importorskip("peft", reason="the extra llm is not installed")
    changes = ["model.lora_rank=2", "model.conditioning=speaker", 'data.speakers=["Ada", "Ben"]']
    train(experiment(sample, base, tmp_path / "run", *changes, "optimiser.max_steps=1"), device="cpu")
    train(experiment(sample, base, tmp_path / "run", *changes), device="cpu")
    best = tmp_path / "run" / "best"
    names = load_file(best / "model.safetensors").keys()
    assert "speaker.weight" in names
    assert all("lora_" in name or name == "speaker.weight" for name in names)
    (best / "tokenizer.json").unlink()  # the base has it
    system = CheckpointSystem(best.resolve(), device="cpu", decoding=Decoding(max_length=8))
    assert system.speakers == ("Ada", "Ben")
    asked = [
        Request(Dialogue(id=str(i), turns=(Turn(speaker="x", text=text),)), speaker=who)
        for i, text in enumerate(["Do you like tea?", "Hello. " * 60])
        for who in ("Ada", "Ben")
    ]
    together = system.reply(asked)
    assert f"{system.name} reads the last 60 tokens of a history, not those before" in system.notes
    for request, reply in zip(asked, together, strict=True):
        (alone,) = system.reply([request])
        assert alone.text == reply.text
        assert alone.logprob == pytest.approx(reply.logprob, rel=1e-5)


def test_the_vectors_of_speakers_can_learn_faster(sample: Path, base: Path, tmp_path: Path) -> None:
    changes = ["model.conditioning=speaker", 'data.speakers=["Ada", "Ben"]', "optimiser.name=sgd"]
    changes += ["optimiser.max_steps=1", "optimiser.learning_rate=0.01"]
    weights = {}
    for rate in (1e-9, 1, 5):
        out = tmp_path / str(rate)
        train(experiment(sample, base, out, *changes, f"optimiser.condition_rate={rate}"), device="cpu")
        weights[rate] = load_file(out / "last" / "model.safetensors")
    begun, once, often = (weights[rate].pop("speaker.weight") for rate in (1e-9, 1, 5))
    assert (once - begun).abs().max() > 1e-6
    torch.testing.assert_close(often - begun, 5 * (once - begun), rtol=1e-3, atol=1e-7)
    assert all(torch.equal(weights[1][name], weights[5][name]) for name in weights[1])


def test_settings_that_do_not_go_together_are_told(sample: Path, base: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tied follows from the language model"):
        experiment(sample, base, tmp_path, "model.tied=true")
    with pytest.raises(ConfigError, match="there is no such field .*lora_rank"):
        experiment(sample, base, tmp_path, "model.lora_rnk=2")


def test_presets_say_what_they_are_for() -> None:
    for name in ("smollm-tf", "smollm-tf-knowledge", "smollm-speaker", "smollm-personality"):
        model = preset_experiment(name).model
        assert (model.kind, preset_experiment(name).model_settings["base"]) == ("causal", "smollm2")
