"""A language model that judges what is said in a dialogue: SmolLM2 with an adapter, learnt from ratings.

    python experiments/comparator/language_model.py PREPARED.npz PLAN --base BASE --out OUT [--processes 3]

PREPARED is what language_model_data.py wrote. A PLAN names runs, see `plan`: `shapes` tries shapes on two of
the four quarters of raters, `pairs` learns from minimal pairs alone, `begun` tries ways to go on from there,
`final` holds each quarter out once and then learns from all with three seeds, `systems` leaves each system
out once, `groups` leaves them out in three groups. Each run learns the ratings, centred within a sitting, and
their seven criteria; which of two dialogues of one sitting is better; and which side of a minimal pair. With
--begin it goes on from the adapter that `pairs` wrote. It needs torch, transformers and numpy only, and
writes NAME.json, NAME.npz (what it says of the dialogues) and, where it learnt from all raters,
NAME.safetensors as soon as the run is done. Runs that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from language_model_data import CRITERIA, FOLDS, PARTS, SOURCES  # noqa: E402
from record import TIERS  # noqa: E402

from palaver.comparator.language_model import (  # noqa: E402
    SYSTEM,
    AdapterSettings,
    TokenRows,
    cut_by_tokens,
    open_base,
    pooled_states,
    save_adapter,
)
from palaver.models.devices import has_bfloat16  # noqa: E402


@dataclass(frozen=True)
class TrainingSettings:
    """How the adapter is learnt."""

    epochs: int = 3
    sittings: int = 8
    """Of a step; with them come `pairs` minimal pairs."""
    pairs: int = 96
    learning_rate: float = 4e-4
    head_rate: float = 1e-3
    criteria_share: float = 0.2
    sitting_share: float = 0.5
    tier_share: float = 0.0
    """How much more a pair of dialogues of one tier of bots counts."""
    pair_share: float = 0.75
    passes: int = 0
    """Over the minimal pairs alone; nothing else is learnt from then."""
    other_share: float = 0.25
    """The weight of a rating of ConvAI 2017 beside one of Reliable-Eval."""
    warm_up: float = 0.1
    dropout: float = 0.1
    """Of what goes into the head."""
    budget: int = 24576
    """Tokens of one pass, padding counted."""
    begin_head: float = 1.0
    """What the head of --begin is multiplied by: minimal pairs alone drive its scores far apart."""
    frozen: int = 0
    """Lower layers without an adapter. What they make of a dialogue is computed once, which saves a processor
    most of the time."""


@dataclass(frozen=True)
class Run:
    """One adapter to be learnt: its name, its shape, and the ratings that it does not see."""

    name: str
    shape: AdapterSettings
    likelihood: bool
    """Whether the head sees how likely the system's words are; no adapter is written then."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    seed: int = 0
    fold: int | None = None
    without: tuple[str, ...] = ()

    def seen(self, arrays: dict[str, Any]) -> Any:
        """(N,) which ratings of Reliable-Eval it learns from."""
        if self.fold is not None:
            return arrays["fold"] != self.fold
        return ~np.isin(arrays["reliable_eval.system"], self.without)


@dataclass(frozen=True)
class Tried:
    """A shape that was tried."""

    layers: int
    likelihood: bool = False
    settings: TrainingSettings = TrainingSettings()

    def run(self, name: str, **which: Any) -> Run:
        """One run of this shape."""
        return Run(name, AdapterSettings(layers=self.layers), self.likelihood, self.settings, **which)


