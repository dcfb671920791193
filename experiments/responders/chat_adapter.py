"""Train the partner of `palaver chat`: an adapter of SmolLM2, on conversations written for this project.

    python experiments/responders/chat_adapter.py --out runs/chat-adapter
    palaver train responder experiments/responders/default-chat-more.toml

The second goes on from the first with conversations that were written later.

Each of `SETTINGS` is trained on everyday-train.jsonl; the one with the lowest loss on everyday-valid.jsonl
(every tenth dialogue of each theme) is kept in half precision. The evaluation's prompts are not read. OUT
gets `adapter/`, and `training.json` with the loss of every setting after every epoch and the kept one's
greedy replies to `DEVELOPMENT`. Needs torch, transformers, accelerate, peft and pydantic, no more.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from palaver.generation.checkpoint import CheckpointSystem
from palaver.generation.decode import Decoding
from palaver.schema import Dialogue, Request, Turn
from palaver.training import run
from palaver.training.experiment_file import load_experiment

HERE = Path(__file__).resolve().parent
EXPERIMENT = HERE / "default-chat.toml"
SETTINGS = {
    f"rank8-rate{rate:g}-batch{batch}": (
        f"optimiser.learning_rate={rate}",
        f"optimiser.batch_tokens={batch}",
        f"optimiser.epochs={epochs}",
    )
    for rate in (3e-4, 6e-4, 1.2e-3)
    for batch, epochs in ((1024, 4), (4096, 6))
}
DEVELOPMENT = (HERE / "everyday-development.txt").read_text(encoding="utf-8").splitlines()
"""Prompts that were looked at while the adapter was made; neither taught nor part of the evaluation."""
HALF = "model.safetensors"


class Watcher:
    """Keeps the validation loss after each epoch."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def row(self, row: dict[str, Any], done: float) -> None:
        if "valid_nll" in row:
            self.losses.append(round(row["valid_nll"], 4))

    def note(self, text: str) -> None:
        pass


def train_one(name: str, base: str, device: str, out: Path) -> tuple[list[float], Path]:
    """Validation loss per token after each epoch, and the best checkpoint's folder."""
    folder = out / "runs" / name
    changes = [*SETTINGS[name], f"model.base={base}", f"out={folder}", f"data.prepared={out / 'prepared'}"]
    experiment = load_experiment(EXPERIMENT, [*changes, "log.checkpoint_every=0"])
    watcher = Watcher()
    run.train(experiment, device=device, fresh=True, watcher=watcher)  # type: ignore[arg-type]
    return watcher.losses, folder / "best"


def keep_adapter(folder: Path, target: Path) -> None:
    """In half precision; its base is the model that everybody can get."""
    target.mkdir(parents=True, exist_ok=True)
    weights = {name: weight.half() for name, weight in load_file(folder / HALF).items()}
    save_file(weights, target / HALF, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["base"] = "smollm2"
    (target / "config.json").write_text(json.dumps(config, indent=1, ensure_ascii=False), encoding="utf-8")


def answer(folder: Path, device: str) -> list[dict[str, str]]:
    """Greedy replies to the development prompts."""
    system = CheckpointSystem(folder, device=device, dtype="float32", decoding=Decoding(max_length=80))
    requests = [
        Request(Dialogue(id=f"d{i}", turns=(Turn(speaker="you", text=text),)))
        for i, text in enumerate(DEVELOPMENT)
    ]
    replies = system.reply(requests)
    return [{"prompt": p, "reply": r.text} for p, r in zip(DEVELOPMENT, replies, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", default="smollm2", help="or its folder as `transformers` keeps it")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    losses: dict[str, list[float]] = {}
    best: tuple[float, str] = (math.inf, "")
    for name in given.only:
        losses[name], folder = train_one(name, given.base, given.device, given.out)
        best_of_run = min(losses[name])
        print(f"{time.perf_counter() - began:5.0f} s  {name}: {losses[name]}", flush=True)
        if best_of_run < best[0]:
            best = (best_of_run, name)
            shutil.rmtree(given.out / "adapter", ignore_errors=True)
            keep_adapter(folder, given.out / "adapter")
            trained = folder
        content = {
            "command": "experiments/responders/chat_adapter.py",
            "seed": 1,
            "valid_nll_per_token": losses,
            "kept": best[1],
            "machine": {"device": _device_name(), "torch": torch.__version__},
            "seconds": round(time.perf_counter() - began),
        }
        _write(given.out / "training.json", content)
    content["development"] = answer(trained, given.device)
    for row in content["development"]:
        print(f"{row['prompt']}  ->  {row['reply']}", flush=True)
    _write(given.out / "training.json", content)


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
