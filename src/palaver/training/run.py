"""`train`: an experiment from beginning to end, or on from where it stopped."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import (  # type: ignore[import-untyped]
    DistributedDataParallelKwargs,
    InitProcessGroupKwargs,
    broadcast_object_list,
    set_seed,
)
from safetensors import SafetensorError
from safetensors.torch import load_file

from palaver.errors import UserError
from palaver.models.causal import CausalResponder
from palaver.models.causal_base import read_base
from palaver.models.devices import choose_device
from palaver.models.pretrained import Responder, build, fingerprint, load, read_config
from palaver.text.vocabulary import Vocabulary
from palaver.training.checkpoint import Checkpoints, RunProgress, set_random_state, unreadable
from palaver.training.examples import Select
from palaver.training.experiment import Experiment
from palaver.training.folder import MetricsFile, RunFolder, draw_curves, hardware
from palaver.training.interruptions import Stopped
from palaver.training.loop import Loop, Watcher
from palaver.training.prepare import PreparedData, base_of, open_splits, prepare

Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    folder: Path
    step: int
    epoch: int
    best_nll: float | None
    """Lowest validation loss per token; nothing without validation."""
    reason: str
    """Why it ended."""
    stopped: bool = False
    """Whether it was asked to stop, and can go on."""
    is_main: bool = True
    """Whether this is the process that speaks for all of them."""

    @property
    def best_perplexity(self) -> float | None:
        """Per token."""
        return math.exp(self.best_nll) if self.best_nll is not None else None


def train(
    experiment: Experiment,
    *,
    select: Select | None = None,
    device: Device = "auto",
    fresh: bool = False,
    watcher: Watcher | None = None,
    command: str = "",
) -> Outcome:
    """Train, or go on from the last checkpoint if the run's folder has one of the same experiment.

    `select` chooses knowledge sentences (`palaver.knowledge`); `watcher` is told how it goes.
    """
    accelerator = _accelerator(device)
    main = accelerator.is_main_process
    say: Callable[[str], None] = watcher.note if watcher is not None and main else lambda text: None
    folder = RunFolder(experiment, fresh=fresh) if main else None
    try:
        prepared = prepare(experiment, select=select, say=say) if accelerator.is_local_main_process else None
        if folder is not None and prepared is not None:
            folder.check_same(prepared.hashes)
        box = [prepared]
        broadcast_object_list(box)
        return _train(experiment, box[0], accelerator, folder, watcher if main else None, say, command)
    finally:
        if folder is not None:
            folder.close()


def _train(
    experiment: Experiment,
    prepared: PreparedData,
    accelerator: Accelerator,
    folder: RunFolder | None,
    watcher: Watcher | None,
    say: Callable[[str], None],
    command: str,
) -> Outcome:
    for note in prepared.notes:
        say(note)
    device = accelerator.device
    bf16 = experiment.optimiser.precision == "bf16"
    if bf16 and not (device.type == "cuda" and torch.cuda.is_bf16_supported()):
        bf16 = False
        say("bf16 needs a GPU that can do it: fp32 is used")
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    vocabulary = Vocabulary.load(prepared.vocabulary, foreign=base_of(experiment) is not None)
    splits = open_splits(experiment, prepared)
    set_seed(experiment.seed)
    model, initialised = make_model(experiment, prepared, vocabulary)
    for note in initialised:
        say(note)
    set_seed(experiment.seed + accelerator.process_index)  # dropout differs between processes
    checkpoints = Checkpoints(experiment.folder)
    earlier = checkpoints.load()
    progress, state = earlier or (RunProgress(n_processes=accelerator.num_processes), None)
    n_parameters = sum(p.numel() for p in model.parameters())
    if state is None:
        processes = f"{accelerator.num_processes} process(es) on {device.type}"
        say(f"{n_parameters:,} parameters, a vocabulary of {len(vocabulary):,}, {processes}")
    else:
        before, now = progress.n_processes, accelerator.num_processes
        if before != now:
            raise UserError(
                f"the run was begun with {before} process(es), found {now}",
                "batches are per process: go on with as many as before, or begin anew with --force",
            )
        _load_weights(model, checkpoints)
        say(f"going on after step {progress.step:,} (epoch {progress.epoch + 1})")
    metrics = None
    if folder is not None:
        about = {"hardware": hardware(device, accelerator.num_processes), "n_parameters": n_parameters}
        about |= {"precision": "bf16" if bf16 else "fp32", "vocabulary": vocabulary.signature}
        about |= {"initialised": initialised, "examples": list(prepared.notes)}
        folder.begin(command or " ".join(sys.argv), prepared.hashes, about)
        checkpoints.clear_leftovers(progress)
        metrics = MetricsFile(folder.path / "metrics.jsonl", progress.metrics_bytes)
    ocean = np.array([prepared.ocean[name] for name in prepared.speakers]) if prepared.ocean else None
    loop = Loop(
        experiment,
        model,
        vocabulary,
        *splits,
        accelerator,
        ocean=ocean,
        progress=progress,
        optimiser_state=state["optimiser"] if state else None,
        metrics=metrics,
        watcher=watcher,
        bf16=bf16,
    )
    if state is not None:
        set_random_state(state["random"][accelerator.process_index])
    stopped = False
    try:
        reason = loop.run()
    except Stopped as asked:
        reason, stopped = str(asked), True
    finally:
        if metrics is not None:
            metrics.close()
    if folder is not None:
        try:
            draw_curves(folder.path, experiment.name)
        except (UserError, OSError) as error:  # the model is trained and saved: that is what counts
            why = error.message if isinstance(error, UserError) else str(error)
            say(f"the curves could not be drawn: {why}")
    if accelerator.num_processes > 1:
        # The group's threads must have let go of the last tensors, the barrier's own among them. They need
        # the interpreter for that, which is held while the group is taken apart; sleeping leaves it to them.
        accelerator.wait_for_everyone()
        time.sleep(0.5)
        accelerator.end_training()
    best = progress.best if splits[1] is not None else None
    return Outcome(
        experiment.folder, progress.step, progress.epoch, best, reason, stopped, folder is not None
    )


def _load_weights(model: Responder, checkpoints: Checkpoints) -> None:
    last = checkpoints.last()
    assert last is not None
    try:
        model.load_weights(load_file(last / "model.safetensors"))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise unreadable(last, error) from None
    if isinstance(model, CausalResponder):  # the end that was learnt so far, whatever the base says now
        model.config = replace(model.config, end=read_config(last).get("end", model.config.end))


def make_model(
    experiment: Experiment, prepared: PreparedData, vocabulary: Vocabulary
) -> tuple[Responder, list[str]]:
    """The model with random weights, or those of the checkpoint to start from; what to say about it."""
    fields = {**experiment.model_settings, "model": experiment.model.kind, "vocab_size": len(vocabulary)}
    fields["vocabulary"] = fingerprint(vocabulary)
    fields["history_turns"] = experiment.data.history_turns
    conditioning = fields.get("conditioning", "none")
    if conditioning == "speaker":
        fields["speakers"] = prepared.speakers
    elif conditioning == "personality":
        fields["ocean"] = prepared.ocean
    base = base_of(experiment)
    if base is not None:
        about = read_base(base)
        fields |= {"architecture": about.architecture, "frame": asdict(about.frame), "end": about.end}
    model = build(fields)
    if experiment.model.initialise_from is None:
        return model, _load_base(model)
    return model, initialise(model, experiment.model.initialise_from)


def _load_base(model: Responder) -> list[str]:
    if not isinstance(model, CausalResponder):
        return []
    model.load_base()
    n_trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    how = f"an adapter of {n_trained:,} weights is trained" if model.config.lora_rank else "all is trained"
    return [f"language model {model.config.base}: {how}"]


def initialise(model: Responder, folder: Path) -> list[str]:
    """Take the weights of equal name and shape from a checkpoint; what was taken, what is new, what is left.

    A speaker or personality widens the input of the first decoder layer (eq. 3, 4): there the columns of the
    words and of the context are taken and those of the condition stay random.
    """
    source, _ = load(folder)
    if source.config.model != model.config.model:
        raise UserError(f"{folder} holds a {source.config.model} model, not a {model.config.model}")
    theirs, ours = source.weights(), model.weights()
    same = [name for name in ours if name in theirs and theirs[name].shape == ours[name].shape]
    other = [name for name in ours if name in theirs and name not in same]
    widened = [n for n in other if _is_widened(theirs[n], ours[n])] if len(other) == 1 else []
    if len(same) <= len(other):
        raise UserError(
            f"{folder} is of another size: {len(same)} of its {len(theirs)} tensors fit this model",
            "give it the same sizes as the checkpoint's config.json ([model] in the experiment file)",
        )
    with torch.no_grad():
        for name in same:
            ours[name].copy_(theirs[name])
        for name in widened:
            ours[name][:, : theirs[name].shape[1]].copy_(theirs[name])
    notes = [f"{len(same)} of {len(ours)} tensors taken from {folder}"]
    notes += [
        f"{name}: its first {theirs[name].shape[1]} columns taken, the others are new" for name in widened
    ]
    notes += [f"new: {name} {tuple(ours[name].shape)}" for name in ours if name not in theirs]
    notes += [
        f"new: {n} {tuple(ours[n].shape)}, which was {tuple(theirs[n].shape)}"
        for n in other
        if n not in widened
    ]
    notes += [f"not used: {name}" for name in theirs if name not in ours]
    return notes


def _is_widened(old: torch.Tensor, new: torch.Tensor) -> bool:
    return old.ndim == new.ndim == 2 and old.shape[0] == new.shape[0] and old.shape[1] < new.shape[1]


def _accelerator(device: Device) -> Accelerator:
    cpu = choose_device(device).type == "cpu"
    parallel = DistributedDataParallelKwargs(broadcast_buffers=False, gradient_as_bucket_view=True)
    group = InitProcessGroupKwargs(timeout=timedelta(hours=12))  # preparing subtitles takes its time
    accelerator = Accelerator(cpu=cpu, kwargs_handlers=[parallel, group])
    if (accelerator.device.type == "cpu") != cpu:
        trained_on = accelerator.device.type
        raise UserError(f"this Python process has trained on {trained_on} before", "start a new one")
    return accelerator