SHAPES = {
    "16": Tried(16),
    "30-likelihood": Tried(30, likelihood=True),
    "16-likelihood": Tried(16, likelihood=True),
    "24": Tried(24),
    "30": Tried(30),
    "16-tier": Tried(16, settings=TrainingSettings(tier_share=1.0)),
    "16-slow": Tried(16, settings=TrainingSettings(learning_rate=2e-4, epochs=4)),
    "16-pairs": Tried(16, settings=TrainingSettings(pair_share=1.5)),
    "16-quarter": Tried(16, settings=TrainingSettings(begin_head=0.25)),
    "16-quarter-long": Tried(16, settings=TrainingSettings(begin_head=0.25, epochs=5)),
    "16-fresh-head": Tried(16, settings=TrainingSettings(begin_head=0.0, epochs=4)),
    "16-upper": Tried(
        16, settings=TrainingSettings(frozen=12, epochs=2, pairs=16, other_share=0.0, budget=8192)
    ),
}
"""Shapes and settings by name; the first ones are tried first. `16-upper` is for a machine without a GPU."""
BEGUN = ("16-quarter", "16-quarter-long", "16-fresh-head")
"""Ways to go on after the minimal pairs, tried on two quarters of raters by the plan `begun`."""
GROUPS = (("A", "A_p", "D", "D_p"), ("B", "B_p", "E", "E_p"), ("C", "C_p", "QualityControl"))
"""Systems left out together: each with its twin that has a persona, and some of both tiers."""


def plan(name: str, shape: str, systems: list[str]) -> list[Run]:
    """The runs of a plan in their order."""
    chosen = SHAPES[shape]
    if name == "shapes":
        return [tried.run(f"{s}.fold-{k}", fold=k) for s, tried in SHAPES.items() for k in (0, 1)]
    if name == "begun":
        return [SHAPES[s].run(f"{s}.fold-{k}", fold=k) for k in (0, 1) for s in BEGUN]
    if name == "pairs":
        alone = replace(chosen.settings, passes=4, pairs=256)
        return [Run(f"{shape}.pairs", AdapterSettings(layers=chosen.layers), chosen.likelihood, alone)]
    if name == "final":
        folds = [chosen.run(f"{shape}.fold-{k}", fold=k) for k in range(FOLDS)]
        return folds + [chosen.run(f"{shape}.seed-{k}", seed=k) for k in range(3)]
    if name == "systems":
        return [chosen.run(f"{shape}.without-{s}", without=(s,)) for s in systems]
    if name == "groups":
        return [chosen.run(f"{shape}.without-{'+'.join(group)}", without=group) for group in GROUPS]
    raise SystemExit(f"there is no plan {name}; there are: shapes, begun, pairs, final, systems, groups")


