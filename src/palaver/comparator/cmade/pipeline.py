"""The stages of Liang et al. (2020) one after the other, each kept in its folder and never done twice.

    rate      the network is fitted to the ratings as they are (rows 1 to 4 of Table 4)
    flow      stage 1: real dialogues against spoilt ones
    smooth    stage 2: ratings averaged over the nearest neighbours in φ-space
    shapley   stage 3: dialogues whose rating harms the comparison of development pairs are removed

A stage takes the network and embeddings of the one before and leaves its record, `arrays.npz` and the
network. A folder with the same record is taken as it is, one with another is refused. Presets share the
stages they begin with.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from palaver.artefacts import can_go_on, make_record, read_fields, write_record
from palaver.comparator.cmade.anomalies import spoil
from palaver.comparator.cmade.inputs import Inputs
from palaver.comparator.cmade.network import (
    ComparatorNetwork,
    apply_network,
    build_network,
    keep_frozen_states,
)
from palaver.comparator.cmade.presets import Preset, Settings, StageName
from palaver.comparator.cmade.shapley import pair_values
from palaver.comparator.cmade.smoothing import smooth
from palaver.comparator.cmade.training import (
    UNKNOWN,
    Examples,
    History,
    class_centres,
    is_first_process,
    train,
)
from palaver.comparator.evaluation import PairResult, evaluate_pairs
from palaver.comparator.training_data import TrainingData, load_arrays
from palaver.errors import DataError, UserError
from palaver.files import check_writable, write_atomically
from palaver.models.devices import choose_device
from palaver.models.encoders import Places
from palaver.models.encoders.transformer import find_transformer, open_transformer
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue, RunRecord

ARRAYS, NETWORK = "arrays.npz", "network"
"""What lies in a stage's folder beside its record."""
Arrays = dict[str, NDArray[Any]]
Say = Callable[[str], None]


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


def run_pipeline(
    preset: Preset,
    data: TrainingData,
    out: Path,
    settings: Settings | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    fresh: bool = False,
    known: dict[str, Inputs] | None = None,
    progress: Progress = no_progress,
    say: Say = lambda text: None,
) -> PipelineResult:
    """All stages of `preset`, those that `out` holds already left as they are.

    Presets that run one after the other on the same data and settings may share `known`: what was read once.
    """
    settings = (settings or Settings()).check()
    if preset.needs_pairs and (data.dev is None or data.pairs is None or not len(data.pairs)):
        raise UserError(
            f"the preset {preset.name!r} needs compared pairs of development dialogues",
            "give them with --dev-pairs and --dev-dialogues, or take the preset stage-1-2",
        )
    check_writable(Path(out))
    run = _Pipeline(preset, data, Path(out), settings, seed, _own_device(device), progress, say)
    run.inputs_of = {} if known is None else known
    stages = run.run(fresh)
    measured = _evaluate(data, stages[-1].arrays.get("dev_scores"))
    notes = (*data.notes, *run.notes)
    result = PipelineResult(preset, tuple(stages), measured.get("pairs"), measured.get("test"), notes)
    if is_first_process():
        with write_atomically(Path(out) / f"{preset.name}.json") as file:
            json.dump(result.to_json(), file, indent=1)
    return result


