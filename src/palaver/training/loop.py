"""The training loop: one path for one process and for many, on CPU and GPU, through `accelerate`.

The loss of a batch is the sum over all target tokens of all processes, divided by their number, so that two
processes compute what one computes with the doubled batch. Sums stay on the device until a line is logged.
"""

from __future__ import annotations

import math
import resource
import time
from typing import Any, Protocol

import numpy as np
import torch
from accelerate import Accelerator  # type: ignore[import-untyped]
from accelerate.utils import gather_object  # type: ignore[import-untyped]
from torch import Tensor

from palaver.errors import UserError
from palaver.models import Responder
from palaver.statistics.perplexity import Perplexity
from palaver.text.vocabulary import Vocabulary
from palaver.training.batches import Batch, Collator, Plan, example_lengths, plan_epoch, prefetched
from palaver.training.checkpoint import Checkpoints, Progress, random_state
from palaver.training.experiment import Experiment
from palaver.training.folder import MetricsFile
from palaver.training.interruptions import Signals, Stopped, memory_errors
from palaver.training.prepare import Split
from palaver.training.schedule import Schedule

LOSS, NLL, NORM, TOKENS, WORDS, SPELLING, EXAMPLES, READ, STEPS = range(9)
"""What is summed up between two lines of metrics. The first three live on the device."""


