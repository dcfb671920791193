"""All steps of the runs, one after the other and side by side, until they are done or the time is up."""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smollm_data import MADE, ROOT, RUNS, unpack, without_folders  # type: ignore[import-not-found]

SECONDS = {"train": 100, "choose": 50, "test": 40, "answer": 40}
"""What a kind of step takes at least: one is not begun when less is left."""
BUNDLED_EVERY = 30
"""Seconds after which the files of a running step are fetched from, too."""
TRAININGS = 2
"""At most so many at a time: they fill the memory."""


@dataclass(frozen=True)
class Step:
    """What a process does: `kind` of the run `name`, with its sentences of `selector`."""

    kind: str
    name: str
    seed: int = 1
    selector: str = "oracle"

    @property
    def key(self) -> str:
        """Of the checkpoint."""
        return f"{self.name}-{self.seed}"

    @property
    def label(self) -> str:
        selected = f" {self.selector}" if self.selector != "oracle" else ""
        return f"{self.kind} {self.key}{selected}"

    @property
    def run(self) -> str:
        """What it is called in the results."""
        return self.name if self.selector == "oracle" else f"{self.name}/{self.selector}"

    @property
    def bundle(self) -> str:
        """Which file its results are put into."""
        if self.name in ("speaker", "personality"):
            return "characters"
        if self.selector != "oracle":
            return "selected"
        return {"tf-knowledge": "knowledge", "tf-knowledge-lora": "lora"}.get(self.name, "plain")

    @property
    def needs(self) -> list[Step]:
        if self.kind == "train":
            return []
        if self.kind == "choose" or self.name in ("speaker", "personality"):
            return [Step("train", self.name, self.seed)]
        steps = [Step("choose", "tf-knowledge")]
        return steps if self.name == "untrained" else [*steps, Step("train", self.name, self.seed)]


def plan(parts: Sequence[str], seeds: Sequence[int], selectors: Sequence[str]) -> list[Step]:
    """In the order of `parts`; within a part the most valuable first."""
    knowledge = [Step("train", "tf-knowledge", seed) for seed in seeds]
    steps = {
        "knowledge": [
            *knowledge[:2],
            Step("choose", "tf-knowledge"),
            *(Step("test", "tf-knowledge", seed) for seed in seeds[:2]),
            *knowledge[2:],
            *(Step("test", "tf-knowledge", seed) for seed in seeds[2:]),
        ],
        "selected": [Step("test", "tf-knowledge", seeds[0], selector) for selector in selectors],
        "tf": [Step(kind, "tf", seeds[0]) for kind in ("train", "test")],
        "untrained": [Step("test", "untrained")],
        "characters": [
            Step(kind, name) for name in ("speaker", "personality") for kind in ("train", "answer")
        ],
        "lora": [Step("train", "tf-knowledge-lora"), Step("test", "tf-knowledge-lora")],
        "tf-seeds": [Step(kind, "tf", seed) for seed in seeds[1:] for kind in ("train", "test")],
    }
    return [step for part in parts for step in steps[part]]


