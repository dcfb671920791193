"""Fitting the network: all pairs of a batch, or ratings as classes or as numbers.

The scores of a batch are computed in pieces of like length, the gradient of the loss by each score from the
scores alone (Liang et al. 2020, section 5.4), and one backward pass carries it into the network. So batches
are drawn at random, whatever their lengths: batches sorted by length would only ever compare dialogues of one
length. A batch whose states do not fit into memory is run twice, once for the scores and once, with the same
dropout, for the gradients. Several processes (`accelerate launch`) share each batch and add their gradients.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from palaver.comparator.cmade.inputs import Inputs, cut_by_tokens
from palaver.comparator.cmade.network import ComparatorNetwork, autocast
from palaver.comparator.cmade.presets import Objective, Training
from palaver.comparator.cmade.ranking_loss import pair_weights
from palaver.comparator.training_data import Pairs
from palaver.errors import DataError, UserError
from palaver.progress import Progress, no_progress
from palaver.training.checkpoint import random_state, set_random_state
from palaver.training.experiment import Optimiser
from palaver.training.schedule import Schedule

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when a GPU is first used, not later

EVERYONE = -2
"""The group of dialogues that may be compared with any other of it, in whatever batch they meet."""
UNKNOWN = -1
"""No group: in training within groups such dialogues are left out and counted."""
_PIECE = {"cuda": 32768, "cpu": 4096}
"""Padded tokens that are run through the network at once."""


@dataclass(frozen=True)
class Examples:
    """What is learnt from: rows of the inputs (a row may come twice), their targets, and who meets whom."""

    rows: NDArray[np.int64]
    targets: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def rated(
        cls,
        targets: NDArray[np.float64],
        *,
        rows: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
    ) -> Examples:
        """Every dialogue once, with its rating."""
        return cls(np.arange(len(targets)) if rows is None else rows, targets, groups)

    @classmethod
    def anomalies(cls, n_real: int, real: NDArray[np.int64]) -> Examples:
        """Stage 1: `n_real` dialogues, then their spoilt copies; each against its own copies only."""
        rows = np.arange(n_real + len(real))
        targets = np.concatenate([np.ones(n_real), np.zeros(len(real))])
        groups = np.concatenate([np.arange(n_real), real]).astype(np.int64)
        return cls(rows, targets, groups)

    def with_pairs(self, pairs: Pairs, offset: int) -> Examples:
        """These and compared pairs of dialogues whose rows begin at `offset`; each pair meets only itself."""
        groups = np.full(len(self), EVERYONE) if self.groups is None else self.groups
        own = np.arange(len(pairs)) + max(0, int(groups.max(initial=0)) + 1)
        return Examples(
            np.concatenate([self.rows, pairs.better + offset, pairs.worse + offset]),
            np.concatenate([self.targets, np.ones(len(pairs)), np.zeros(len(pairs))]),
            np.concatenate([groups, own, own]).astype(np.int64),
            None if self.weights is None else np.concatenate([self.weights, np.ones(2 * len(pairs))]),
        )


@dataclass(frozen=True)
class Epoch:
    """One pass: mean loss, seconds, and what `evaluate` said after it."""

    loss: float
    seconds: float
    measured: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """How training went."""

    epochs: tuple[Epoch, ...]
    n_steps: int
    n_examples: int
    n_left_out: int = 0
    """Dialogues without a group, or without anybody to be compared with."""


def train(
    network: ComparatorNetwork,
    inputs: Inputs,
    examples: Examples,
    settings: Training,
    *,
    objective: Objective = "pairwise",
    seed: int = 0,
    evaluate: Callable[[], dict[str, float]] | None = None,
    progress: Progress = no_progress,
    what: str = "training",
) -> History:
    """Fit `network` in place. The same seed and data give the same weights on the same machine."""
    keep, left_out = _usable(examples, objective)
    run = _Run(network, inputs, keep, settings, objective, seed)
    epochs = []
    was_training = network.training
    with _seeded(seed + run.rank):
        for epoch in range(settings.epochs):
            began = time.perf_counter()
            network.train()
            total = torch.zeros((), device=network.device)
            for batch in run.plans[epoch]:
                total += run.step(batch)
                progress(f"{what}, epoch {epoch + 1}", run.n_done, run.n_steps)
            loss = float(total) / len(run.plans[epoch])
            if not math.isfinite(loss):
                raise UserError("the loss is no longer a number", "try a lower learning rate")
            seconds = time.perf_counter() - began
            network.eval()
            epochs.append(Epoch(loss, round(seconds, 3), evaluate() if evaluate is not None else {}))
    network.train(was_training)
    return History(tuple(epochs), run.n_steps, len(keep), left_out)


def plan_batches(
    n: int, size: int, groups: NDArray[np.int64] | None, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Every example once, groups together: a group larger than a batch is cut, `EVERYONE` is spread."""
    size = min(n, size) if size else n
    order = rng.permutation(n)
    if groups is None:
        batches = [order[i : i + size] for i in range(0, n, size)]
    else:
        batches = _packed(_units(order, groups, size), size, rng)
    if len(batches) > 1 and len(batches[-1]) == 1:  # nobody to be compared with
        last = batches.pop()
        batches[-1] = np.concatenate([batches[-1], last])
    return batches


