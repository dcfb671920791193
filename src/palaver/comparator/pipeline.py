"""The stages of Liang et al. (2020) one after the other, each kept in its folder and never done twice.

    rate      the network is fitted to the ratings as they are (rows 1 to 4 of Table 4)
    flow      stage 1: real dialogues against spoilt ones
    smooth    stage 2: ratings averaged over the nearest neighbours in φ-space
    shapley   stage 3: dialogues whose rating harms the comparison of development pairs are removed

A stage takes the network and embeddings of the one before and leaves `stage.json` (settings, seed, data,
signature), `arrays.npz` and the network. What is there already and has the same signature is taken as it is;
with another signature it is refused. Presets share the stages they begin with.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from palaver.comparator.evaluate import evaluate_pairs
from palaver.comparator.inputs import Inputs
from palaver.comparator.network import ComparatorNetwork, Tell, apply_network, build_network
from palaver.comparator.perturb import perturb
from palaver.comparator.presets import Preset, Settings, StageName
from palaver.comparator.signature import (
    compare_inputs,
    data_digest,
    encoder_digest,
    short_hash,
    stage_settings,
)
from palaver.comparator.stages import ARRAYS, NETWORK, RECORD, Arrays, Outcome, Sources, StageResult
from palaver.comparator.train import UNKNOWN, Examples, History, class_centres, is_first_process, train
from palaver.errors import DataError, UserError
from palaver.files import check_writable, write_atomically
from palaver.models.devices import choose_device

Say = Callable[[str], None]


def run_pipeline(
    preset: Preset,
    sources: Sources,
    out: Path,
    settings: Settings | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    fresh: bool = False,
    tell: Tell | None = None,
    say: Say | None = None,
) -> Outcome:
    """All stages of `preset`, those that `out` holds already left as they are."""
    settings = (settings or Settings()).check()
    if preset.needs_pairs and (sources.dev is None or sources.pairs is None or not len(sources.pairs)):
        raise UserError(
            f"the preset {preset.name!r} needs compared pairs of development dialogues",
            "give them with --dev-pairs and --dev-dialogues, or take the preset stage-1-2",
        )
    run = _Pipeline(preset, sources, Path(out), settings, seed, device, tell, say or (lambda text: None))
    stages = run.run(fresh)
    scores = stages[-1].arrays.get("dev_scores")
    on_pairs, on_test = (
        evaluate_pairs(scores, pairs) if scores is not None and pairs is not None and len(pairs) else None
        for pairs in (sources.pairs, sources.test)
    )
    outcome = Outcome(preset, tuple(stages), on_pairs, on_test, (*sources.notes, *run.notes))
    if run.is_main:
        with write_atomically(Path(out) / f"{preset.name}.json") as file:
            json.dump(outcome.to_json(), file, indent=1)
    return outcome


class _Pipeline:
    def __init__(
        self,
        preset: Preset,
        sources: Sources,
        out: Path,
        settings: Settings,
        seed: int,
        device: str,
        tell: Tell | None,
        say: Say,
    ) -> None:
        self.preset, self.sources, self.out, self.settings = preset, sources, out, settings
        self.seed, self.tell, self.say = seed, tell, say
        self.device = _own_device(device)
        self.is_main = is_first_process()
        self.notes: list[str] = []
        self._inputs: dict[str, Inputs] = {}
        self._network: ComparatorNetwork | None = None
        check_writable(out)

    # Folders and signatures ------------------------------------------------------------------------------

    def run(self, fresh: bool) -> list[StageResult]:
        done: list[StageResult] = []
        for stage, chain in zip(self.preset.stages, self.preset.chain, strict=True):
            before = done[-1] if done else None
            inputs = self._stage_inputs(stage, before)
            signature = short_hash(inputs)
            found = None if fresh else self._found(chain, inputs, signature)
            if found is None:
                found = self._compute(stage, chain, before, inputs, signature)
            else:
                self._network = None  # that of an earlier stage would be the wrong one
                self.say(f"{chain}: done already")
            done.append(found)
        return done

    def _stage_inputs(self, stage: StageName, before: StageResult | None) -> dict[str, Any]:
        """All that the result depends on."""
        s = self.sources
        data = {"ratings": data_digest(s.ratings)}
        if stage == "flow" and s.flow is not None:
            data["flow"] = data_digest(s.flow)
        if s.dev is not None:
            data["dev"] = data_digest(s.dev)
        if s.pairs is not None and (stage == "shapley" or self.preset.dev):
            data["pairs"] = data_digest(s.pairs)
        chosen = stage_settings(stage, self.settings, self.preset)
        encoder = {"encoder": encoder_digest(self.settings.encoder)} if before is None else {}
        parent = {"after": before.signature} if before is not None else {}
        return {"stage": stage, "seed": self.seed, **encoder, **parent, **chosen, "data": data}

    def _found(self, chain: str, inputs: dict[str, Any], signature: str) -> StageResult | None:
        folder = self.out / chain
        if not (folder / RECORD).is_file():
            return None
        try:
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            known, earlier = record["signature"], record["inputs"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise DataError(f"{folder / RECORD} cannot be read: {error}", "begin anew with --fresh") from None
        if known != signature:
            raise UserError(
                f"{folder} holds the stage {chain!r} of another run",
                "choose another folder with --out, or begin anew with --fresh",
                compare_inputs(earlier, inputs),
            )
        try:
            with np.load(folder / ARRAYS, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{folder / ARRAYS} cannot be read: {error}", "begin anew with --fresh") from None
        return StageResult(chain, folder, signature, arrays, record, resumed=True)

    def _compute(
        self, stage: StageName, chain: str, before: StageResult | None, inputs: dict[str, Any], signature: str
    ) -> StageResult:
        began = time.perf_counter()
        folder = self.out / chain
        if self.is_main:
            shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed left behind
        network = self._network_after(before)
        given = before.arrays if before is not None else self._measure(network)
        number = self.preset.stages.index(stage)
        history, extra, about = {
            "rate": self._rate,
            "flow": self._flow,
            "smooth": self._smooth,
            "shapley": self._shapley,
        }[stage](network, given, self.seed * 1000 + number)
        arrays = self._measure(network) | extra
        arrays["ids"] = np.array(self.sources.ratings.ids)
        if self.sources.dev is not None:
            arrays["dev_ids"] = np.array(self.sources.dev.ids)
        where = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        record = {
            "signature": signature,
            "inputs": inputs,
            "seconds": round(time.perf_counter() - began, 2),
            "device": where,
            "n_train": len(self.sources.ratings),
            **about,
            "n_cut": {name: found.n_cut for name, found in self._inputs.items()},
            "history": dataclasses.asdict(history),
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
        }
        if self.is_main:
            network.save(folder / NETWORK)
            with write_atomically(folder / ARRAYS, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            with write_atomically(folder / RECORD) as file:  # last: only now the stage counts as done
                json.dump(record, file, indent=1)
        return StageResult(chain, folder, signature, arrays, record)

    # The network and what it says ------------------------------------------------------------------------

    def _network_after(self, before: StageResult | None) -> ComparatorNetwork:
        if before is not None:
            if self._network is None:
                self._network = before.network(self.device)
            return self._network
        ratings, s = self.sources.ratings, self.settings
        classifies = self.preset.objective == "classification"
        centres = class_centres(ratings.values, ratings.scale, s.classes) if classifies else ()
        self._network = build_network(
            s.encoder,
            pooling=s.pooling,
            max_tokens=s.max_tokens,
            centres=tuple(centres),
            seed=self.seed,
            device=self.device,
        )
        return self._network

    def _tokens(self, network: ComparatorNetwork, which: str) -> Inputs:
        if which not in self._inputs:
            source = self.sources.ratings if which == "train" else self.sources.dev
            assert source is not None
            found = network.inputs(source.dialogues)
            self._inputs[which] = found
            if found.n_cut:
                self._note(
                    f"{found.n_cut} of {len(found)} {which} dialogues are longer than "
                    f"{network.config.max_tokens} tokens: their end is kept"
                )
        return self._inputs[which]

    def _measure(self, network: ComparatorNetwork) -> Arrays:
        found: Arrays = {}
        for which, source in (("train", self.sources.ratings), ("dev", self.sources.dev)):
            if source is not None:
                tokens = self._tokens(network, which)
                scores, embeddings = apply_network(network, tokens, tell=self.tell, what=f"reading {which}")
                found |= {f"{which}_scores": scores, f"{which}_embeddings": embeddings}
        return found

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
            tell=self.tell,
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
        if self.sources.dev is None:
            return {}
        scores, _ = apply_network(network, self._tokens(network, "dev"))
        known = {"pairs": self.sources.pairs, "test": self.sources.test}
        return {
            name: evaluate_pairs(scores, p).accuracy for name, p in known.items() if p is not None and len(p)
        }

    def _groups(self) -> NDArray[np.int64] | None:
        if self.settings.within == "all":
            return None
        codes = self.sources.ratings.codes(self.settings.within)
        if (codes == UNKNOWN).all():
            raise DataError(f"no dialogue says its {self.settings.within}", "leave out --within")
        return codes

    def _rate(
        self, network: ComparatorNetwork, given: Arrays, seed: int
    ) -> tuple[History, Arrays, dict[str, Any]]:
        examples = Examples.rated(self.sources.ratings.values, groups=self._groups())
        inputs = self._tokens(network, "train")
        if self.preset.dev:
            assert self.sources.pairs is not None
            examples = examples.with_pairs(self.sources.pairs, len(inputs))
            inputs = inputs.joined(self._tokens(network, "dev"))
        return self._fit(network, inputs, examples, seed, self.preset.chain[-1]), {}, {}

    def _flow(
        self, network: ComparatorNetwork, given: Arrays, seed: int
    ) -> tuple[History, Arrays, dict[str, Any]]:
        more = self.sources.flow.dialogues if self.sources.flow is not None else ()
        known = set(self.sources.dev.ids) if self.sources.dev is not None else set()
        real = [*self.sources.ratings.dialogues, *(d for d in more if d.id not in known)]
        spoilt = perturb(real, seed=seed)
        inputs = network.inputs([*real, *spoilt.dialogues])
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
        return history, {}, about

    def _smooth(
        self, network: ComparatorNetwork, given: Arrays, seed: int
    ) -> tuple[History, Arrays, dict[str, Any]]:
        from palaver.comparator.smooth import smooth

        ratings, history = self.sources.ratings.values, None
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
        return history, {"smoothed": smoothed}, {"spread": float(np.std(smoothed) / np.std(ratings))}

    def _shapley(
        self, network: ComparatorNetwork, given: Arrays, seed: int
    ) -> tuple[History, Arrays, dict[str, Any]]:
        from palaver.comparator import shapley

        ratings, pairs = self.sources.ratings.values, self.sources.pairs
        assert pairs is not None
        k = self.settings.k
        values = shapley.pair_values(given["train_embeddings"], ratings, given["dev_embeddings"], pairs, k=k)
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
        extra = {"values": values, "kept": kept, "kept_ids": np.array(self.sources.ratings.ids)[kept]}
        return history, extra, {"n_kept": len(kept), "n_removed": len(ratings) - len(kept)}


def _own_device(wanted: str) -> torch.device:
    """Of several processes each has a GPU of its own."""
    local = os.environ.get("LOCAL_RANK")
    if local is not None and wanted in ("auto", "cuda") and torch.cuda.is_available():
        return torch.device("cuda", int(local))
    return choose_device(wanted)