class Queue:
    def __init__(self, given: argparse.Namespace, words: Sequence[str]) -> None:
        self.given, self.words = given, words
        self.began = time.time()
        self.ends: dict[str, dict[str, Any]] = {}
        self.failed: set[Step] = set()
        self.bundled = self.began
        self.compile = given.compile
        paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {"PYTHONPATH": ":".join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}
        self.environment |= {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1"}
        self.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # batches differ in shape
        (given.out / "steps").mkdir(parents=True, exist_ok=True)
        unpack(given.source)
        self._take_over_choice()

    @property
    def left(self) -> float:
        """Seconds."""
        return self.began + 60 * self.given.minutes - time.time()

    def _take_over_choice(self) -> None:
        """The decoding may have been chosen by an earlier run."""
        chosen = self.given.out / "steps/knowledge/decoding.json"
        if (MADE / "decoding.json").exists() and not chosen.exists():
            chosen.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(MADE / "decoding.json", chosen)
            self._mark(Step("choose", "tf-knowledge")).touch()

    def work(self) -> None:
        everything = plan(self.given.parts, self.given.seeds, self.given.selectors)
        needed = {need for step in everything for need in step.needs}
        done = {step for step in {*everything, *needed} if self._mark(step).exists()}
        waiting = [step for step in everything if step not in done]
        running: dict[Step, tuple[subprocess.Popen[bytes], float]] = {}
        while (waiting or running) and self.left > 0:
            for step in list(waiting):
                if len(running) >= self.given.processes:
                    break
                trainings = sum(other.kind == "train" for other in running)
                is_ready = all(need in done for need in step.needs)
                if is_ready and not (step.kind == "train" and trainings >= TRAININGS):
                    waiting.remove(step)
                    if self.left < SECONDS[step.kind] and not self.given.limit:
                        self._note(step, "not begun: out of time", 0)
                    else:
                        running[step] = self._start(step), time.time()
            for step, (process, began) in list(running.items()):
                if process.poll() is None:
                    continue
                del running[step]
                seconds = time.time() - began
                end = "done"
                if not process.returncode:
                    done.add(step)
                    self._mark(step).touch()
                elif step.kind == "train" and self.compile:
                    end, self.compile = "failed; once more without --compile", False
                    waiting.insert(0, step)
                elif step not in self.failed:
                    end = f"exit {process.returncode}; once more at the end"
                    waiting.append(step)
                    self.failed.add(step)
                else:
                    end = f"exit {process.returncode}"
                self._note(step, end, seconds)
            if not running and all(not set(step.needs) <= done for step in waiting):
                break
            if time.time() > self.bundled + BUNDLED_EVERY:
                for name in {step.bundle for step in running}:
                    self._bundle(name)
                self.bundled = time.time()
            time.sleep(0.2)
        for step, (process, began) in running.items():
            process.kill()
            process.wait()
            self._note(step, "out of time", time.time() - began)
        for step in waiting:
            self._note(step, "not begun", 0)
        print(f"{time.time() - self.began:5.0f} s  END", flush=True)

    def _start(self, step: Step) -> subprocess.Popen[bytes]:
        script = str(Path(__file__).with_name("smollm.py"))
        words = [word for word in self.words if self.compile or word != "--compile"]
        what = [step.kind, step.name, str(step.seed), step.selector]
        print(f"{time.time() - self.began:5.0f} s  {step.label}: begun", flush=True)
        with self._log(step).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, script, "step", *what, *words], stdout=log, stderr=log, env=self.environment
            )

    def _log(self, step: Step) -> Path:
        return RUNS / f"{step.label.replace(' ', '-')}.log"

    def _mark(self, step: Step) -> Path:
        """A file that is there when the step was done, perhaps by an earlier call."""
        return self._log(step).with_suffix(".done")

    def _note(self, step: Step, end: str, seconds: float) -> None:
        """One line, and everything there is so far into the files that are fetched."""
        lines: list[str] = []
        if self._log(step).exists():
            lines = self._log(step).read_text(encoding="utf-8", errors="replace").splitlines()
        last = " | ".join(lines[-2:]) if end == "done" else "\n    ".join(["", *lines[-12:]])
        print(f"{time.time() - self.began:5.0f} s  {step.label}: {end} ({seconds:.0f} s)  {last}", flush=True)
        self.ends[step.label] = {"end": end, "seconds": round(seconds)}
        self._write_training()
        self._bundle(step.bundle)

    def _write_training(self) -> None:
        import torch

        runs = {}
        for folder in sorted(path.parent for path in RUNS.glob("*/metrics.jsonl")):
            rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
            keys = ("epoch", "step", "seconds", "ppl_word", "valid_ppl_word", "lr")
            epochs = [
                {k: round(row[k], 6) for k in keys if k in row} for row in rows if row["kind"] == "epoch"
            ]
            speeds = [row["tokens_per_second"] for row in rows if row["kind"] == "step"]
            memory = max((row["memory_mb"] for row in rows), default=0)
            runs[folder.name] = {"epochs": epochs, "tokens_per_second": max(speeds, default=0)}
            runs[folder.name] |= {"memory_mb": memory}
            if (folder / "settings.json").exists():
                settings = json.loads((folder / "settings.json").read_text())
                runs[folder.name]["settings"] = list(map(without_folders, settings))
        machine = {"gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"}
        machine |= {"cores": os.cpu_count(), "torch": torch.__version__, "python": platform.python_version()}
        command = "experiments/topical_chat/smollm.py run " + " ".join(map(without_folders, self.words))
        content = {"command": command, "seconds": round(time.time() - self.began), "machine": machine}
        content |= {"steps": self.ends, "runs": runs}
        _replace(self.given.out / "training.json", json.dumps(content, indent=1).encode() + b"\n")

    def _bundle(self, name: str) -> None:
        """All files of some steps as one, which is whole at any time."""
        folder = self.given.out / "steps" / name
        if folder.exists():
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as tar:
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and path.suffix != ".part":
                        tar.add(path, arcname=str(path.relative_to(folder)))
            _replace(self.given.out / f"{name}.tar", packed.getvalue())


def _replace(path: Path, content: bytes) -> None:
    path.with_suffix(".part").write_bytes(content)
    path.with_suffix(".part").rename(path)


def run_step(step: Step, given: argparse.Namespace) -> None:
    """In a process of its own."""
    import smollm_testing as testing  # type: ignore[import-not-found]
    import smollm_training as training  # type: ignore[import-not-found]

    testing.limit_memory()
    out = given.out / "steps" / step.bundle
    out.mkdir(parents=True, exist_ok=True)
    if step.kind == "train":
        training.train(step.name, step.seed, given)
        if step.name.endswith("-lora"):
            for place in ("last", "best"):
                if (RUNS / step.key / place).exists():
                    training.keep_adapter(RUNS / step.key / place, out / f"adapter-{place}")
    elif step.kind == "choose":
        _replace(out / "decoding.json", json.dumps(testing.choose_decoding(step.key, given.limit)).encode())
    elif step.kind == "answer":
        testing.answer_as_characters(testing.checkpoints(step.key).popitem()[1], step.name, out, given.limit)
    else:
        chosen = json.loads((given.out / "steps/knowledge/decoding.json").read_text())
        if step.name == "untrained":
            training.keep_untrained(given.base)
        choices = testing.checkpoints(step.key)
        checkpoint = choices.get(chosen["checkpoint"], choices["last epoch"])
        print(f"{checkpoint}, {chosen['decoding']}", flush=True)
        options = chosen["options"]
        testing.test(checkpoint, step.run, step.seed, step.selector, options, out, given.limit)