def _units(order: NDArray[np.int64], groups: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    by_group = order[np.argsort(groups[order], kind="stable")]
    bounds = np.flatnonzero(np.diff(groups[by_group])) + 1
    units = []
    for members in np.split(by_group, bounds):
        step = 1 if groups[members[0]] == EVERYONE else size
        units += [members[i : i + step] for i in range(0, len(members), step)]
    return units


def _packed(
    units: Sequence[NDArray[np.int64]], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    batches: list[list[NDArray[np.int64]]] = [[]]
    held = 0
    for place in rng.permutation(len(units)):
        unit = units[int(place)]
        if held and held + len(unit) > size:
            batches.append([])
            held = 0
        batches[-1].append(unit)
        held += len(unit)
    return [np.concatenate(batch) for batch in batches]


def class_centres(values: NDArray[np.float64], scale: tuple[float, float], n: int = 5) -> NDArray[np.float64]:
    """The rating each class stands for: the steps of a scale of whole numbers, else `n` bins of one width."""
    low, high = scale
    if high - low + 1 == n and float(low).is_integer() and (values == np.round(values)).all():
        return np.linspace(low, high, n)
    return low + (np.arange(n) + 0.5) * (high - low) / n


def _usable(examples: Examples, objective: Objective) -> tuple[Examples, int]:
    if not len(examples):
        raise DataError("there is nothing to train on")
    if not np.isfinite(examples.targets).all():
        raise DataError(f"{int((~np.isfinite(examples.targets)).sum())} dialogues have no rating to train on")
    if objective != "pairwise" or examples.groups is None:
        if np.ptp(examples.targets) == 0:
            raise DataError(f"all {len(examples)} ratings to train on are equal: there is nothing to compare")
        return examples, 0
    g = examples.groups
    _, place = np.unique(g, return_inverse=True)
    low, high = np.full(place.max() + 1, np.inf), np.full(place.max() + 1, -np.inf)
    np.minimum.at(low, place, examples.targets)
    np.maximum.at(high, place, examples.targets)
    keep = (g != UNKNOWN) & (high > low)[place]
    if not keep.any():
        raise DataError(
            "nothing can be compared: no group holds two dialogues with different ratings",
            "compare all dialogues with each other (leave out --within)",
        )
    weights = None if examples.weights is None else examples.weights[keep]
    kept = Examples(examples.rows[keep], examples.targets[keep], g[keep], weights)
    return kept, int((~keep).sum())


class _Run:
    """Everything that lives as long as one training."""

    def __init__(
        self,
        network: ComparatorNetwork,
        inputs: Inputs,
        examples: Examples,
        settings: Training,
        objective: Objective,
        seed: int,
    ) -> None:
        self.network, self.inputs, self.examples = network, inputs, examples
        self.settings, self.objective, self.device = settings, objective, network.device
        self.accelerator = _accelerator()
        self.rank = self.accelerator.process_index if self.accelerator else 0
        self.n_ranks = self.accelerator.num_processes if self.accelerator else 1
        self.targets = torch.from_numpy(self._aims()).to(self.device)
        grouped = objective == "pairwise" and examples.groups is not None
        self.groups = torch.from_numpy(examples.groups).to(self.device) if grouped else None
        w = examples.weights
        self.weights = None if w is None else torch.from_numpy(w).float().to(self.device)
        groups = examples.groups if grouped else None
        self.plans = [
            plan_batches(len(examples), settings.batch_size, groups, np.random.default_rng((seed, epoch)))
            for epoch in range(settings.epochs)
        ]
        self.n_steps, self.n_done = sum(map(len, self.plans)), 0
        self.optimiser = _optimiser(network, settings, objective)
        self.schedule = Schedule(
            Optimiser(
                learning_rate=settings.learning_rate,
                schedule="warmup-cosine",
                warmup_steps=max(1, round(settings.warmup * self.n_steps)),
                batch_size=max(1, settings.batch_size),
            ),
            self.n_steps,
        )

    def _aims(self) -> NDArray[Any]:
        """Targets as the loss takes them: ratings, standard scores, or the number of the class."""
        t = self.examples.targets
        if self.objective == "pairwise":
            return np.asarray(t, np.float64)
        if self.objective == "regression":
            return np.asarray((t - t.mean()) / max(float(t.std()), 1e-12), np.float32)
        centres = np.array(self.network.config.centres)
        if not centres.size:
            raise UserError("a classifier needs a network with the ratings its classes stand for (centres)")
        return np.asarray(np.abs(t[:, None] - centres).argmin(1), np.int64)

    def step(self, batch: NDArray[np.int64]) -> Tensor:
        """One update; the loss of the whole batch, on the device."""
        self.n_done += 1
        rate = self.schedule.rate(self.n_done, 1)
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["faster"]
        mine = np.arange(len(batch))[self.rank :: self.n_ranks]
        rows = self.examples.rows[batch[mine]]
        pieces = list(cut_by_tokens(self.inputs.lengths[rows], _PIECE.get(self.device.type, 4096)))
        lengths = self.inputs.lengths[rows]
        at_once = sum(int(lengths[p].max()) * len(p) for p in pieces) <= self.settings.graph_tokens
        before: list[dict[str, Any]] = []
        outputs: list[Tensor] = []
        with contextlib.nullcontext() if at_once else torch.no_grad():
            for piece in pieces:
                if not at_once:
                    before.append(random_state())
                outputs.append(self._logits(rows[piece]))
        gathered = torch.zeros(len(batch), self.network.head.out_features, device=self.device)
        for piece, output in zip(pieces, outputs, strict=True):
            gathered[torch.from_numpy(mine[piece])] = output.detach()
        if self.accelerator is not None:
            gathered = self.accelerator.reduce(gathered, "sum")
        loss, gradient = self._gradient(gathered, torch.from_numpy(batch).to(self.device))
        for i, piece in enumerate(pieces):
            if not at_once:
                set_random_state(before[i])
            output = outputs[i] if at_once else self._logits(rows[piece])
            output.backward(gradient[torch.from_numpy(mine[piece]).to(self.device)])  # type: ignore[no-untyped-call]
        self._update()
        return loss

    def _logits(self, rows: NDArray[np.int64]) -> Tensor:
        with autocast(self.device):
            embeddings = self.network.embed(*self.network.to_device(self.inputs, rows))
        return self.network.logits(embeddings)

    def _gradient(self, logits: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of the whole batch and its gradient by what f gave, (B, outputs)."""
        targets = self.targets[batch]
        weights = None if self.weights is None else self.weights[batch]
        if self.objective == "pairwise":
            groups = None if self.groups is None else self.groups[batch]
            loss, gradient = pair_weights(logits[:, 0], targets, groups=groups, weights=weights)
            return loss, gradient[:, None]
        leaf = logits.detach().requires_grad_()
        if self.objective == "regression":
            costs = F.mse_loss(leaf[:, 0], targets, reduction="none")
        else:
            costs = F.cross_entropy(leaf, targets, reduction="none")
        loss = costs.mean() if weights is None else (costs * weights).sum() / weights.sum().clamp(min=1e-12)
        (gradient,) = torch.autograd.grad(loss, leaf)
        return loss.detach(), gradient

    def _update(self) -> None:
        parameters = [p for p in self.network.parameters() if p.requires_grad]
        if self.accelerator is not None:
            for p in parameters:
                p.grad = self.accelerator.reduce(torch.zeros_like(p) if p.grad is None else p.grad, "sum")
        torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip or math.inf)
        self.optimiser.step()
        self.network.zero_grad(set_to_none=True)


def _optimiser(network: ComparatorNetwork, settings: Training, objective: Objective) -> torch.optim.Optimizer:
    """AdamW; weight decay on matrices only, the new layers faster."""
    kinds: dict[tuple[bool, bool], list[Tensor]] = {}
    for name, p in network.named_parameters():
        if objective == "pairwise" and name == "head.bias":
            continue  # pairs say nothing about it, and Adam would make steps of what rounding leaves
        if p.requires_grad:
            kinds.setdefault((not name.startswith("encoder."), p.ndim > 1), []).append(p)
    groups = [
        {
            "params": parameters,
            "weight_decay": settings.weight_decay if matrix else 0.0,
            "faster": settings.new_layers if new else 1.0,
        }
        for (new, matrix), parameters in kinds.items()
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, fused=network.device.type == "cuda")


def is_first_process() -> bool:
    """Of several that `accelerate launch` started: the one that writes and speaks."""
    return os.environ.get("RANK", "0") == "0"


def _accelerator() -> Any:
    """The processes that `accelerate launch` started, if there is more than this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return None
    from accelerate import Accelerator  # type: ignore[import-untyped]

    return Accelerator()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random numbers from `seed` and sums in a fixed order; afterwards as before."""
    before, steady = random_state(), torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False  # costs a kernel for every tensor
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deterministic.*")
            yield
    finally:
        torch.use_deterministic_algorithms(steady)
        memory.fill_uninitialized_memory = filled
        set_random_state(before)
