"""Checkpoints that survive being killed: written aside, forced to disk, renamed; `last` and `best` are links.

A checkpoint holds the model (`config.json`, `model.safetensors`, `tokenizer.json`: a folder that
`palaver.models.load` opens), the optimiser and random states (`training.pt`) and the progress
(`progress.json`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import random
import shutil
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError

from palaver.artefacts import PART, sync, write_folder
from palaver.config import dotted
from palaver.errors import DataError, UserError
from palaver.models.pretrained import Responder
from palaver.statistics.perplexity import Perplexity
from palaver.text.vocabulary import Vocabulary

FOLDER = "checkpoints"
STATE = "training.pt"
PROGRESS = "progress.json"


@dataclass
class Totals:
    """Sums over some batches and all processes."""

    loss: float = 0.0
    """What was back-propagated, with label smoothing."""
    nll: float = 0.0
    """Negative log-likelihood of all target tokens."""
    norm: float = 0.0
    """Norms of the gradient, one a step and process."""
    tokens: float = 0.0
    """Target tokens."""
    words: float = 0.0
    spelling: float = 0.0
    """What unknown words cost on top, where a word counts (`palaver.text.spelling`)."""
    examples: float = 0.0
    read: float = 0.0
    """All tokens, those of contexts and knowledge included, without padding."""
    steps: float = 0.0

    def __add__(self, other: Totals) -> Totals:
        return Totals(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def are_finite(self) -> bool:
        return all(map(math.isfinite, astuple(self)))

    @property
    def nll_per_token(self) -> float:
        return self.nll / max(self.tokens, 1)

    @property
    def perplexity(self) -> Perplexity:
        return Perplexity(self.nll, max(int(self.tokens), 1), max(int(self.words), 1), self.spelling)


@dataclass
class RunProgress:
    """How far a run has come. Written to JSON, whose floats come back to the last bit."""

    step: int = 0
    epoch: int = 0
    """Epochs completed."""
    batch: int = 0
    """Batches of the current epoch that are done."""
    best: float | None = None
    """Lowest validation loss per token."""
    best_step: int = 0
    waited: int = 0
    """Epochs since the best one."""
    seconds: float = 0.0
    metrics_bytes: int = 0
    window: Totals = field(default_factory=Totals)
    """Sums since the last line of metrics."""
    totals: Totals = field(default_factory=Totals)
    """Sums since the beginning of the epoch, without those of `window`."""
    schedule: dict[str, Any] = field(default_factory=dict)
    n_processes: int = 1
    finished: str = ""
    """Why the run has ended; empty while it has not."""


_PROGRESS = TypeAdapter(RunProgress)


def random_state() -> dict[str, Any]:
    """Of all generators that training may draw from, in this process; plain values and tensors only."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        "numpy": (kind, torch.from_numpy(np.asarray(keys).astype(np.int64)), *rest),
        "python": random.getstate(),
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Go on as the process did whose `random_state` this is."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    random.setstate(state["python"])


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, run: Path, keep: int = 1) -> None:
        self.run = run
        self.keep = keep
        self.folder = run / FOLDER

    def save(
        self,
        model: Responder,
        vocabulary: Vocabulary,
        progress: RunProgress,
        optimiser: dict[str, Any],
        random_states: list[dict[str, Any]],
    ) -> Path:
        """A new `last`, and a new `best` if this step is it. The one before stays whole until then."""
        target = self.folder / _name(progress.step)
        try:
            # A folder of this name was left by a run that was killed before it could link to it.
            with write_folder(target, replace=True) as part:
                model.save_pretrained(part)
                vocabulary.save(part)
                torch.save({"optimiser": optimiser, "random": random_states}, part / STATE)
                (part / PROGRESS).write_text(json.dumps(asdict(progress), indent=1), encoding="utf-8")
            _link(self.run / "last", target)
            self._link_best(progress)
            self._prune()
        except (OSError, SafetensorError, RuntimeError, UserError) as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            reason = error.message if isinstance(error, UserError) else str(error)
            before = self.last()
            kept = f"the last good checkpoint is {before}" if before else "there is no checkpoint before it"
            raise UserError(
                f"the checkpoint of step {progress.step:,} could not be written: {reason}",
                f"is the disk full? make room and run the same command again; {kept}",
            ) from error
        return target

    def _link_best(self, progress: RunProgress) -> None:
        best = self.folder / _name(progress.best_step)
        if progress.best is not None and best.is_dir():
            _link(self.run / "best", best)

    def _prune(self) -> None:
        linked = {(self.run / name).resolve() for name in ("last", "best")}
        steps = sorted(self.folder.glob("step-*"))
        for folder in steps[: -self.keep]:
            if folder not in linked and folder.resolve() not in linked:
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.resolve() != (self.run / "last").resolve():
                # Nobody goes on from there; the model is what counts.
                (folder / STATE).unlink(missing_ok=True)

    def last(self) -> Path | None:
        """The folder of the newest complete checkpoint. Copies of a run may come without the links."""
        link = self.run / "last"
        if (link / PROGRESS).is_file():
            return link.resolve()
        whole = [f for f in self.folder.glob("step-*") if (f / PROGRESS).is_file() and (f / STATE).is_file()]
        return max(whole, default=None)

    def check_none(self) -> None:
        """Raise `DataError` if there are checkpoints but none to go on from: a new run would delete them."""
        there = sorted(self.folder.glob("step-*")) if self.folder.is_dir() else []
        if there:
            raise DataError(
                f"{self.run} holds {there[-1].name}, which cannot be gone on from: files are missing",
                "begin anew with --force, or choose another folder with --out",
            )

    def load(self) -> tuple[RunProgress, dict[str, Any]] | None:
        """Progress and training state of `last`, if there is one."""
        last = self.last()
        if last is None:
            return None
        progress = read_progress(last)
        try:
            state = torch.load(last / STATE, map_location="cpu", weights_only=True)
            if "param_groups" not in state["optimiser"] or len(state["random"]) != progress.n_processes:
                raise ValueError(f"{STATE} does not hold what it should")
        except (OSError, ValueError, TypeError, LookupError, RuntimeError, EOFError) as error:
            raise unreadable(last, error) from None
        except pickle.UnpicklingError:  # pages of advice that is not for us
            raise unreadable(last, f"{STATE} is damaged") from None
        return progress, state

    def clear_leftovers(self, progress: RunProgress) -> None:
        """Parts and checkpoints beyond `last`, and a `best` that was not linked before the kill."""
        for part in self.folder.glob(f"{PART}*"):
            shutil.rmtree(part, ignore_errors=True)
        for folder in self.folder.glob("step-*"):
            if folder.name > _name(progress.step):
                shutil.rmtree(folder, ignore_errors=True)
        self._link_best(progress)


def read_progress(folder: Path) -> RunProgress:
    """How far the run had come when the checkpoint `folder` was written."""
    try:
        return _PROGRESS.validate_python(json.loads((folder / PROGRESS).read_text(encoding="utf-8")))
    except ValidationError as error:
        mistake = error.errors()[0]
        raise unreadable(folder, f"{PROGRESS}: {dotted(mistake['loc'])}: {mistake['msg']}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(folder, error) from None


def unreadable(folder: Path, reason: object) -> DataError:
    """What to say of a checkpoint that is damaged."""
    words = str(reason).strip() or "it is cut short"
    return DataError(f"the checkpoint {folder} cannot be read: {words}", "begin anew with --force")


def _name(step: int) -> str:
    return f"step-{step:09d}"


def _link(link: Path, target: Path) -> None:
    """A link to `target` takes the place of what `link` was, at once."""
    new = link.with_name(f".{link.name}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    new.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    if link.is_dir() and not link.is_symlink():  # a copy of a run may have folders in place of links
        shutil.rmtree(link)
    os.replace(new, link)
    sync(link.parent)
