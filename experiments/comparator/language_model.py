"""A language model that judges what is said in a dialogue: SmolLM2 with an adapter, learnt from ratings.

    python experiments/comparator/language_model.py prepare --data DATA --out prepared.npz
    python experiments/comparator/language_model.py train --prepared prepared.npz --base BASE --out OUT
    python experiments/comparator/language_model.py train ... --leave-out each

`prepare` cuts the ratings of Reliable-Eval and ConvAI 2017, the development dialogues, those of ConvAI2 (from
which nothing is learnt) and minimal pairs into tokens. It weighs raters by agreement with a linear model
of surface features that has not seen them. `train` needs torch and transformers only. It learns the ratings,
centred within a sitting, and their seven criteria; which of two dialogues of one sitting is better; and which
side of a minimal pair. First every quarter of the raters is held out once (scores to choose weights on), then
all are learnt from with each seed. With --leave-out each system is left out once instead. It writes
predictions.npz, results.json and one adapter a seed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from palaver.comparator.language_model import (  # noqa: E402
    AdapterSettings,
    TokenRows,
    cut_by_tokens,
    open_base,
    pooled_states,
    save_adapter,
    target_modules,
    tokenise,
)

CRITERIA = ("robotic", "interesting", "fun", "consistent", "fluent", "repetitive", "topic")
FOLDS = 4
SOURCES = ("reliable_eval", "convai2017", "development", "convai2")
"""The first two are learnt from."""
PARTS = (*SOURCES, "pairs", "pairs_held_out")


@dataclass(frozen=True)
class TrainingSettings:
    """How the adapter is learnt."""

    epochs: int = 3
    sittings: int = 8
    """Of a step; with them come `pairs` minimal pairs."""
    pairs: int = 64
    learning_rate: float = 4e-4
    head_rate: float = 1e-3
    criteria_share: float = 0.2
    sitting_share: float = 0.5
    pair_share: float = 0.5
    other_share: float = 0.25
    """The weight of a rating of ConvAI 2017 beside one of Reliable-Eval."""
    warm_up: float = 0.1
    dropout: float = 0.1
    """Of what goes into the head."""
    budget: int = 16384
    """Tokens of one pass, padding counted."""


# --- prepare ------------------------------------------------------------------------------------------------


def prepare(given: argparse.Namespace) -> None:
    """Write everything that training needs as arrays."""
    import minimal_pairs

    from palaver.comparator.method import draw_folds, held_out_together
    from palaver.comparator.rater_effects import effects, sittings
    from palaver.comparator.reading import read_rated
    from palaver.text.normalisation import normalise

    _, tokenizer = open_base(given.base, 1)
    settings = AdapterSettings()
    folder = given.data / "rated"
    files = {
        "reliable_eval": "reliable_eval.train", "convai2017": "convai2017_humanbot",
        "development": "reliable_eval.dev_dialogues", "convai2": "convai2_rated",
    }  # fmt: skip
    arrays: dict[str, Any] = {}
    for source in SOURCES:
        rated = read_rated(folder / f"{files[source]}.jsonl.gz")
        rows = tokenise(
            [[(t.speaker == "user", normalise(t.text)) for t in d.turns] for d in rated.dialogues],
            tokenizer,
            settings.max_tokens,
        )
        arrays |= _named(source, rows)
        arrays[f"{source}.ids"] = np.array(rated.ids)
        arrays[f"{source}.system"] = np.array([row.system or "" for row in rated.rows])
        if source == "reliable_eval":
            sitting = sittings(rated.codes("rater"), rated.codes("group"))
            own = [rated.values, *(_scores(rated, name) for name in CRITERIA)]
            arrays["target"] = np.stack([effects(values, sitting).target for values in own], 1).astype("f4")
            arrays["sitting"] = sitting
            arrays["fold"] = draw_folds(held_out_together(rated)[0], FOLDS, 0)
            arrays["weight"] = _weigh_raters(rated, sitting).astype("f4")
        if source == "convai2017":
            values = rated.values
            arrays["other_target"] = ((values - values.mean()) / values.std()).astype("f4")
        print(f"{source}: {len(rows)} dialogues, {rows.lengths.mean():.0f} tokens each", flush=True)
    beginnings = minimal_pairs.read_beginnings(given.data)
    inferences = minimal_pairs.read_inferences(given.data)
    cut = len(beginnings) // 10, len(inferences) // 10  # what comes before is not learnt from
    made = {
        "pairs": [
            *minimal_pairs.make_pairs(beginnings[cut[0] :], 11000, seed=1),
            *minimal_pairs.inference_pairs(inferences[cut[1] :], 2000, seed=1),
        ],
        "pairs_held_out": [
            *minimal_pairs.make_pairs(beginnings[: cut[0]], 880, seed=2),
            *minimal_pairs.inference_pairs(inferences[: cut[1]], 80, seed=2),
        ],
    }
    for name, pairs in made.items():
        turns = [
            [(who == "user", normalise(text)) for who, text in side]
            for p in pairs
            for side in (p.good, p.bad)
        ]
        arrays |= _named(name, tokenise(turns, tokenizer, settings.max_tokens))
        arrays[f"{name}.kind"] = np.array([pair.kind for pair in pairs])
        print(
            f"{name}: {len(pairs)}, {np.diff(arrays[f'{name}.bounds']).mean():.0f} tokens a side", flush=True
        )
    np.savez_compressed(given.out, **arrays)
    print(f"{given.out}: {given.out.stat().st_size / 1e6:.1f} MB")


def _named(name: str, rows: TokenRows) -> dict[str, Any]:
    return {f"{name}.{part}": getattr(rows, part) for part in ("tokens", "roles", "bounds")}


def _weigh_raters(rated: Any, sitting: Any) -> Any:
    """(N,) what each rating counts, by a model of surface features that has not seen its rater."""
    from palaver.comparator.method import MethodSettings, draw_folds, held_out_scores, held_out_together
    from palaver.comparator.rater_effects import effects, reliability
    from palaver.comparator.representation import represent

    x = represent(rated.dialogues, lambda texts: np.ones((len(texts), 1)))
    group, rater = held_out_together(rated)[0], rated.codes("rater")
    fold, target = draw_folds(group, 5, 0), effects(rated.values, sitting).target
    weights = np.ones(len(rated))
    for _ in range(2):
        held = held_out_scores(x, target, weights, group, fold, MethodSettings(heads=1, trees=0))
        weights = reliability(rated.values, held, rater, sitting).weights(rater)
    return weights


def _scores(rated: Any, criterion: str) -> Any:
    return np.array([float(json.loads(str(row.dialogue.labels["scores"]))[criterion]) for row in rated.rows])


# --- train --------------------------------------------------------------------------------------------------


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
        self.shape = AdapterSettings(layers=given.layers, rank=given.rank, alpha=2.0 * given.rank)
        self.settings = TrainingSettings(epochs=given.epochs, other_share=given.other_share)
        if given.limit:
            self.settings = replace(self.settings, sittings=2, pairs=4)
        self.half = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.base, _ = open_base(given.base, self.shape.layers)
        self.base.to(self.device, self.half).requires_grad_(False)
        self.linear = target_modules(self.base)
        torch.backends.cuda.matmul.allow_tf32 = True

    def _all_rows(self) -> TokenRows:
        """The dialogues of all parts, one part after the other."""
        tokens, roles = (
            np.concatenate([self.arrays[f"{name}.{kind}"] for name in PARTS]) for kind in ("tokens", "roles")
        )
        lengths = [np.diff(self.arrays[f"{name}.bounds"]) for name in PARTS]
        return TokenRows(tokens, roles, np.cumsum([0, *np.concatenate(lengths)]))

    def begin(self, seed: int) -> dict[str, Any]:
        """A fresh adapter, hooked into the base."""
        torch = self.torch
        torch.manual_seed(seed)
        for hook in getattr(self, "hooks", ()):
            hook.remove()
        self.hooks = []
        arrays: dict[str, Any] = {}
        scale = self.shape.alpha / self.shape.rank
        for name, module in self.linear.items():
            n_out, n_in = module.weight.shape
            down = torch.randn(self.shape.rank, n_in, device=self.device) / math.sqrt(n_in)
            up = torch.zeros(n_out, self.shape.rank, device=self.device)
            arrays[f"{name}.down"], arrays[f"{name}.up"] = down.requires_grad_(), up.requires_grad_()
            self.hooks.append(module.register_forward_hook(self._change(down, up, scale)))
        width = self.base.config.hidden_size
        arrays["head.weight"] = torch.zeros(
            self.shape.outputs, 2 * width, device=self.device
        ).requires_grad_()
        arrays["head.bias"] = torch.zeros(self.shape.outputs, device=self.device).requires_grad_()
        return arrays

    def _change(self, down: Any, up: Any, scale: float) -> Any:
        linear = self.torch.nn.functional.linear

        def add(module: Any, inputs: Any, output: Any) -> Any:
            x = inputs[0]
            return output + linear(linear(x, (scale * down).to(x.dtype)), up.to(x.dtype))

        return add

    def outputs(self, places: Any, arrays: dict[str, Any]) -> Any:
        """(n, outputs) what the model says of the dialogues in these places, in passes of like length."""
        torch, rows = self.torch, self.rows
        parts, order = [], []
        for piece in cut_by_tokens(rows.lengths[places], self.settings.budget):
            tokens, roles = (torch.from_numpy(a).to(self.device) for a in rows.padded(places[piece]))
            hidden = self.base(input_ids=tokens, use_cache=False).last_hidden_state.float()
            states = pooled_states(hidden, roles)
            states = torch.nn.functional.dropout(states, self.settings.dropout, self.training)
            parts.append(states @ arrays["head.weight"].T + arrays["head.bias"])
            order.append(piece)
        back = np.argsort(np.concatenate(order))
        return torch.cat(parts)[torch.from_numpy(back).to(self.device)]

    def fit(self, seen: Any, seed: int) -> tuple[dict[str, Any], dict[str, float]]:
        """Learn from the rows `seen` of Reliable-Eval, from ConvAI 2017 and from the minimal pairs."""
        torch, s = self.torch, self.settings
        rng = np.random.default_rng(seed)
        arrays = self.begin(seed)
        sitting = self.arrays["sitting"]
        groups = [np.flatnonzero((sitting == g) & seen) for g in np.unique(sitting[seen])]
        target = torch.from_numpy(self.arrays["target"]).to(self.device)  # (N, 8)
        weight = torch.from_numpy(self.arrays["weight"]).to(self.device)
        other = torch.from_numpy(self.arrays["other_target"]).to(self.device)
        n_pairs = self.sizes["pairs"] // 2
        per_epoch = -(-len(groups) // s.sittings)
        n_steps = min(s.epochs * per_epoch, self.given.limit or 10**9)
        heads = [array for name, array in arrays.items() if name.startswith("head")]
        rest = [array for name, array in arrays.items() if not name.startswith("head")]
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
            sides = self.begins["pairs"] + np.stack([2 * drawn, 2 * drawn + 1], 1).ravel()
            every = np.concatenate([places, sides, self.begins["convai2017"] + others])
            said, of_sides, of_others = self.outputs(every, arrays).split(
                [len(places), len(sides), len(others)]
            )
            rows = torch.from_numpy(places).to(self.device)
            errors = torch.nn.functional.smooth_l1_loss(said, target[rows], reduction="none")
            rating_loss = (errors @ shares * weight[rows]).mean()
            sitting_loss = self._within(said[:, 0], target[rows, 0], weight[rows], sitting[places])
            difference = of_sides[0::2, 0] - of_sides[1::2, 0]
            pair_loss = torch.nn.functional.softplus(-2 * difference).mean()
            loss = rating_loss + s.sitting_share * sitting_loss + s.pair_share * pair_loss
            if s.other_share:
                goal = other[torch.from_numpy(others).to(self.device)]
                loss = loss + s.other_share * torch.nn.functional.smooth_l1_loss(of_others[:, 0], goal)
            done = step / n_steps
            now = min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * done)))
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * now
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([*rest, *heads], 1.0)
            optimiser.step()
            totals += torch.stack([rating_loss, sitting_loss, pair_loss]).detach()
        mean = (totals / max(1, n_steps)).cpu().numpy().astype(float)
        names = ("rating", "sitting", "pair")
        self.training = False
        return arrays, dict(zip(names, mean.round(4).tolist(), strict=True)) | {
            "steps": n_steps, "seconds": round(time.time() - began, 1)
        }  # fmt: skip

    def _within(self, said: Any, target: Any, weight: Any, sitting: Any) -> Any:
        """Logistic loss over all pairs of one sitting, heavier where the ratings lie further apart."""
        torch = self.torch
        codes = torch.from_numpy(sitting).to(self.device)
        gap = target[:, None] - target[None, :]  # (n, n)
        wide = (codes[:, None] == codes[None, :]) & (gap > 0.3)
        share = wide * gap.clamp(max=2.0) * weight[:, None]
        loss = torch.nn.functional.softplus(-1.5 * (said[:, None] - said[None, :]))
        return (share * loss).sum() / share.sum().clamp(min=1e-6)

    def predict(self, name: str, places: Any, arrays: dict[str, Any]) -> Any:
        """(n,) the quality of the dialogues in these places."""
        if not len(places):
            return np.zeros(0, "f4")
        with self.torch.no_grad():
            return self.outputs(self.begins[name] + places, arrays)[:, 0].float().cpu().numpy()


def train(given: argparse.Namespace) -> None:
    """All runs, each written down when it is done."""
    began = time.time()
    trainer = Trainer(given)
    torch = trainer.torch
    given.out.mkdir(parents=True, exist_ok=True)
    n = trainer.sizes
    system = trainer.arrays["reliable_eval.system"]
    everything = np.ones(n["reliable_eval"], bool)
    runs: list[tuple[str, Any, int]] = []
    if given.leave_out:
        names = sorted(set(system)) if given.leave_out == ["each"] else given.leave_out
        runs = [(f"without {name}", system != name, 0) for name in names]
    else:
        folds = [] if given.no_folds else range(FOLDS)
        runs = [(f"fold {k}", trainer.arrays["fold"] != k, 0) for k in folds]
        runs += [(f"seed {seed}", everything, seed) for seed in given.seeds]
    machine = torch.cuda.get_device_name() if trainer.device.type == "cuda" else "CPU"
    results: dict[str, Any] = {
        "command": "python experiments/comparator/language_model.py " + " ".join(sys.argv[1:]),
        "machine": f"{machine}, torch {torch.__version__}",
        "settings": asdict(trainer.settings),
        "adapter": asdict(trainer.shape),
        "data": n,
        "runs": [],
    }
    held = np.full(n["reliable_eval"], np.nan, "f4")
    held_development = np.full(n["development"], np.nan, "f4")
    predictions: dict[str, Any] = {}
    longest = 0.0
    for name, seen, seed in runs:
        if time.time() - began + 1.15 * longest > 60 * given.minutes:
            results["runs"].append({"run": name, "not_run": "no time was left"})
            continue
        at = time.time()
        arrays, record = trainer.fit(seen, seed)
        if name.startswith("seed"):
            for source in SOURCES:
                predictions[f"{source}.{seed}"] = trainer.predict(source, np.arange(n[source]), arrays)
            about = {"seed": seed, "data": "Reliable-Eval (MIT), ConvAI 2017 (Apache-2.0), minimal pairs"}
            save_adapter(given.out / f"adapter-{seed}.safetensors", arrays, trainer.shape, **about)
        else:
            unseen = np.flatnonzero(~seen)
            held[unseen] = trainer.predict("reliable_eval", unseen, arrays)
            if given.leave_out:
                left = name.removeprefix("without ")
                rows = np.flatnonzero(trainer.arrays["development.system"] == left)
                held_development[rows] = trainer.predict("development", rows, arrays)
        sides = trainer.predict("pairs_held_out", np.arange(n["pairs_held_out"]), arrays)
        right = sides[0::2] > sides[1::2]
        kinds = trainer.arrays["pairs_held_out.kind"]
        record["pairs_held_out"] = {
            str(k): round(float(right[kinds == k].mean()), 3) for k in np.unique(kinds)
        }
        record["within_sittings"] = _pair_accuracy(
            held if not name.startswith("seed") else predictions[f"reliable_eval.{seed}"], trainer.arrays
        )
        longest = max(longest, time.time() - at)
        results["runs"].append({"run": name, **record, "whole_seconds": round(time.time() - at, 1)})
        print(json.dumps(results["runs"][-1]), flush=True)
        results["seconds"] = round(time.time() - began, 1)
        np.savez_compressed(
            given.out / "predictions.npz", held_out=held, held_out_development=held_development, **predictions
        )
        (given.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")


def _pair_accuracy(scores: Any, arrays: dict[str, Any]) -> float:
    """How often the better rated of two dialogues of a sitting scores higher, of those that have scores."""
    sitting, target = arrays["sitting"], arrays["target"][:, 0]
    right = total = 0.0
    for g in np.unique(sitting):
        rows = np.flatnonzero((sitting == g) & np.isfinite(scores))
        gap = target[rows][:, None] - target[rows][None, :]
        wide = gap > 0.5
        right += float((wide & (scores[rows][:, None] > scores[rows][None, :])).sum())
        total += float(wide.sum())
    return round(right / total, 4) if total else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(required=True)
    about_base = "a folder of transformers; else what `palaver get smollm2` got"
    one = verbs.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--base", type=Path, help=about_base)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=prepare)
    two = verbs.add_parser("train")
    two.add_argument("--prepared", type=Path, required=True)
    two.add_argument("--base", type=Path, help=about_base)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--layers", type=int, default=AdapterSettings.layers)
    two.add_argument("--rank", type=int, default=AdapterSettings.rank)
    two.add_argument("--epochs", type=int, default=TrainingSettings.epochs)
    two.add_argument("--other-share", type=float, default=TrainingSettings.other_share)
    two.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    two.add_argument("--leave-out", nargs="*", metavar="SYSTEM", help="systems, or: each")
    two.add_argument("--no-folds", action="store_true")
    two.add_argument("--minutes", type=float, default=9.0, help="no run begins that would end later")
    two.add_argument("--limit", type=int, help="steps of a run, small ones, for a trial")
    two.set_defaults(run=train)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
