"""The training loop: one path for one process and for many, on CPU and GPU, through `accelerate`.

The loss of a batch is the sum over all target tokens of all processes, divided by their number, so that two
processes compute what one computes with the doubled batch. Sums stay on the device until a line is logged.
"""

from __future__ import annotations

import math
import resource
import time
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from torch import Tensor

from palaver.errors import UserError, count_of
from palaver.models.pretrained import Responder
from palaver.text.vocabulary import Vocabulary
from palaver.training.batches import Batch, Collator, example_lengths, plan_epoch, prefetch
from palaver.training.checkpoint import Checkpoints, RunProgress, Totals, random_state
from palaver.training.experiment import Experiment
from palaver.training.folder import MetricsFile
from palaver.training.interruptions import Signals, Stopped, memory_errors
from palaver.training.prepare import Split
from palaver.training.schedule import Schedule


class Watcher(Protocol):
    """Receives how the run goes, from the main process only."""

    def row(self, row: dict[str, Any], done: float) -> None:
        """A line of metrics; `done` is the share of the whole run."""

    def note(self, text: str) -> None:
        """Something that happened."""


class Loop:
    """Everything that lives as long as a run."""

    def __init__(
        self,
        experiment: Experiment,
        model: Responder,
        vocabulary: Vocabulary,
        train: Split,
        valid: Split | None,
        accelerator: Accelerator,
        *,
        ocean: np.ndarray | None = None,
        progress: RunProgress | None = None,
        optimiser_state: dict[str, Any] | None = None,
        metrics: MetricsFile | None = None,
        watcher: Watcher | None = None,
        bf16: bool = False,
    ) -> None:
        self.experiment, self.settings = experiment, experiment.optimiser
        self.accelerator, self.device = accelerator, accelerator.device
        self.n_ranks, self.rank = accelerator.num_processes, accelerator.process_index
        self.vocabulary = vocabulary
        self.train, self.valid = train, valid
        self.metrics, self.watcher = metrics, watcher
        self.bf16 = bf16
        self.core = model.to(self.device)
        self.optimiser = make_optimiser(self.core, experiment, self.device)
        if optimiser_state is not None:
            self.optimiser.load_state_dict(optimiser_state)
        self.model = accelerator.prepare(self.core) if self.n_ranks > 1 else self.core
        self.checkpoints = Checkpoints(experiment.folder, experiment.log.keep)
        cuda = self.device.type == "cuda"
        options: dict[str, Any] = {"ocean": ocean, "pad_multiple": 8 if cuda else 1, "pin": cuda}
        options["takes_width"] = model.takes_width
        self.collate = Collator(train.store, model.config, rank=self.rank, n_ranks=self.n_ranks, **options)
        self.collate_valid = Collator(valid.store, model.config, **options) if valid is not None else None
        self.progress = progress or RunProgress(n_processes=self.n_ranks)
        s = self.settings
        size = {"batch_size": s.batch_size, "batch_tokens": s.batch_tokens, "n_processes": self.n_ranks}
        lengths = example_lengths(train.store, train.ids)
        plan = partial(plan_epoch, lengths, **size, bucket=s.bucket, seed=experiment.seed)
        self.plan = lru_cache(1)(plan)
        """The batches of an `epoch`, counted from 0; each over all processes together."""
        self.schedule = Schedule(self.settings, self._total_steps())
        if self.progress.schedule:
            self.schedule.restore(self.progress.schedule)
        self._window = window = self.progress.window
        # Loss, nll and norm are summed on the device; those of all processes were added up in the checkpoint.
        mine = [window.loss, window.nll, window.norm] if self.rank == 0 else [0.0] * 3
        self._sums = torch.tensor(mine, dtype=torch.float64, device=self.device)
        self._epoch_totals = self.progress.totals
        self.signals = Signals()
        self._window_began = self._began = time.perf_counter()
        self._seconds_before = self.progress.seconds

    # The run ---------------------------------------------------------------------------------------------

    def run(self) -> str:
        """Train until the end; why it is the end. Raises `Stopped` when a signal asked for it."""
        self.core.train()
        with self.signals.caught():
            while not (reason := self._over()):
                self._epoch()
        if not self.progress.finished:
            self.progress.finished = reason
            self.save()
        return reason

    def _over(self) -> str:
        p, s = self.progress, self.settings
        if s.early_stop and p.waited >= s.early_stop:
            return f"no better validation perplexity for {count_of(p.waited, 'epoch')}"
        if s.max_steps is not None and p.step >= s.max_steps:
            return count_of(p.step, "step")
        return count_of(p.epoch, "epoch") if p.epoch >= s.epochs else ""

    def _total_steps(self) -> int:
        steps = self.settings.epochs * len(self.plan(epoch=self.progress.epoch))
        return min(steps, self.settings.max_steps or steps)

    def _epoch(self) -> None:
        p, log = self.progress, self.experiment.log
        plan = self.plan(epoch=p.epoch)
        ids = self.train.ids
        made = (self.collate(ids[plan[b]]) for b in range(p.batch, len(plan)))
        with closing(prefetch(made)) as batches:
            for batch in batches:
                self._step(batch)
                last = p.batch == len(plan)
                if p.step % log.every == 0:
                    self._log()
                if last or self.settings.max_steps == p.step:
                    break
                if log.checkpoint_every and p.step % log.checkpoint_every == 0:
                    self.save()
                if self._asked_to_stop():
                    self.save()
                    raise Stopped(self.signals.heard)
        self._finish_epoch(whole=p.batch == len(plan))

    def _step(self, batch: Batch) -> None:
        p, s = self.progress, self.settings
        rate = self.schedule.rate(p.step + 1, p.epoch + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group.get("times", 1.0)  # a run of an older version has none
        with memory_errors(self.experiment, self.device):
            inputs = batch.to(self.device).inputs
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                loss, nll, _ = self.model(**inputs, label_smoothing=s.label_smoothing)
            divisor = batch.n_tokens if s.loss_per == "token" else batch.n_examples
            # DDP averages the gradients of the processes; a sum over all of them is wanted.
            (loss * (batch.weight * self.n_ranks / divisor)).backward()
            norm = torch.nn.utils.clip_grad_norm_(self.core.parameters(), s.clip or math.inf)
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        self._sums += torch.stack((loss.detach() * batch.weight, nll * batch.weight, norm)).double()
        window = self._window
        window.tokens += batch.n_tokens
        window.words += batch.n_words
        window.spelling += batch.spelling
        window.examples += batch.n_examples
        window.read += batch.n_read
        window.steps += 1
        p.step += 1
        p.batch += 1

    # Lines of metrics ------------------------------------------------------------------------------------

    def _read_window(self) -> Totals:
        """The sums since the last line, over all processes. The only place where the loop waits for a GPU."""
        loss, nll, norm = self.accelerator.reduce(self._sums, "sum").tolist()
        window = replace(self._window, loss=loss, nll=nll, norm=norm)
        if not window.are_finite:
            last = self.checkpoints.last()
            kept = f"the last good checkpoint is {last}" if last else "there is no checkpoint yet"
            raise UserError(
                f"the loss is no longer a number (before step {self.progress.step:,})",
                f"try a lower optimiser.learning_rate, or clip gradients (optimiser.clip); {kept}",
            )
        return window

    def _row(self, kind: str, totals: Totals, seconds: float) -> dict[str, Any]:
        p = self.progress
        perplexity = totals.perplexity
        return {
            "kind": kind,
            "step": p.step,
            "epoch": p.epoch + 1,
            "loss": totals.loss / max(totals.tokens, 1),
            "nll": totals.nll_per_token,
            "ppl": perplexity.per_token,
            "ppl_word": perplexity.per_word,
            "lr": self.optimiser.param_groups[0]["lr"],
            "grad_norm": totals.norm / max(totals.steps, 1) / self.n_ranks,
            "tokens_per_second": round(totals.read / max(seconds, 1e-9)),
            "seconds": round(self._seconds(), 3),
            "memory_mb": self._memory(),
        }

    def _log(self) -> None:
        window = self._read_window()
        now = time.perf_counter()
        row = self._row("step", window, now - self._window_began)
        self._epoch_totals += window
        self._sums.zero_()
        self._window = Totals()
        self._window_began = now
        self._write(row)

    def _write(self, row: dict[str, Any]) -> None:
        if self.metrics is not None:
            try:
                self.metrics.write(row)
            except OSError as error:
                raise UserError(
                    f"metrics.jsonl cannot be written: {error.strerror or error}", "is the disk full?"
                ) from None
        if self.watcher is not None:
            self.watcher.row(row, self._done())

    def _done(self) -> float:
        p, s = self.progress, self.settings
        by_epochs = (p.epoch + p.batch / max(1, len(self.plan(epoch=p.epoch)))) / s.epochs
        return min(1.0, max(by_epochs, p.step / s.max_steps if s.max_steps else 0.0))

    def _seconds(self) -> float:
        return self._seconds_before + time.perf_counter() - self._began

    def _memory(self) -> int:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated() >> 20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

    # Validation and checkpoints --------------------------------------------------------------------------

    def _finish_epoch(self, whole: bool) -> None:
        """Validate and keep. An epoch cut short by `max_steps` counts for `best`, not for stopping early."""
        p = self.progress
        if self._window.steps:
            self._log()
        began = time.perf_counter()
        row = self._row("epoch", self._epoch_totals, 0)
        del row["tokens_per_second"]
        valid = self.validate()
        better = False
        if valid is not None:
            row |= {
                "valid_nll": valid.nll_per_token,
                "valid_ppl": valid.perplexity.per_token,
                "valid_ppl_word": valid.perplexity.per_word,
                "valid_seconds": round(time.perf_counter() - began, 3),
            }
            better = p.best is None or row["valid_nll"] < p.best
        if better or valid is None:
            p.best, p.best_step = row.get("valid_nll", row["nll"]), p.step
        self._write(row | {"best": better})
        if whole:
            p.waited = 0 if better or valid is None else p.waited + 1
            if self.schedule.epoch_done(better or valid is None) and self.watcher is not None:
                self.watcher.note(f"learning rate lowered to {self.schedule.rate(p.step, p.epoch + 1):g}")
            p.epoch, p.batch = p.epoch + 1, 0
            self._epoch_totals = Totals()
        p.finished = self._over()
        self.save()
        self._window_began = time.perf_counter()
        if self._asked_to_stop(now=True) and not p.finished:
            raise Stopped(self.signals.heard)

    def validate(self) -> Totals | None:
        """Every validation example exactly once, whatever the number of processes."""
        if self.valid is None or self.collate_valid is None:
            return None
        s, ids, store = self.settings, self.valid.ids, self.valid.store
        size = {"batch_size": s.batch_size, "batch_tokens": s.batch_tokens}
        plan = plan_epoch(example_lengths(store, ids), **size, bucket=len(ids))
        made = (self.collate_valid(ids[plan[b]]) for b in range(self.rank, len(plan), self.n_ranks))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.core.eval()
        with torch.no_grad(), memory_errors(self.experiment, self.device):
            for batch in prefetch(made):
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                    total += self.core(**batch.to(self.device).inputs).nll
        self.core.train()
        return Totals(
            nll=float(self.accelerator.reduce(total, "sum")),
            tokens=int(store.response.lengths(ids).sum()),
            words=int(store.n_words[ids].sum()),
            spelling=float(store.spelling[ids].sum()),
        )

    def save(self) -> None:
        """A checkpoint of all processes, written by the main one."""
        began = time.perf_counter()
        window = self._read_window()  # raises before anything bad is kept
        p = self.progress
        p.window, p.totals = window, self._epoch_totals
        p.schedule, p.seconds, p.n_processes = self.schedule.state(), self._seconds(), self.n_ranks
        states = gather_object([random_state()])
        if self.accelerator.is_main_process:
            p.metrics_bytes = self.metrics.sync() if self.metrics is not None else 0
            self.checkpoints.save(self.core, self.vocabulary, p, self.optimiser.state_dict(), states)
        self.accelerator.wait_for_everyone()
        self._window_began += time.perf_counter() - began

    def _asked_to_stop(self, now: bool = False) -> bool:
        """All processes must stop at the same step, so they ask each other now and then."""
        if self.n_ranks == 1:
            return bool(self.signals.heard)
        if not now and self.progress.step % 10:
            return False
        asked = torch.tensor([int(bool(self.signals.heard))], device=self.device)
        anybody = bool(self.accelerator.reduce(asked, "sum").item())
        self.signals.heard = self.signals.heard or ("a signal to another process" if anybody else "")
        return anybody


def make_optimiser(model: Responder, experiment: Experiment, device: torch.device) -> torch.optim.Optimizer:
    """SGD or AdamW; weight decay on matrices only, and another rate for what stands for a character."""
    s = experiment.optimiser
    wanted = {name: p for name, p in model.named_parameters() if p.requires_grad}
    faster = ("speaker.", "personality.") if s.condition_rate != 1 else ()
    conditions = [p for name, p in wanted.items() if name.startswith(faster)]
    others = [p for name, p in wanted.items() if not name.startswith(faster)]
    matrices: list[Tensor] = [p for p in others if p.ndim > 1]
    vectors: list[Tensor] = [p for p in others if p.ndim <= 1]
    groups: list[dict[str, Any]] = [
        {"params": matrices, "weight_decay": s.weight_decay, "times": 1.0},
        {"params": vectors, "weight_decay": 0.0, "times": 1.0},
    ]
    if conditions:
        groups.append({"params": conditions, "weight_decay": s.weight_decay, "times": s.condition_rate})
    if s.name == "sgd":
        return torch.optim.SGD(groups, lr=s.learning_rate)
    return torch.optim.AdamW(groups, lr=s.learning_rate, betas=s.betas, fused=device.type == "cuda")