class Watcher(Protocol):
    """Who is told how it goes (the main process only)."""

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
        progress: Progress | None = None,
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
        self.collate = Collator(train.store, model.config, rank=self.rank, n_ranks=self.n_ranks, **options)
        self.lengths = example_lengths(train.store, train.ids)
        self.collate_valid = Collator(valid.store, model.config, **options) if valid is not None else None
        self.progress = progress or Progress(n_processes=self.n_ranks)
        self._plan = (-1, Plan(np.empty(0), np.zeros(1, np.int64)))
        self.schedule = Schedule(self.settings, self._total_steps())
        if self.progress.schedule:
            self.schedule.restore(self.progress.schedule)
        window = self.progress.window or [0.0] * 9
        mine = window[:TOKENS] if self.rank == 0 else [0.0] * TOKENS
        self._sums = torch.tensor(mine, dtype=torch.float64, device=self.device)
        self._counts = window[TOKENS:]
        self._totals = self.progress.totals or [0.0] * 9
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
            return f"no better validation perplexity for {p.waited} epoch{'s' * (p.waited != 1)}"
        if s.max_steps is not None and p.step >= s.max_steps:
            return f"{p.step:,} step{'s' * (p.step != 1)}"
        return f"{p.epoch} epoch{'s' * (p.epoch != 1)}" if p.epoch >= s.epochs else ""

    def plan(self, epoch: int) -> Plan:
        """Batches of an epoch, counted from 0; each over all processes together."""
        if self._plan[0] != epoch:
            s, n = self.settings, self.n_ranks
            size = (
                {"batch_size": s.batch_size * n}
                if s.batch_size
                else {"batch_tokens": (s.batch_tokens or 1) * n}
            )
            made = plan_epoch(self.lengths, **size, bucket=s.bucket, seed=self.experiment.seed, epoch=epoch)
            self._plan = (epoch, made)
        return self._plan[1]

    def _total_steps(self) -> int:
        steps = self.settings.epochs * len(self.plan(self.progress.epoch))
        return min(steps, self.settings.max_steps or steps)

    def _epoch(self) -> None:
        p, log = self.progress, self.experiment.log
        plan = self.plan(p.epoch)
        ids = self.train.ids
        made = (self.collate(ids[plan[b]]) for b in range(p.batch, len(plan)))
        with prefetched(made) as batches:
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
            group["lr"] = rate
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
        b = batch
        for i, count in enumerate((b.n_tokens, b.n_words, b.spelling, b.n_examples, b.n_read, 1)):
            self._counts[i] += count
        p.step += 1
        p.batch += 1

    # Lines of metrics ------------------------------------------------------------------------------------

    def _read_window(self) -> list[float]:
        """The sums since the last line, over all processes. The only place where the loop waits for a GPU."""
        sums = self._sums
        if self.n_ranks > 1:
            sums = self.accelerator.reduce(sums.clone(), "sum")
        values = [*sums.tolist(), *self._counts]
        if not all(map(math.isfinite, values)):
            last = self.checkpoints.last()
            kept = f"the last good checkpoint is {last}" if last else "there is no checkpoint yet"
            raise UserError(
                f"the loss is no longer a number (before step {self.progress.step:,})",
                f"try a lower optimiser.learning_rate, or clip gradients (optimiser.clip); {kept}",
            )
        return values

    def _row(self, kind: str, values: list[float], seconds: float) -> dict[str, Any]:
        p = self.progress
        tokens, words, steps = max(values[TOKENS], 1), max(values[WORDS], 1), max(values[STEPS], 1)
        perplexity = Perplexity(values[NLL], int(tokens), int(words), values[SPELLING])
        return {
            "kind": kind,
            "step": p.step,
            "epoch": p.epoch + 1,
            "loss": values[LOSS] / tokens,
            "nll": values[NLL] / tokens,
            "ppl": perplexity.per_token,
            "ppl_word": perplexity.per_word,
            "lr": self.optimiser.param_groups[0]["lr"],
            "grad_norm": values[NORM] / steps / self.n_ranks,
            "tokens_per_second": round(values[READ] / max(seconds, 1e-9)),
            "seconds": round(self._seconds(), 3),
            "memory_mb": self._memory(),
        }

    def _log(self) -> None:
        values = self._read_window()
        now = time.perf_counter()
        row = self._row("step", values, now - self._window_began)
        self._totals = [a + b for a, b in zip(self._totals, values, strict=True)]
        self._sums.zero_()
        self._counts = [0.0] * len(self._counts)
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
        by_epochs = (p.epoch + p.batch / max(1, len(self.plan(p.epoch)))) / s.epochs
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
        if self._counts[STEPS - TOKENS]:
            self._log()
        began = time.perf_counter()
        row = self._row("epoch", self._totals, 0)
        del row["tokens_per_second"]
        found = self.validate()
        better = False
        if found is not None:
            row |= {"valid_nll": found.nll / found.n_tokens, "valid_ppl": found.per_token}
            row |= {"valid_ppl_word": found.per_word, "valid_seconds": round(time.perf_counter() - began, 3)}
            better = p.best is None or row["valid_nll"] < p.best
        if better or found is None:
            p.best, p.best_step = row.get("valid_nll", row["nll"]), p.step
        self._write(row | {"best": better})
        if whole:
            p.waited = 0 if better or found is None else p.waited + 1
            if self.schedule.epoch_done(better or found is None) and self.watcher is not None:
                self.watcher.note(f"learning rate lowered to {self.schedule.rate(p.step, p.epoch + 1):g}")
            p.epoch, p.batch = p.epoch + 1, 0
            self._totals = [0.0] * len(self._totals)
        p.finished = self._over()
        self.save()
        self._window_began = time.perf_counter()
        if self._asked_to_stop(now=True) and not p.finished:
            raise Stopped(self.signals.heard)

    def validate(self) -> Perplexity | None:
        """Every validation example exactly once, whatever the number of processes."""
        if self.valid is None or self.collate_valid is None:
            return None
        s, ids, store = self.settings, self.valid.ids, self.valid.store
        size = {"batch_size": s.batch_size} if s.batch_size else {"batch_tokens": s.batch_tokens}
        plan = plan_epoch(example_lengths(store, ids), **size, bucket=len(ids))
        made = (self.collate_valid(ids[plan[b]]) for b in range(self.rank, len(plan), self.n_ranks))
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        self.core.eval()
        with torch.no_grad(), prefetched(made) as batches, memory_errors(self.experiment, self.device):
            for batch in batches:
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
                    total += self.core(**batch.to(self.device).inputs).nll
        self.core.train()
        if self.n_ranks > 1:
            total = self.accelerator.reduce(total, "sum")
        n_tokens = int(store.response.lengths(ids).sum())
        n_words, spelling = int(store.n_words[ids].sum()), float(store.spelling[ids].sum())
        return Perplexity(float(total), n_tokens, n_words, spelling)

    def save(self) -> None:
        """A checkpoint of all processes, written by the main one."""
        began = time.perf_counter()
        values = self._read_window()  # raises before anything bad is kept
        p = self.progress
        p.window, p.totals = values, self._totals
        p.schedule, p.seconds, p.n_processes = self.schedule.state(), self._seconds(), self.n_ranks
        states = gather_object([random_state()]) if self.n_ranks > 1 else [random_state()]
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
    """SGD or AdamW; weight decay on matrices only."""
    s = experiment.optimiser
    wanted = [p for p in model.parameters() if p.requires_grad]
    matrices: list[Tensor] = [p for p in wanted if p.ndim > 1]
    vectors: list[Tensor] = [p for p in wanted if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": s.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    if s.name == "sgd":
        return torch.optim.SGD(groups, lr=s.learning_rate)
    return torch.optim.AdamW(groups, lr=s.learning_rate, betas=s.betas, fused=device.type == "cuda")
