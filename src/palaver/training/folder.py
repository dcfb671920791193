"""The folder of a run: whether it may be gone on with, its record, and its lines of metrics.

experiment.toml   everything that was asked for
run.json          versions, hashes of the data, hardware
metrics.jsonl     one line per logging step and per epoch
last, best        links to checkpoints
curves.svg        the same lines as a picture
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch

from palaver.errors import DataError, UserError
from palaver.files import check_writable, write_atomically
from palaver.schema.run import record_run
from palaver.training.checkpoint import FOLDER, Checkpoints
from palaver.training.experiment import Experiment
from palaver.training.experiment_file import experiment_toml

RECORD = "run.json"
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
        check_writable(self.path)
        self._fresh = fresh
        self._lock = self._locked()
        try:
            self._check_ours()
        except BaseException:
            self._lock.close()
            raise

    def _check_ours(self) -> None:
        """Nothing of somebody else's is written over or thrown away."""
        found = sorted(p.name for p in self.path.iterdir() if p.name in _OWN)
        if found and RECORD not in found:
            raise UserError(
                f"{self.path} holds {', '.join(found)}, but no {RECORD}: no run of ours wrote that",
                "choose another folder with --out",
            )
        if found and found != [RECORD] and "experiment.toml" not in found and not self._fresh:
            raise UserError(
                f"{self.path} holds {', '.join(found)}, but no experiment.toml",
                "choose another folder with --out, or begin anew with --fresh",
            )
        if self._fresh:
            own = [(self.path / name).resolve() for name in (FOLDER, "last", "best")]
            needed = [path for path in _paths(self.experiment) if any(_lies_in(path, o) for o in own)]
            if needed:
                raise UserError(
                    f"--fresh would throw away {needed[0]}, which this experiment starts from",
                    "choose another folder with --out",
                )

    def _locked(self) -> IO[str]:
        file = open(self.path / ".lock", "w")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise UserError(
                f"another process is training in {self.path}",
                "wait for it, or choose another folder with --out",
            ) from None
        return file

    def close(self) -> None:
        """Let others have the folder; one in which nothing came about is taken away."""
        if [p.name for p in self.path.iterdir()] == [".lock"]:
            shutil.rmtree(self.path, ignore_errors=True)
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
        before, recorded = self._before()
        now = self.experiment.plain()
        old, new = _flat(before), _flat(now)
        free = (
            _LENGTH if self.experiment.optimiser.schedule != "warmup-cosine" else ()
        )  # its rates depend on it
        problems = [
            f"{key}: {_shown(old.get(key))} before, {_shown(new.get(key))} now"
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
            and not key.startswith("log.")
            and key not in ("name", "preset")
            and key.rpartition(".")[2] not in (*_PLACES, *free)
        ]
        if sorted(recorded.values()) != sorted(hashes.values()):
            changed = sorted({Path(f).name for f, h in hashes.items() if h not in recorded.values()})
            problems.append(f"the data has changed: {', '.join(changed) or 'files are gone'}")
        if problems:
            raise UserError(
                f"{self.path} holds a run of another experiment:",
                "choose another folder with --out, or throw that run away with --fresh",
                problems,
            )

    def _before(self) -> tuple[dict[str, Any], dict[str, str]]:
        """What was asked for when the run began, and the hashes of its data."""
        try:
            asked = tomllib.loads((self.path / "experiment.toml").read_text(encoding="utf-8"))
            record = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
            return asked, dict(record["data"])
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataError(
                f"{self.path}: experiment.toml or {RECORD} is damaged: {error}",
                "choose another folder with --out, or throw that run away with --fresh",
            ) from None

    def begin(self, command: str, hashes: Mapping[str, str], about: Mapping[str, Any]) -> None:
        """Write down what is asked for, before the first step."""
        record = record_run(
            command,
            seed=self.experiment.seed,
            config=_flat(self.experiment.plain()),
            data=dict(hashes),
            packages=PACKAGES,
        )
        fields = {"signature": record.signature, **record.model_dump(mode="json"), **about}
        with write_atomically(self.path / RECORD) as file:  # first: by it the folder is known as ours
            json.dump(fields, file, indent=1, ensure_ascii=False)
        with write_atomically(self.path / "experiment.toml") as file:
            file.write(experiment_toml(self.experiment))


def _paths(experiment: Experiment) -> list[Path]:
    """Everything an experiment reads."""
    data = experiment.data
    named = [experiment.model.initialise_from, experiment.vocabulary.from_, data.ocean]
    named += [source.path for source in (*data.train, *data.valid)]
    return [path for path in named if path is not None]


def _lies_in(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder)


def hardware(device: torch.device, n_processes: int) -> dict[str, Any]:
    """What the run is computed on."""
    found: dict[str, Any] = {
        "device": str(device.type),
        "processes": n_processes,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
    return found


def _flat(tables: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}; sources as a list of what they are, without where they lie."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{key}.")
        elif isinstance(value, list) and any(isinstance(v, dict) for v in value):
            flat[f"{before}{key}"] = [{k: v for k, v in e.items() if k not in _PLACES} for e in value]
        else:
            flat[f"{before}{key}"] = value
    return flat


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


class MetricsFile:
    """`metrics.jsonl`: appended to, and cut back to where a checkpoint was when a run goes on from it."""

    def __init__(self, path: Path, keep_bytes: int) -> None:
        if (path.stat().st_size if path.exists() else 0) < keep_bytes:
            raise UserError(
                f"{path} is shorter than when the last checkpoint was written", "begin anew with --fresh"
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
