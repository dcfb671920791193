"""Trainings of small models side by side on one GPU: every step is a CUDA graph, every training has a stream.

A step of such a model is some hundred small kernels, and starting them takes longer than computing them. A
graph starts them all at once, so one Python thread keeps many trainings going. Batches, loss, clipping,
schedule and validation are those of `palaver.training`. Without a GPU the same steps are taken one by one.
Trainings draw dropout from one generator in the order the GPU comes to it, so figures vary a little from run
to run.
"""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from palaver.text.vocabulary import PAD, Vocabulary
from palaver.training.batches import plan_epoch
from palaver.training.checkpoint import Totals
from palaver.training.experiment_file import load_experiment
from palaver.training.loop import make_optimiser
from palaver.training.prepare import PreparedData, Split, open_splits
from palaver.training.run import make_model
from palaver.training.schedule import Schedule
from palaver.training.store import Ragged, Store

Widths = tuple[int, int, int]
"""Of context, knowledge and response in a batch."""
WIDTHS = {"context": (32, 128, 512), "knowledge": (64, 128), "response": (32, 64)}
"""Batches are as wide as one of these, so that there are few graphs: recording one takes about a second."""
CHUNK = 32
"""Steps that are started before another training has its turn."""
VALID_BATCH = 16


def pad_rows(column: Ragged, ids: np.ndarray, width: int, *, end: bool, device: torch.device) -> Tensor:
    """The first or last `width` tokens of each example (N + 1, width); the last row is empty."""
    sizes = np.minimum(column.lengths(ids), width)
    starts = column.offsets[ids + 1] - sizes if end else column.offsets[ids]
    rows = np.full((len(ids) + 1, max(width, 1)), PAD, np.int32)
    places = starts.repeat(sizes) + np.arange(sizes.sum()) - (np.cumsum(sizes) - sizes).repeat(sizes)
    rows[:-1][np.arange(rows.shape[1]) < sizes[:, None]] = column.values[places]
    return torch.from_numpy(rows).to(device)


class Examples:
    """Some examples of a store, on the device."""

    def __init__(self, split: Split, config: Any, device: torch.device) -> None:
        store, ids = split.store, split.ids
        knowledge = config.max_knowledge if config.knowledge else 0
        columns = (store.context, store.response, store.knowledge)
        limits = (config.max_context, config.max_response, knowledge)
        lengths = [
            np.minimum(column.lengths(ids), most) for column, most in zip(columns, limits, strict=True)
        ]
        self.lengths = np.stack(lengths, 1).astype(np.int32)  # (N, 3), as `plan_epoch` wants them
        self.limits = limits
        self.context = pad_rows(store.context, ids, config.max_context, end=True, device=device)
        self.response = pad_rows(store.response, ids, config.max_response, end=False, device=device)
        self.knowledge = pad_rows(store.knowledge, ids, knowledge, end=False, device=device)
        self.totals = Totals(
            tokens=int(self.lengths[:, 1].sum()),
            words=int(store.n_words[ids].sum()),
            spelling=float(store.spelling[ids].sum()),
        )

    def widths(self, rows: np.ndarray) -> Widths:
        """As wide as the longest of the examples, rounded up."""
        context, response, knowledge = self.lengths[rows].max(0)
        return (
            _round(context, "context", self.limits[0]),
            _round(knowledge, "knowledge", self.limits[2]),
            _round(response, "response", self.limits[1]),
        )


def _round(length: int, name: str, longest: int) -> int:
    return min([w for w in WIDTHS[name] if w >= length] + [longest])


class Batches:
    """An epoch's batches on the device; one with fewer examples is filled up with the empty one."""

    def __init__(self, examples: Examples, size: int, device: torch.device, **plan: Any) -> None:
        epoch = plan_epoch(examples.lengths, batch_size=size, **plan)
        numbers = np.full((len(epoch), size), len(examples.lengths), np.int64)
        self.widths: list[Widths] = []
        for i in range(len(epoch)):
            rows = epoch[i]
            numbers[i, : len(rows)] = rows
            self.widths.append(examples.widths(rows))
        self.numbers = torch.from_numpy(numbers).to(device)

    def __len__(self) -> int:
        return len(self.widths)