class Trainer:
    """Fits one adapter after the other on the same base."""

    def __init__(self, given: argparse.Namespace) -> None:
        import torch

        self.torch, self.given = torch, given
        with np.load(given.prepared) as file:
            self.arrays = {name: file[name] for name in file.files}
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.sizes = {name: len(self.arrays[f"{name}.bounds"]) - 1 for name in PARTS}
        self.begins = dict(zip(PARTS, np.cumsum([0, *self.sizes.values()]), strict=False))
        self.rows = self._all_rows()
        on_gpu = self.device.type == "cuda"
        self.half = torch.bfloat16 if on_gpu or has_bfloat16() else torch.float32
        self.n_layers = 0
        self.lower: dict[int, Any] = {}
        """What frozen layers make of a dialogue, (T, C), by its place."""

    def _all_rows(self) -> TokenRows:
        """The dialogues of all parts, one part after the other."""
        tokens, roles = (
            np.concatenate([self.arrays[f"{name}.{kind}"] for name in PARTS]) for kind in ("tokens", "roles")
        )
        lengths = [np.diff(self.arrays[f"{name}.bounds"]) for name in PARTS]
        return TokenRows(tokens, roles, np.cumsum([0, *np.concatenate(lengths)]))

    def begin(self, run: Run) -> dict[str, Any]:
        """A fresh adapter: `down` and `up` of all layers by kind, and the head."""
        from plain_llama import N_LIKELIHOODS, PlainLlama

        torch = self.torch
        if run.shape.layers != self.n_layers:
            base, _ = open_base(self.given.base, run.shape.layers)
            self.network = PlainLlama(base, self.device, self.half, compiled=self.given.compile)
            self.n_layers, self.lower = run.shape.layers, {}
        torch.manual_seed(run.seed)
        adapter: dict[str, Any] = self.network.fresh_adapter(run.shape.rank, run.settings.frozen)
        n_inputs = 2 * self.network.width + (N_LIKELIHOODS if run.likelihood else 0)
        adapter["head.weight"] = torch.zeros(run.shape.outputs, n_inputs, device=self.device).requires_grad_()
        adapter["head.bias"] = torch.zeros(run.shape.outputs, device=self.device).requires_grad_()
        if self.given.begin is not None:
            with np.load(self.given.begin) as file, torch.no_grad():
                for name, array in adapter.items():
                    array.copy_(torch.from_numpy(file[name]))
            for name in ("head.weight", "head.bias"):
                adapter[name].data *= run.settings.begin_head
        return adapter

    def merged(self, run: Run, adapter: dict[str, Any]) -> dict[str, Any]:
        """The base's weights with the adapter's changes."""
        return self.network.merge(adapter, run.shape.alpha / run.shape.rank)

    def outputs(self, places: Any, run: Run, adapter: dict[str, Any], weights: dict[str, Any]) -> Any:
        """(n, outputs) what the model says of the dialogues in these places, in passes of like length."""
        torch, rows = self.torch, self.rows
        parts, order = [], []
        for piece in cut_by_tokens(rows.lengths[places], run.settings.budget):
            tokens, roles = rows.padded(places[piece])
            told = np.flatnonzero(roles[:, 1:] == SYSTEM)
            tokens, roles, told = (
                torch.from_numpy(a).to(self.device, non_blocking=True) for a in (tokens, roles, told)
            )
            if run.settings.frozen:
                below = self.lower_states(places[piece], tokens, run.settings.frozen)
                hidden = self.network.upper_states(below, weights)
            else:
                hidden = self.network.states(tokens, weights)
            states = pooled_states(hidden.float(), roles)
            states = torch.nn.functional.dropout(states, run.settings.dropout, self.training)
            if run.likelihood:
                from plain_llama import reply_likelihoods

                likelihoods = reply_likelihoods(hidden, self.network.embedding, tokens, roles, told)
                states = torch.cat([states, likelihoods], 1)
            parts.append(states @ adapter["head.weight"].T + adapter["head.bias"])
            order.append(piece)
        back = np.argsort(np.concatenate(order))
        return torch.cat(parts)[torch.from_numpy(back).to(self.device)]

    def lower_states(self, places: Any, tokens: Any, n_frozen: int) -> Any:
        """(B, T, C) what the frozen layers make of these dialogues, 0 where there is no token."""
        lengths = self.rows.lengths[places]
        if any(place not in self.lower for place in places):
            states = self.network.lower_states(tokens, n_frozen)
            for place, own, length in zip(places, states, lengths, strict=True):
                self.lower[place] = own[:length].clone()
        return self.torch.nn.utils.rnn.pad_sequence([self.lower[place] for place in places], batch_first=True)

    def sides(self, drawn: Any) -> Any:
        """The places of both sides of these minimal pairs, the better one first."""
        return self.begins["pairs"] + np.stack([2 * drawn, 2 * drawn + 1], 1).ravel()

    def pair_loss(self, of_sides: Any) -> Any:
        """Of what the model says of these sides."""
        difference = of_sides[0::2, 0] - of_sides[1::2, 0]
        return self.torch.nn.functional.softplus(-2 * difference).mean()

    def fit_pairs(self, run: Run) -> tuple[dict[str, Any], dict[str, float]]:
        """Learn from the minimal pairs alone."""
        torch, s = self.torch, run.settings
        rng = np.random.default_rng(run.seed)
        adapter = self.begin(run)
        n_pairs = self.sizes["pairs"] // 2
        n_steps = self.given.steps or s.passes * n_pairs // s.pairs
        optimiser = torch.optim.AdamW(adapter.values(), lr=s.learning_rate, weight_decay=0.01)
        warm = max(1, s.warm_up * n_steps)
        began, total = time.time(), torch.zeros((), device=self.device)
        self.training = True
        order: list[int] = []
        for step in range(n_steps):
            if len(order) < s.pairs:
                order += rng.permutation(n_pairs).tolist()
            drawn, order = np.array(order[: s.pairs]), order[s.pairs :]
            told = self.outputs(self.sides(drawn), run, adapter, self.merged(run, adapter))
            loss = self.pair_loss(told)
            optimiser.param_groups[0]["lr"] = s.learning_rate * share_of_rate(step, warm, n_steps)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(list(adapter.values()), 1.0)
            optimiser.step()
            total += loss.detach()
        self.training = False
        arrays = {name: array.detach().float().cpu().numpy() for name, array in adapter.items()}
        np.savez(self.given.out / f"{run.name}.adapter.npz", **arrays)
        seconds = round(time.time() - began, 1)
        return adapter, {"pair": round(float(total) / n_steps, 4), "steps": n_steps, "seconds": seconds}

    def fit(self, run: Run) -> tuple[dict[str, Any], dict[str, float]]:
        """Learn from the ratings of Reliable-Eval it may see, from ConvAI 2017 and from the minimal pairs."""
        torch, s = self.torch, run.settings
        if self.given.steps:
            s = replace(s, sittings=2, pairs=4)
        rng = np.random.default_rng(run.seed)
        adapter = self.begin(run)
        seen, sitting = run.seen(self.arrays), self.arrays["sitting"]
        groups = [np.flatnonzero((sitting == g) & seen) for g in np.unique(sitting[seen])]
        target = torch.from_numpy(self.arrays["target"]).to(self.device)  # (N, 8)
        weight = torch.from_numpy(self.arrays["weight"]).to(self.device)
        sitting_of = torch.from_numpy(sitting).to(self.device)
        tier_of = torch.from_numpy(_tiers(self.arrays["reliable_eval.system"])).to(self.device)
        other = torch.from_numpy(self.arrays["other_target"]).to(self.device)
        n_pairs = self.sizes["pairs"] // 2
        n_steps = s.epochs * -(-len(groups) // s.sittings)
        n_steps = min(n_steps, self.given.steps or n_steps)
        heads = [array for name, array in adapter.items() if name.startswith("head")]
        rest = [array for name, array in adapter.items() if not name.startswith("head")]
        optimiser = torch.optim.AdamW(
            [{"params": rest, "lr": s.learning_rate}, {"params": heads, "lr": s.head_rate}], weight_decay=0.01
        )
        rates = [group["lr"] for group in optimiser.param_groups]
        warm = max(1, int(s.warm_up * n_steps))
        shares = torch.full((len(CRITERIA) + 1,), s.criteria_share, device=self.device)
        shares[0] = 1.0
        began, totals = time.time(), torch.zeros(3, device=self.device)
        self.training = True
        order: list[Any] = []
        for step in range(n_steps):
            if not order:
                order = [groups[i] for i in rng.permutation(len(groups))]
            chosen, order = order[: s.sittings], order[s.sittings :]
            places = np.concatenate(chosen)
            drawn = rng.integers(n_pairs, size=s.pairs)
            others = rng.integers(len(other), size=len(places) // 2 if s.other_share else 0)
            sides = self.sides(drawn)
            every = np.concatenate([places, sides, self.begins["convai2017"] + others])
            told = self.outputs(every, run, adapter, self.merged(run, adapter))
            of_ratings, of_sides, of_others = told.split([len(places), len(sides), len(others)])
            rows = torch.from_numpy(places).to(self.device)
            errors = torch.nn.functional.smooth_l1_loss(of_ratings, target[rows], reduction="none")
            rating_loss = (errors @ shares * weight[rows]).mean()
            gap = target[rows, 0][:, None] - target[rows, 0][None, :]  # (n, n)
            wide = (sitting_of[rows][:, None] == sitting_of[rows][None, :]) & (gap > 0.3)
            alike = (tier_of[rows][:, None] == tier_of[rows][None, :]) & (tier_of[rows] >= 0)
            counts = wide * gap.clamp(max=2.0) * weight[rows][:, None] * (1 + s.tier_share * alike)
            nearer = torch.nn.functional.softplus(-1.5 * (of_ratings[:, :1] - of_ratings[:, 0][None]))
            sitting_loss = (counts * nearer).sum() / counts.sum().clamp(min=1e-6)
            pair_loss = self.pair_loss(of_sides)
            loss = rating_loss + s.sitting_share * sitting_loss + s.pair_share * pair_loss
            if s.other_share:
                goal = other[torch.from_numpy(others).to(self.device)]
                loss = loss + s.other_share * torch.nn.functional.smooth_l1_loss(of_others[:, 0], goal)
            now = share_of_rate(step, warm, n_steps)
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * now
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*rest, *heads], 1.0)
            optimiser.step()
            totals += torch.stack([rating_loss, sitting_loss, pair_loss]).detach()
        mean = (totals / max(1, n_steps)).cpu().numpy().astype(float)
        self.training = False
        return adapter, dict(zip(("rating", "sitting", "pair"), mean.round(4).tolist(), strict=True)) | {
            "steps": n_steps, "seconds": round(time.time() - began, 1)
        }  # fmt: skip

    def work(self, run: Run) -> dict[str, Any]:
        """Fit and write down what the adapter says of every dialogue, and how often it is right."""
        adapter, record = self.fit_pairs(run) if run.settings.passes else self.fit(run)
        left_alone = ("pairs", "convai2017", "convai2") if run.without else ("pairs",)
        parts = [name for name in PARTS if name not in left_alone]
        with self.torch.no_grad():
            weights = self.merged(run, adapter)
            told = {
                name: self.outputs(self.begins[name] + np.arange(self.sizes[name]), run, adapter, weights)
                .float().cpu().numpy() for name in parts
            }  # fmt: skip
        predictions = {name: told[name].astype("f2") for name in SOURCES if name in told}
        predictions |= {name: told[name][:, 0] for name in ("pairs_held_out", "audit")}
        np.savez_compressed(self.given.out / f"{run.name}.npz", **predictions)
        is_final = run.fold is None and not run.without and not run.settings.passes
        if is_final and not run.likelihood and not run.settings.frozen:
            about = {"seed": run.seed, "data": "Reliable-Eval (MIT), ConvAI 2017 (Apache-2.0), minimal pairs"}
            arrays = _by_module(adapter, self.n_layers)
            save_adapter(self.given.out / f"{run.name}.safetensors", arrays, run.shape, **about)
        unseen = ~run.seen(self.arrays)
        for name in ("pairs_held_out", "audit"):
            right = told[name][0::2, 0] > told[name][1::2, 0]
            kinds = self.arrays[f"{name}.kind"]
            record[name] = {str(k): round(float(right[kinds == k].mean()), 3) for k in np.unique(kinds)}
            record[f"{name}_all"] = round(float(np.mean(list(record[name].values()))), 4)
        record |= right_within_sittings(told["reliable_eval"][:, 0], unseen, self.arrays)
        return record


