"""What the stages of the pipeline leave behind."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from palaver.comparator.cmade.network import ComparatorNetwork
from palaver.comparator.cmade.presets import Preset
from palaver.comparator.evaluation import PairResult
from palaver.schema import RunRecord

ARRAYS, NETWORK = "arrays.npz", "network"
"""What lies in a stage's folder beside its record."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class StageResult:
    """What a stage left behind."""

    name: str
    """The stage after all those before it: flow+smooth."""
    folder: Path
    record: RunRecord
    arrays: Arrays
    about: dict[str, Any]
    """Seconds, device, counts and the history of the training."""
    resumed: bool = False

    def network(self, device: str | torch.device = "cpu") -> ComparatorNetwork:
        return ComparatorNetwork.load(self.folder / NETWORK, device=device)


@dataclass(frozen=True)
class PipelineResult:
    """A preset from beginning to end, measured on the pairs its stages had and on those they had not."""

    preset: Preset
    stages: tuple[StageResult, ...]
    on_pairs: PairResult | None
    on_test: PairResult | None
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Of the trained comparator."""
        return self.stages[-1].folder / NETWORK

    @property
    def dev_scores(self) -> NDArray[np.float32] | None:
        return self.stages[-1].arrays.get("dev_scores")

    def to_json(self) -> dict[str, Any]:
        p, last = self.preset, self.stages[-1]
        on_pairs, on_test = (
            None if result is None else dataclasses.asdict(result) for result in (self.on_pairs, self.on_test)
        )
        return {
            "preset": p.name,
            "row": p.row,
            "title": p.title,
            "paper": {"accuracy": p.accuracy, "kappa": p.kappa, "kappa_se": p.kappa_se},
            "seed": last.record.seed,
            "on_pairs": on_pairs,
            "on_test": on_test,
            "pairs_were_used": p.needs_pairs,
            "seconds": round(sum(s.about["seconds"] for s in self.stages), 2),
            "stages": {s.name: s.record.signature for s in self.stages},
            "n_kept": last.about.get("n_kept"),
            "n_train": last.about["n_train"],
            "device": last.about["device"],
            "notes": list(self.notes),
        }