class Training:
    """One row of the table on its way. `advance` starts some steps and does not wait for them."""

    def __init__(
        self, name: str, file: Path, vocabulary: Path, train: Store, valid: Store | None, settings: list[str]
    ) -> None:
        self.name, self.ended = name, ""
        self.experiment = load_experiment(file, settings)
        self.vocabulary = Vocabulary.load(vocabulary)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        is_cuda = self.device.type == "cuda"
        prepared = PreparedData(vocabulary, train.folder, valid.folder if valid else None, (), {}, {})
        torch.manual_seed(self.experiment.seed)
        self.model, self.notes = make_model(self.experiment, prepared, self.vocabulary)
        self.model.to(self.device).train()
        held_in, held_out = open_splits(self.experiment, prepared)
        assert held_out is not None
        config = self.model.config
        self.train, self.valid = (Examples(split, config, self.device) for split in (held_in, held_out))
        s = self.settings = self.experiment.optimiser
        assert s.batch_size is not None
        self.rate = torch.tensor(s.learning_rate, device=self.device)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.adamw = self._make_adamw() if s.name == "adamw" else None
        self.sums = torch.zeros(2, dtype=torch.float64, device=self.device)  # nll and tokens of an epoch
        self.valid_nll = torch.zeros((), dtype=torch.float64, device=self.device)
        n_batches = -(-len(self.train.lengths) // s.batch_size)
        self.schedule = Schedule(s, min(s.epochs * n_batches, s.max_steps or s.epochs * n_batches))
        self.valid_batches = Batches(self.valid, VALID_BATCH, self.device, bucket=len(self.valid.lengths))
        self.epochs: list[dict[str, float]] = []
        self.best: list[Tensor] = []
        self.best_nll, self.waited, self.step, self.batch = float("inf"), 0, 0, 0
        self.batches: Batches | None = None
        self.is_validating = False
        self.records = is_cuda
        self.stream = torch.cuda.Stream() if is_cuda else None
        self.pool = torch.cuda.graph_pool_handle() if is_cuda else None
        self.event = torch.cuda.Event() if is_cuda else None
        self.graphs: dict[tuple[bool, Widths], torch.cuda.CUDAGraph] = {}
        self.rows = {
            True: torch.zeros(s.batch_size, dtype=torch.int64, device=self.device),
            False: torch.zeros(VALID_BATCH, dtype=torch.int64, device=self.device),
        }
        if is_cuda:
            torch.cuda.synchronize()
        self.began = time.perf_counter()
        self.saved = time.monotonic()

    def _make_adamw(self) -> torch.optim.Optimizer:
        """With its state in place, which a graph needs."""
        optimiser = make_optimiser(self.model, self.experiment, self.device)
        for group in optimiser.param_groups:
            group["lr"] = self.rate
            group["capturable"] = self.device.type == "cuda"
        self.rate.fill_(0.0)
        for p in self.parameters:
            p.grad = torch.zeros_like(p)
        optimiser.step()
        for state in optimiser.state.values():
            state["step"].zero_()
        return optimiser

    # Steps -------------------------------------------------------------------------------------------------

    def _costs(self, examples: Examples, rows: Tensor, widths: Widths) -> tuple[Tensor, Tensor, Tensor]:
        """What is learned from, the cost in nats, and how many tokens that are."""
        c, k, r = widths
        context = examples.context[:, :c].index_select(0, rows).long()
        response = examples.response[:, :r].index_select(0, rows).long()
        knowledge = examples.knowledge[:, :k].index_select(0, rows).long() if k else None
        bf16 = self.settings.precision == "bf16" and self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16, cache_enabled=False):
            memory = self.model.encode(context, knowledge)
            features = self.model.features(memory, response, speaker=None, ocean=None)
            logits = self.model.logits(features).flatten(0, 1)
        targets = response.flatten()
        exact = logits.float()
        nll = F.cross_entropy(exact, targets, reduction="sum", ignore_index=PAD)
        loss, smoothing = nll, self.settings.label_smoothing
        if smoothing and torch.is_grad_enabled():
            loss = F.cross_entropy(
                exact, targets, reduction="sum", ignore_index=PAD, label_smoothing=smoothing
            )
        return loss, nll.detach(), (targets != PAD).sum()

    def _learn(self, widths: Widths) -> None:
        for p in self.parameters:
            p.grad = None
        loss, nll, n_tokens = self._costs(self.train, self.rows[True], widths)
        (loss / n_tokens).backward()
        if self.settings.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.clip)
        if self.adamw is not None:
            self.adamw.step()
        else:
            with torch.no_grad():
                grads = [p.grad for p in self.parameters if p.grad is not None]
                moved = [p for p in self.parameters if p.grad is not None]
                torch._foreach_mul_(grads, -self.rate)
                torch._foreach_add_(moved, grads)
        self.sums += torch.stack((nll.double(), n_tokens.double()))

    @torch.no_grad()
    def _judge(self, widths: Widths) -> None:
        self.valid_nll += self._costs(self.valid, self.rows[False], widths)[1].double()

    def _play(self, is_training: bool, batches: Batches, batch: int) -> None:
        widths = batches.widths[batch]
        key = (is_training, widths)
        self.rows[is_training].copy_(batches.numbers[batch])
        if self.records and key not in self.graphs:
            self._record(is_training, widths)
        if key in self.graphs:
            self.graphs[key].replay()
            return
        self.model.train(is_training)
        self._learn(widths) if is_training else self._judge(widths)

    def _record_all(self, batches: Batches) -> None:
        """The widest first: the memory of later ones is then found among what those have used."""
        shapes = [(True, widths) for widths in set(batches.widths)]
        shapes += [(False, widths) for widths in set(self.valid_batches.widths)]
        for is_training, widths in sorted(shapes, key=lambda shape: (shape[0], sum(shape[1])), reverse=True):
            if self.records:
                self._record(is_training, widths)

    def _record(self, is_training: bool, widths: Widths) -> None:
        """Warming up and recording change the weights, so they are put back."""
        work = self._learn if is_training else self._judge
        self.model.train(is_training)
        states = self.adamw.state.values() if self.adamw is not None else ()
        kept = [*self.parameters, *(t for s in states for t in s.values()), self.sums, self.valid_nll]
        before = [t.detach().clone() for t in kept]
        try:
            for _ in range(2):
                work(widths)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
            ):
                work(widths)
            self.graphs[is_training, widths] = graph
        except RuntimeError as error:
            self.records = False
            print(f"{self.name}: steps are not recorded: {error}", flush=True)
        torch.cuda.synchronize()
        with torch.no_grad():
            for now, then in zip(kept, before, strict=True):
                now.copy_(then)

    # The run -----------------------------------------------------------------------------------------------

    def advance(self) -> bool:
        """Start some more steps, unless enough are under way already; whether any were started."""
        if self.event is not None and not self.event.query():
            return False
        with torch.cuda.stream(self.stream):  # does nothing without a GPU
            if self.is_validating:
                self._finish_epoch()
                return True
            s = self.settings
            if self.batches is None:
                plan = {"bucket": s.bucket, "seed": self.experiment.seed, "epoch": len(self.epochs)}
                self.batches, self.batch = Batches(self.train, s.batch_size or 1, self.device, **plan), 0
                if self.records and not self.graphs:
                    self._record_all(self.batches)
            for i in range(CHUNK):
                self.step += 1
                self.rate.fill_(self.schedule.rate(self.step, len(self.epochs) + 1))
                self._play(True, self.batches, self.batch)
                self.batch += 1
                if i == CHUNK // 2 and self.event is not None:
                    self.event.record()
                if self.batch == len(self.batches) or self.step == s.max_steps:
                    for b in range(len(self.valid_batches)):
                        self._play(False, self.valid_batches, b)
                    self.is_validating = True
                    if self.event is not None:
                        self.event.record()
                    break
        return True

    def _finish_epoch(self) -> None:
        nll, n_tokens = self.sums.tolist()
        valid = Totals(
            nll=self.valid_nll.item(),
            tokens=self.valid.totals.tokens,
            words=self.valid.totals.words,
            spelling=self.valid.totals.spelling,
        )
        totals = self.train.totals
        trained = Totals(nll=nll, tokens=int(n_tokens), words=totals.words, spelling=totals.spelling)
        better = valid.nll_per_token < self.best_nll
        if better:
            self.best_nll = valid.nll_per_token
            self.best = [t.detach().clone() for t in self.model.weights().values()]
        self.waited = 0 if better else self.waited + 1
        self.epochs.append(
            {
                "epoch": len(self.epochs) + 1,
                "step": self.step,
                "seconds": round(time.perf_counter() - self.began, 1),
                "ppl_word": trained.perplexity.per_word,
                "valid_ppl": valid.perplexity.per_token,
                "valid_ppl_word": valid.perplexity.per_word,
                "lr": self.rate.item(),
            }
        )
        last = self.epochs[-1]
        print(
            f"{self.name} epoch {last['epoch']:.0f} {last['seconds']:.0f} s: "
            f"valid {last['valid_ppl_word']:.2f} a word, rate {last['lr']:.3g}, {len(self.graphs)} graphs",
            flush=True,
        )
        self.schedule.epoch_done(better)
        self.sums.zero_()
        self.valid_nll.zero_()
        self.batches, self.is_validating = None, False
        s = self.settings
        if s.early_stop and self.waited >= s.early_stop:
            self.ended = f"{self.waited} epochs brought nothing"
        elif len(self.epochs) >= s.epochs or self.step == s.max_steps:
            self.ended = f"{len(self.epochs)} epochs, as planned"

    def save(self, folder: Path) -> bool:
        """Write the best model so far; whether there is one. Training can go on afterwards."""
        if self.stream is not None:
            self.stream.synchronize()
        if not self.best:
            return False
        weights = list(self.model.weights().values())
        now = [weight.detach().clone() for weight in weights]
        with torch.no_grad():
            for weight, best in zip(weights, self.best, strict=True):
                weight.copy_(best)
            self.model.save_pretrained(folder)
            for weight, then in zip(weights, now, strict=True):
                weight.copy_(then)
        if self.stream is not None:
            torch.cuda.synchronize()
        self.vocabulary.save(folder)
        self.saved = time.monotonic()
        return True

    def describe(self) -> dict[str, Any]:
        """What a results file says about it."""
        return {
            "epochs": self.epochs,
            "end": self.ended,
            "notes": self.notes,
            "seed": self.experiment.seed,
            "hardware": read_hardware(),
        }


def read_hardware() -> str:
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{platform.machine()}, torch {torch.__version__}"