def share_of_rate(step: int, warm: float, n_steps: int) -> float:
    """Of the learning rate: up over the first `warm` steps, then down as a cosine."""
    return min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / n_steps)))


def _tiers(systems: Any) -> Any:
    """(N,) the tier of each dialogue's bot; -1 where it has none."""
    return np.array([next((i for i, tier in enumerate(TIERS) if s in tier), -1) for s in systems])


def _by_module(adapter: dict[str, Any], n_layers: int) -> dict[str, Any]:
    """The arrays under the names of the base's modules."""
    from plain_llama import KINDS

    arrays = {name: array for name, array in adapter.items() if name.startswith("head")}
    for kind, part in KINDS.items():
        for i in range(n_layers):
            for side in ("down", "up"):
                arrays[f"layers.{i}.{part}.{kind}.{side}"] = adapter[f"{kind}.{side}"][i]
    return arrays


def right_within_sittings(scores: Any, of: Any, arrays: dict[str, Any]) -> dict[str, float]:
    """How often the better rated of two dialogues of a sitting scores higher; by trust, and in one tier."""
    sitting, target, weight = arrays["sitting"], arrays["target"][:, 0], arrays["weight"]
    tier = _tiers(arrays["reliable_eval.system"])
    sums = np.zeros((3, 2))
    for g in np.unique(sitting[of]):
        rows = np.flatnonzero((sitting == g) & of)
        wide = (target[rows][:, None] - target[rows][None, :]) > 0.5
        right = wide & (scores[rows][:, None] > scores[rows][None, :])
        alike = (tier[rows][:, None] == tier[rows][None, :]) & (tier[rows] >= 0)[:, None]
        for i, counts in enumerate((1.0, weight[rows][:, None], weight[rows][:, None] * alike)):
            sums[i] += (right * counts).sum(), (wide * counts).sum()
    names = ("within_sittings", "by_trust", "by_trust_in_tier")
    return {name: round(float(a / b), 4) if b else math.nan for name, (a, b) in zip(names, sums, strict=True)}


