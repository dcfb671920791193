"""What the stages of the comparator are given and leave behind."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from palaver.comparator.cmade.network import ComparatorNetwork
from palaver.comparator.cmade.presets import Preset
from palaver.comparator.evaluation import PairResult
from palaver.comparator.training_data import Pairs, RatedDialogues
from palaver.errors import DataError

RECORD, ARRAYS, NETWORK = "stage.json", "arrays.npz", "network"
"""What lies in a stage's folder."""
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Sources:
    """What a pipeline learns from. `pairs` may be used by its stages, `test` only measures."""

    ratings: RatedDialogues
    flow: RatedDialogues | None = None
    """More dialogues for stage 1, rated or not."""
    dev: RatedDialogues | None = None
    pairs: Pairs | None = None
    test: Pairs | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def gather(
        cls,
        ratings: RatedDialogues,
        *,
        dev: RatedDialogues | None = None,
        pairs: Pairs | None = None,
        test: Pairs | None = None,
        flow: RatedDialogues | None = None,
    ) -> Sources:
        """Dialogues of the development set are taken out of what is trained on."""
        held = set(dev.ids) if dev is not None else set()
        keep = [i for i, name in enumerate(ratings.ids) if name not in held]
        lost = len(ratings) - len(keep)
        if not keep:
            raise DataError(
                "every rated dialogue is also one of the development set: none is left to train on"
            )
        notes = (f"{lost} rated dialogues are in the development set and not trained on",) if lost else ()
        return cls(ratings.take(keep) if lost else ratings, flow, dev, pairs, test, notes)


@dataclass(frozen=True)
class StageResult:
    """What a stage left behind."""

    name: str
    """The stage after all those before it: flow+smooth."""
    folder: Path
    signature: str
    arrays: Arrays
    record: dict[str, Any]
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
    notes: tuple[str, ...] = field(default=())

    @property
    def folder(self) -> Path:
        """Of the trained comparator."""
        return self.stages[-1].folder / NETWORK

    @property
    def dev_scores(self) -> NDArray[np.float32] | None:
        return self.stages[-1].arrays.get("dev_scores")

    def to_json(self) -> dict[str, Any]:
        def plain(found: PairResult | None) -> dict[str, Any] | None:
            return None if found is None else dataclasses.asdict(found)

        p = self.preset
        last = self.stages[-1]
        return {
            "preset": p.name,
            "row": p.row,
            "title": p.title,
            "paper": {"accuracy": p.accuracy, "kappa": p.kappa, "kappa_se": p.kappa_se},
            "seed": last.record["inputs"]["seed"],
            "on_pairs": plain(self.on_pairs),
            "on_test": plain(self.on_test),
            "pairs_were_used": p.needs_pairs,
            "seconds": round(sum(s.record["seconds"] for s in self.stages), 2),
            "stages": {s.name: s.signature for s in self.stages},
            "n_kept": last.record.get("n_kept"),
            "n_train": last.record["n_train"],
            "device": last.record["device"],
            "notes": list(self.notes),
        }
