"""The folder of a run: whether it may be gone on with, its record, and its lines of metrics.

experiment.toml   everything that was asked for
run.json          versions, hashes of the data, hardware
metrics.jsonl     one line per logging step and per epoch
last, best        links to checkpoints
curves.svg        the same lines as a picture
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from palaver.artefacts import RECORD, can_go_on, lock_folder, make_record, write_record
from palaver.drawing import PALETTE
from palaver.errors import DataError, UserError
from palaver.files import write_atomically
from palaver.schema.run import RunRecord
from palaver.training.checkpoint import FOLDER, Checkpoints
from palaver.training.curves import Curve, draw_perplexity
from palaver.training.experiment import Experiment
from palaver.training.experiment_file import experiment_toml

_OWN = (FOLDER, "last", "best", "experiment.toml", RECORD, "metrics.jsonl", "curves.svg", "tensorboard")
_PLACES = ("out", "root", "path", "prepared", "ocean", "from", "initialise_from")
"""Where things lie may change; the hashes say whether they are the same things."""
_LENGTH = ("epochs", "max_steps", "early_stop")
PACKAGES = ("palaver", "torch", "accelerate", "tokenizers", "numpy")


class RunFolder:
    """A run on disk. Only the main process has one."""

    def __init__(self, experiment: Experiment, *, fresh: bool = False) -> None:
        self.path = experiment.folder
        self.experiment = experiment
        self._fresh = fresh
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock_folder(self.path))
            self._check_ours()
            self._lock = stack.pop_all()

    def _check_ours(self) -> None:
        """Nothing of somebody else's is written over or thrown away."""
        ours = sorted(p.name for p in self.path.iterdir() if p.name in _OWN)
        if ours and RECORD not in ours:
            raise UserError(
                f"{self.path} holds {', '.join(ours)}, but no {RECORD}: no run of ours wrote that",
                "choose another folder with --out",
            )
        if ours and ours != [RECORD] and "experiment.toml" not in ours and not self._fresh:
            raise UserError(
                f"{self.path} holds {', '.join(ours)}, but no experiment.toml",
                "choose another folder with --out, or begin anew with --force",
            )
        if self._fresh:
            lost = [(self.path / name).resolve() for name in (FOLDER, "last", "best")]
            for path in _paths(self.experiment):
                if any(path.resolve().is_relative_to(folder) for folder in lost):
                    raise UserError(
                        f"--force would throw away {path}, which this experiment starts from",
                        "choose another folder with --out",
                    )

    def close(self) -> None:
        """Let others have the folder."""
        self._lock.close()

    def _clear(self) -> None:
        for name in _OWN:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def check_same(self, hashes: Mapping[str, str]) -> None:
        """Raise `UserError` if the folder has a checkpoint of another experiment; say what differs.

        With `fresh`, what is there goes now, and not before: the data could be read, so a run will begin.
        """
        if self._fresh:
            self._clear()
        checkpoints = Checkpoints(self.path)
        if checkpoints.last() is None:
            checkpoints.check_none()
            return
        free = ["name", "preset", "log.*", *_PLACES, *(f"*.{key}" for key in _PLACES)]
        if self.experiment.optimiser.schedule != "warmup-cosine":  # its rates depend on the length
            free += [f"optimiser.{key}" for key in _LENGTH]
        can_go_on(self.path, self._record("", hashes), free=free)

    def _record(self, command: str, hashes: Mapping[str, str]) -> RunRecord:
        settings = self.experiment.plain()
        return make_record(command, settings, seed=self.experiment.seed, data=hashes, packages=PACKAGES)

    def begin(self, command: str, hashes: Mapping[str, str], about: Mapping[str, Any]) -> None:
        """Write down what is asked for, before the first step."""
        write_record(self.path, self._record(command, hashes), **about)  # first: by it the folder is ours
        with write_atomically(self.path / "experiment.toml") as file:
            file.write(experiment_toml(self.experiment))


def _paths(experiment: Experiment) -> list[Path]:
    """Everything an experiment reads."""
    data = experiment.data
    named = [experiment.model.initialise_from, experiment.vocabulary.from_, data.ocean]
    named += [source.path for source in (*data.train, *data.valid)]
    return [path for path in named if path is not None]


def hardware(device: torch.device, n_processes: int) -> dict[str, Any]:
    """What the run is computed on."""
    about: dict[str, Any] = {"device": device.type, "processes": n_processes}
    about |= {"machine": platform.machine(), "cpus": os.cpu_count()}
    if device.type == "cuda":
        about["gpu"] = torch.cuda.get_device_name(device)
    return about


class MetricsFile:
    """`metrics.jsonl`: appended to, and cut back to where a checkpoint was when a run goes on from it."""

    def __init__(self, path: Path, keep_bytes: int) -> None:
        if (path.stat().st_size if path.exists() else 0) < keep_bytes:
            raise UserError(
                f"{path} is shorter than when the last checkpoint was written", "begin anew with --force"
            )
        self._file = open(path, "ab")  # noqa: SIM115
        self._file.truncate(keep_bytes)

    def write(self, row: Mapping[str, Any]) -> None:
        """One line, at once in the file."""
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()

    def sync(self) -> int:
        """Force the lines to disk; how many bytes there are."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        self._file.close()


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run; one that is being written is left out."""
    path = run / "metrics.jsonl"
    if not path.is_file():
        raise UserError(f"{run} is not the folder of a run", "expected metrics.jsonl in it")
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
            rows.append({**row, "kind": row["kind"], "step": int(row["step"]), "nll": float(row["nll"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DataError(f"{path}, line {number}: this is not a line of metrics") from None
    return rows


def draw_curves(run: Path, name: str) -> None:
    """Draw the perplexity per word in training and validation of a run into its `curves.svg`."""
    rows = read_metrics(run)
    steps = [(row["step"], row["ppl_word"]) for row in rows if row["kind"] == "step"]
    epochs = [(row["step"], row["valid_ppl_word"]) for row in rows if "valid_ppl_word" in row]
    curves = [
        Curve(f"{name}, training", steps, PALETTE[0], opacity=0.4),
        Curve(f"{name}, validation", epochs, PALETTE[0], shape="circle"),
    ]
    # The first steps would squeeze everything else.
    most = 3 * max((perplexity for _, perplexity in epochs), default=math.inf)
    with write_atomically(run / "curves.svg") as file:
        file.write(draw_perplexity(curves, "step", "perplexity per word", most=most))