def train(given: argparse.Namespace) -> None:
    """Take one run after the other that nobody has taken, until the time is up."""
    began, longest = time.time(), 0.0
    trainer = Trainer(given)
    torch = trainer.torch
    on_gpu = trainer.device.type == "cuda"
    machine = torch.cuda.get_device_name() if on_gpu else "CPU"
    for run in plan(given.plan, given.shape, sorted(set(trainer.arrays["reliable_eval.system"]))):
        if time.time() - began + 1.15 * longest > 60 * given.minutes:
            break
        taken = given.out / f"{run.name}.taken"
        try:
            os.close(os.open(taken, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        at = time.time()
        try:
            record = trainer.work(run)
        except BaseException:
            taken.unlink()
            raise
        longest = max(longest, time.time() - at)
        written = {
            "run": run.name,
            "command": "python experiments/comparator/language_model.py PREPARED.npz "
            f"{given.plan} --shape {given.shape} --base BASE --out OUT --processes {given.processes}"
            + (" --begin PAIRS" if given.begin else ""),
            "machine": f"{machine}, torch {torch.__version__}, {given.processes} runs at a time",
            "adapter": asdict(run.shape) | {"likelihood": run.likelihood},
            "settings": asdict(run.settings),
            "data": trainer.sizes,
            "seed": run.seed,
            **record,
            "whole_seconds": round(time.time() - at, 1),
            "gigabytes": round(torch.cuda.max_memory_reserved() / 1e9, 1) if on_gpu else None,
        }
        (given.out / f"{run.name}.json").write_text(json.dumps(written, indent=1) + "\n")
        short = ("run", "within_sittings", "by_trust", "by_trust_in_tier", "audit_all", "whole_seconds")
        print(json.dumps({name: written[name] for name in short}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prepared", type=Path)
    parser.add_argument("plan")
    parser.add_argument(
        "--base", type=Path, help="a folder of transformers; else what `palaver get smollm2` got"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", choices=SHAPES, default=next(iter(SHAPES)))
    parser.add_argument("--begin", type=Path, help="the adapter that the plan `pairs` wrote")
    parser.add_argument("--processes", type=int, default=1, help="runs at a time")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help="torch.compile for the layers")
    parser.add_argument("--minutes", type=float, default=9.0, help="no run begins that would end later")
    parser.add_argument("--steps", type=int, help="steps of a run, small ones, for a trial")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if not given.worker:
        for taken in given.out.glob("*.taken"):
            if not taken.with_suffix(".json").is_file():
                taken.unlink()  # by a call that was cut off
    n_others = 0 if given.worker else given.processes - 1
    others = [subprocess.Popen([sys.executable, *sys.argv, "--worker"]) for _ in range(n_others)]
    train(given)
    for process in others:
        process.wait()


if __name__ == "__main__":
    main()
