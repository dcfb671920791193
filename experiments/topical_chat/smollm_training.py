"""A model of SmolLM2 trained, or kept as it was published."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from smollm_data import MADE, RUNS, SHOWS, chosen_sentences  # type: ignore[import-not-found]

from palaver.models.causal import CausalResponder
from palaver.models.pretrained import build, fingerprint
from palaver.text.vocabulary import Vocabulary

PRESETS = {
    "tf-knowledge": "smollm-tf-knowledge",
    "tf-knowledge-lora": "smollm-tf-knowledge",
    "tf": "smollm-tf",
    "speaker": "smollm-speaker",
    "personality": "smollm-personality",
}
CHARACTERS = ("speaker", "personality")
LORA = ["model.lora_rank=8", "model.lora_alpha=16", "optimiser.learning_rate=1e-3"]


def settings(name: str, seed: int, given: argparse.Namespace) -> list[str]:
    """What differs from the preset: data as files, and what the command line says."""
    key = f"{name}-{seed}"
    changes = [f"out={RUNS / key}", f"seed={seed}", f"data.prepared={RUNS}/prepared-{key}"]
    changes += [f"model.base={given.base}", "log.checkpoint_every=0"]
    if given.epochs is not None:
        changes.append(f"optimiser.epochs={given.epochs}")
    if name in CHARACTERS:
        scripts = ", ".join(f'{{path="{MADE}/{show}.jsonl"}}' for show in SHOWS)
        changes.append(f"data.train=[{scripts}]")
        if name == "personality":
            changes.append(f"data.ocean={MADE}/ocean-wide.csv")
    else:
        changes += [f'data.train=[{{path="{MADE}/train.jsonl"}}]', "data.valid_examples=2000"]
        changes.append(f'data.valid=[{{path="{MADE}/valid_freq.jsonl"}}]')
    if name.endswith("-lora"):
        changes += LORA
    if given.limit:
        changes += [f"data.max_examples={given.limit}", "data.valid=[]", "optimiser.batch_tokens=2048"]
        changes += [f"data.valid_examples={given.limit // 4}", "optimiser.max_steps=4"]
    return [*changes, *given.settings]


class Log:
    """Prints how a run goes."""

    def row(self, row: dict[str, Any], done: float) -> None:
        keys = ("step", "seconds", "ppl_word", "valid_ppl_word", "tokens_per_second", "memory_mb")
        print(row["kind"], {key: round(row[key], 2) for key in keys if key in row}, flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)


def train(name: str, seed: int, given: argparse.Namespace) -> None:
    from palaver.training import run
    from palaver.training.experiment_file import preset_experiment

    experiment = preset_experiment(PRESETS[name], settings(name, seed, given))
    known = chosen_sentences(("train", "valid_freq")) if experiment.data.knowledge != "none" else {}

    def select(dialogues: Iterable[Any]) -> Iterator[tuple[Any, list[str]]]:
        for dialogue in dialogues:
            yield dialogue, known[dialogue.id]

    if given.compile:
        _compile_layers(run)
    outcome = run.train(experiment, select=select if known else None, watcher=Log(), fresh=True)
    (RUNS / f"{name}-{seed}" / "settings.json").write_text(json.dumps(settings(name, seed, given)))
    print(f"trained: {outcome.reason}", flush=True)


def _compile_layers(run: Any) -> None:
    """One compiled layer serves all of them, since they are alike."""
    make = run.make_model

    def make_model(*given: Any) -> Any:
        model, notes = make(*given)
        for layer in model.language_model.base_model.layers:
            layer.compile(dynamic=True)
        return model, notes

    run.make_model = make_model


def keep_untrained(base: str) -> None:
    """SmolLM2 as it was published, kept like a checkpoint."""
    from palaver.models.causal_base import read_base

    about = read_base(base)
    vocabulary = Vocabulary.load(about.folder, foreign=True)
    fields = {"architecture": about.architecture, "frame": asdict(about.frame), "end": about.end}
    fields |= {"vocab_size": len(vocabulary), "vocabulary": fingerprint(vocabulary), "knowledge": True}
    limits = {"max_context": 384, "max_knowledge": 128, "max_response": 160}
    model = build({"model": "causal", "base": base, **fields, **limits})
    assert isinstance(model, CausalResponder)
    model.load_base()
    folder = RUNS / "untrained-1" / "last"
    model.save_pretrained(folder)
    vocabulary.save(folder)


def keep_adapter(folder: Path, target: Path) -> None:
    """In half precision; its base is the model that everybody can get."""
    from safetensors.torch import load_file, save_file

    target.mkdir(parents=True, exist_ok=True)
    weights = {name: w.to(torch.float16) for name, w in load_file(folder / "model.safetensors").items()}
    save_file(weights, target / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["base"] = "smollm2"
    (target / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")