@dataclass(frozen=True)
class _Work:
    """What a stage did: its training, further arrays, and what its record says of it."""

    history: History
    arrays: Arrays = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Pipeline:
    preset: Preset
    data: TrainingData
    out: Path
    settings: Settings
    seed: int
    device: torch.device
    progress: Progress
    say: Say
    notes: list[str] = field(default_factory=list)
    inputs_of: dict[str, Inputs] = field(default_factory=dict)
    """The rated and the development dialogues as the network reads them, once they have been read."""
    _network: ComparatorNetwork | None = None

    # Folders and records ---------------------------------------------------------------------------------

    def run(self, fresh: bool) -> list[StageResult]:
        done: list[StageResult] = []
        settings: dict[str, Any] = {}
        encoder = open_transformer([find_transformer(self.settings.encoder)], Places(keep_end=True))
        hashes = {"encoder": encoder.signature}
        for stage, name in zip(self.preset.stages, self.preset.chain, strict=True):
            settings[stage] = self._stage_settings(stage)
            hashes |= self._stage_data(stage)
            record = make_record(
                "palaver compare train",
                settings,
                seed=self.seed,
                data=hashes,
                packages=("palaver", "numpy", "torch"),
            )
            if can_go_on(self.out / name, record, force=fresh):
                result = self._load(name, record)
                self._network = None  # that of an earlier stage would be the wrong one
                self.say(f"{name}: done already")
            else:
                result = self._compute(stage, name, done[-1] if done else None, record)
            done.append(result)
        return done

    def _stage_settings(self, stage: StageName) -> dict[str, Any]:
        chosen = self.settings.of_stage(stage)
        if stage == "rate":
            chosen |= {"objective": self.preset.objective, "dev": self.preset.dev}
            if self.preset.objective == "classification":
                chosen["classes"] = self.settings.classes
        return chosen

    def _stage_data(self, stage: StageName) -> dict[str, str]:
        data = self.data
        hashes = {"ratings": data.ratings.digest}
        if stage == "flow" and data.flow is not None:
            hashes["flow"] = data.flow.digest
        if data.dev is not None:
            hashes["dev"] = data.dev.digest
        if data.pairs is not None and (stage == "shapley" or self.preset.dev):
            hashes["pairs"] = data.pairs.digest
        return hashes

    def _load(self, name: str, record: RunRecord) -> StageResult:
        folder = self.out / name
        return StageResult(
            name, folder, record, load_arrays(folder / ARRAYS), read_fields(folder), resumed=True
        )

    def _compute(
        self, stage: StageName, name: str, before: StageResult | None, record: RunRecord
    ) -> StageResult:
        began = time.perf_counter()
        folder = self.out / name
        if is_first_process():
            shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed left behind
        network = self._network_after(before)
        given = before.arrays if before is not None else self._measure(network)
        do = {"rate": self._rate, "flow": self._flow, "smooth": self._smooth, "shapley": self._shapley}[stage]
        work = do(network, given, self.seed * 1000 + self.preset.stages.index(stage))
        arrays = self._measure(network) | work.arrays
        arrays["ids"] = np.array(self.data.ratings.ids)
        if self.data.dev is not None:
            arrays["dev_ids"] = np.array(self.data.dev.ids)
        cuda = self.device.type == "cuda"
        about = {
            "seconds": round(time.perf_counter() - began, 2),
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "n_train": len(self.data.ratings),
            **work.about,
            "n_cut": {which: inputs.n_cut for which, inputs in self.inputs_of.items()},
            "history": dataclasses.asdict(work.history),
        }
        if is_first_process():
            network.save(folder / NETWORK)
            with write_atomically(folder / ARRAYS, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            write_record(folder, record, **about)  # last: only now the stage counts as done
        return StageResult(name, folder, record, arrays, about)

    # The network and what it says ------------------------------------------------------------------------

    def _network_after(self, before: StageResult | None) -> ComparatorNetwork:
        if before is not None:
            if self._network is None:
                self._network = before.network(self.device)
            return self._network
        ratings, s = self.data.ratings, self.settings
        classifies = self.preset.objective == "classification"
        centres = class_centres(ratings.values, ratings.scale, s.classes) if classifies else ()
        self._network = build_network(
            s.encoder,
            pooling=s.pooling,
            max_tokens=s.max_tokens,
            centres=tuple(centres),
            frozen_layers=s.frozen_layers,
            seed=self.seed,
            device=self.device,
        )
        return self._network

    def _tokens(self, network: ComparatorNetwork, which: str) -> Inputs:
        if which not in self.inputs_of:
            source = self.data.ratings if which == "train" else self.data.dev
            assert source is not None
            inputs = self._read(network, source.dialogues)
            self.inputs_of[which] = inputs
            if inputs.n_cut:
                self._note(
                    f"{inputs.n_cut} of {len(inputs)} {which} dialogues are longer than "
                    f"{network.config.max_tokens} tokens: their end is kept"
                )
        return self.inputs_of[which]

    def _read(self, network: ComparatorNetwork, dialogues: Sequence[Dialogue]) -> Inputs:
        return keep_frozen_states(network, network.inputs(dialogues), progress=self.progress)

    def _measure(self, network: ComparatorNetwork) -> Arrays:
        arrays: Arrays = {}
        for which, source in (("train", self.data.ratings), ("dev", self.data.dev)):
            if source is not None:
                tokens = self._tokens(network, which)
                scores, embeddings = apply_network(
                    network, tokens, progress=self.progress, what=f"reading {which}"
                )
                arrays |= {f"{which}_scores": scores, f"{which}_embeddings": embeddings}
        return arrays

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.say(text)

    # The stages ------------------------------------------------------------------------------------------

    def _fit(
        self,
        network: ComparatorNetwork,
        inputs: Inputs,
        examples: Examples,
        seed: int,
        what: str,
        epochs: int | None = None,
    ) -> History:
        training = self.settings.training
        if epochs is not None:
            training = dataclasses.replace(training, epochs=epochs)
        history = train(
            network,
            inputs,
            examples,
            training,
            objective=self.preset.objective,
            seed=seed,
            evaluate=lambda: self._accuracies(network),
            progress=self.progress,
            what=what,
        )
        last = history.epochs[-1]
        told = ", ".join(f"{name} {value:.3f}" for name, value in last.measured.items())
        self.say(f"{what}: {history.n_steps} steps, loss {last.loss:.4f}{', ' + told if told else ''}")
        if history.n_left_out:
            self._note(f"{history.n_left_out} dialogues have nobody to be compared with")
        return history

    def _accuracies(self, network: ComparatorNetwork) -> dict[str, float]:
        """For the record only: nothing is chosen by it."""
        if self.data.dev is None:
            return {}
        scores, _ = apply_network(network, self._tokens(network, "dev"))
        return {name: result.accuracy for name, result in _evaluate(self.data, scores).items()}

    def _groups(self) -> NDArray[np.int64] | None:
        if self.settings.within == "all":
            return None
        codes = self.data.ratings.codes(self.settings.within)
        if (codes == UNKNOWN).all():
            raise DataError(f"no dialogue says its {self.settings.within}", "leave out --within")
        return codes

    def _rate(self, network: ComparatorNetwork, given: Arrays, seed: int) -> _Work:
        examples = Examples.rated(self.data.ratings.values, groups=self._groups())
        inputs = self._tokens(network, "train")
        if self.preset.dev:
            assert self.data.pairs is not None
            examples = examples.with_pairs(self.data.pairs, len(inputs))
            inputs = inputs.joined(self._tokens(network, "dev"))
        return _Work(self._fit(network, inputs, examples, seed, self.preset.chain[-1]))

    def _flow(self, network: ComparatorNetwork, given: Arrays, seed: int) -> _Work:
        more = self.data.flow.dialogues if self.data.flow is not None else ()
        known = set(self.data.dev.ids) if self.data.dev is not None else set()
        real = [*self.data.ratings.dialogues, *(d for d in more if d.id not in known)]
        spoilt = spoil(real, seed=seed)
        inputs = self._read(network, [*real, *spoilt.dialogues])
        examples = Examples.anomalies(len(real), spoilt.real)
        history = self._fit(network, inputs, examples, seed, "flow", self.settings.flow_epochs)
        scores, _ = apply_network(network, inputs)
        won = float((scores[spoilt.real] > scores[len(real) :]).mean())
        about = {
            "n_real": len(real),
            "n_spoilt": len(spoilt.real),
            "dropped": spoilt.dropped,
            "real_wins": won,
        }
        return _Work(history, about=about)

    def _smooth(self, network: ComparatorNetwork, given: Arrays, seed: int) -> _Work:
        ratings, history = self.data.ratings.values, None
        for turn in range(self.settings.rounds):
            if turn:
                given = self._measure(network)
            smoothed = np.asarray(smooth(given["train_embeddings"], ratings, k=self.settings.k), np.float64)
            if np.ptp(smoothed) == 0:
                raise DataError(
                    f"with k = {self.settings.k} and {len(ratings)} dialogues all smoothed ratings are equal",
                    "choose a smaller --k: every dialogue is a neighbour of every other",
                )
            examples = Examples.rated(smoothed, groups=self._groups())
            inputs = self._tokens(network, "train")
            history = self._fit(network, inputs, examples, seed + 100 * turn, "smooth")
        assert history is not None
        return _Work(history, {"smoothed": smoothed}, {"spread": float(np.std(smoothed) / np.std(ratings))})

    def _shapley(self, network: ComparatorNetwork, given: Arrays, seed: int) -> _Work:
        ratings, pairs = self.data.ratings.values, self.data.pairs
        assert pairs is not None
        k = self.settings.k
        values = pair_values(given["train_embeddings"], ratings, given["dev_embeddings"], pairs, k=k)
        kept = np.flatnonzero(values >= 0)
        if len(kept) < 2 or np.ptp(ratings[kept]) == 0:
            raise DataError(
                f"stage 3 removed {len(ratings) - len(kept)} of {len(ratings)} dialogues: nothing is left to "
                "compare",
                "are the development pairs about dialogues of the same kind?",
            )
        self.say(f"shapley: {len(ratings) - len(kept)} of {len(ratings)} dialogues removed")
        groups = self._groups()
        examples = Examples.rated(ratings[kept], rows=kept, groups=None if groups is None else groups[kept])
        history = self._fit(network, self._tokens(network, "train"), examples, seed, "shapley")
        extra = {"values": values, "kept": kept, "kept_ids": np.array(self.data.ratings.ids)[kept]}
        about = {"k": k, "n_kept": len(kept), "n_removed": len(ratings) - len(kept)}
        return _Work(history, extra, about)


def _evaluate(data: TrainingData, scores: NDArray[np.float32] | None) -> dict[str, PairResult]:
    """Agreement with the `pairs` and the `test` pairs, where there are any."""
    known = {"pairs": data.pairs, "test": data.test}
    return {
        name: evaluate_pairs(scores, pairs)
        for name, pairs in known.items()
        if scores is not None and pairs is not None and len(pairs)
    }


def _own_device(wanted: str) -> torch.device:
    """Of several processes each has a GPU of its own."""
    local = os.environ.get("LOCAL_RANK")
    if local is not None and wanted in ("auto", "cuda") and torch.cuda.is_available():
        return torch.device("cuda", int(local))
    return choose_device(wanted)
