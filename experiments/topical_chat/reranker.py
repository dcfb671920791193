"""Can a language model choose better among the sentences that `trained-encoder` likes best? Hardly.

    python experiments/topical_chat/reranker.py prepare --data DATA --out carry/reranker.npz
    python experiments/topical_chat/reranker.py run carry/reranker.npz --base BASE --out OUT        (on a GPU)
    python experiments/topical_chat/reranker.py report OUT --from carry/reranker.npz --out results.json

`prepare` scores all sentences of every turn by `trained-encoder` and keeps the best of them as tokens. The
turns of the training part are scored by networks that were fitted to other conversations. `run` needs torch,
transformers and numpy: the lower layers of SmolLM2 with an adapter read the last turns and one sentence at a
time. A softmax over the sentences of a turn is fitted to the oracle's choice; the score of `trained-encoder`
is added, so that the adapter learns what that one does not see. `report` compares first choices, with
intervals over conversations. valid_freq was looked at after each epoch; the test sets were measured once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "comparator"), str(HERE.parents[1] / "src")]

COMMANDS = [line.strip().partition("  ")[0] for line in (__doc__ or "").splitlines()[2:5]]
SPLITS = ("train", "valid_freq", "valid_rare", "test_freq", "test_rare")
N_BEST = 24
"""Sentences of a turn that are kept."""
TURNS = 4
"""Of the history, the last ones."""
HISTORY_TOKENS, SENTENCE_TOKENS = 96, 64
END = 2
"""SmolLM2's end of a turn; the score is read there."""


# Here -------------------------------------------------------------------------------------------------------


def prepare(given: argparse.Namespace) -> None:
    """The best sentences of every turn by `trained-encoder`, and all texts as tokens."""
    import selector as training  # type: ignore[import-not-found]

    from palaver.comparator.language_model import open_base
    from palaver.corpora.catalogue import read_corpus
    from palaver.knowledge.candidates import reading_sentences
    from palaver.knowledge.features import FeatureTable
    from palaver.knowledge.ranker import shipped_ranker
    from palaver.knowledge.selector import OracleSelector
    from palaver.knowledge.trained_encoder import ALL_FEATURES, WEIGHTS
    from palaver.text.tfidf import Tfidf

    corpus: dict[str, list[Any]] = {}
    for dialogue in read_corpus("topical-chat", root=given.data):
        corpus.setdefault(str(dialogue.labels["split"]), []).append(dialogue)
    sentences = reading_sentences(dialogue for part in corpus.values() for dialogue in part)
    oracle = OracleSelector(sentences)
    ranker = shipped_ranker(WEIGHTS, len(ALL_FEATURES))
    vectors = training.open_vectors(given.vectors, "cpu")
    maker = FeatureTable(sentences, ranker.priors)
    texts: dict[str, int] = {}
    arrays: dict[str, Any] = {}
    for split in SPLITS:
        dialogues = training.choices_of(corpus[split][: given.first], oracle)
        if split == "train":
            turns = training.Turns(dialogues, Tfidf(sentences))
            scored = _scored_by_others(training, dialogues, turns, maker, vectors, ranker)
        else:
            make_features = training.beside_meanings(maker.of_groups, vectors)
            tables = make_features([group for choices in dialogues for group in choices.groups])
            scored = [ranker.scores(own) for of_group in tables for own in of_group]
        rows: list[Any] = []
        for number, choices in enumerate(dialogues):
            for group, targets in zip(choices.groups, choices.targets, strict=True):
                for query, target in zip(group.queries, targets, strict=True):
                    scores = scored[len(rows)]
                    rows.append(_one_turn(query, group, int(target), scores, texts, number))
        names = ("dialogue", "history", "best", "score", "target", "n")
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            kind = np.float16 if name == "score" else np.int32
            arrays[f"{split}.{name}"] = np.array(column, kind)
        kept = (arrays[f"{split}.target"] >= 0).mean()
        first = (arrays[f"{split}.target"] == 0).mean()
        print(f"{split}: {len(rows):,} turns, first {first:.4f}, among {N_BEST} {kept:.4f}", flush=True)
    _, tokenizer = open_base(given.base, 1)
    cut = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    arrays["tokens"] = np.concatenate([np.array(own, np.uint16) for own in cut])
    arrays["bounds"] = np.cumsum([0, *map(len, cut)])
    np.savez_compressed(given.out, **arrays)
    print(f"{given.out}: {len(texts):,} texts, {given.out.stat().st_size / 1e6:.1f} MB")


def _scored_by_others(
    training: Any, dialogues: Sequence[Any], turns: Any, maker: Any, vectors: Any, ranker: Any
) -> list[Any]:
    """Scores of each turn's sentences by a network that was fitted to the other conversations."""
    import torch

    folds = training.features_of_folds(dialogues, turns, maker, vectors)
    parts = [training.make_examples([fold]) for fold in folds]
    every = np.concatenate([part.features for part in parts])
    ranker = replace(ranker, mean=every.mean(axis=0), deviation=every.std(axis=0) + 1e-6)
    for part in parts:
        part.features = ranker.normalise(part.features)
    of_dialogue: dict[int, list[Any]] = {}
    for fold, part in enumerate(parts):
        others = [own for i, own in enumerate(parts) if i != fold]
        sizes = np.concatenate([own.sizes for own in others])
        joined = training.Examples(
            np.concatenate([own.features for own in others]),
            np.concatenate([[0], np.cumsum(sizes)[:-1]]),
            sizes,
            np.concatenate([own.targets for own in others]),
        )
        network = training.fit_network(joined, training.OF_MEANING.hidden, fold, "cpu")
        with torch.inference_mode():
            numbers = network(torch.from_numpy(part.features))[:, 0].numpy()
        of_turns = iter(np.split(numbers, part.begins[1:]))
        for place, choices in enumerate(folds[fold][0]):
            own = [next(of_turns) for _ in choices.rows]
            of_dialogue[place * training.FOLDS + fold] = own
    return [scores for number in range(len(dialogues)) for scores in of_dialogue[number]]


def _one_turn(
    query: Any, group: Any, target: int, scores: Any, texts: dict[str, int], number: int
) -> tuple[Any, ...]:
    """Dialogue, the history's last turns, the best sentences, their scores, the oracle's place, how many."""
    best = np.argsort(-scores, kind="stable")[:N_BEST]
    place = int(np.flatnonzero(best == target)[0]) if target in best else -1
    history = [texts.setdefault(f"{text.strip()}\n", len(texts)) for text in query.history[-TURNS:]]
    own = [texts.setdefault(group.candidates[i].strip(), len(texts)) for i in best]
    extra = texts.setdefault(group.candidates[target].strip(), len(texts)) if place < 0 else -1
    n = len(own)
    padded = np.full(N_BEST + 1, -1)
    padded[:n] = own
    padded[-1] = extra  # the oracle's, where it is not among the best
    numbers = np.full(N_BEST + 1, -60.0)
    numbers[:n] = scores[best]
    numbers[-1] = scores[target]
    return number, np.pad(history, (TURNS - len(history), 0), constant_values=-1), padded, numbers, place, n


# There ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """How the adapter is learnt."""

    layers: int = 16
    rank: int = 8
    alpha: float = 16.0
    epochs: int = 2
    turns: int = 64
    """Of a step."""
    sentences: int = 8
    """Of a turn in training: the oracle's and others of the best."""
    learning_rate: float = 5e-4
    head_rate: float = 1e-3
    warm_up: float = 0.05
    dropout: float = 0.1
    budget: int = 65536
    """Tokens of a pass, padding counted."""


class Data:
    """What was prepared; a row of tokens is the last turns, a sentence and the end."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self.arrays = {name: file[name] for name in file.files}
        tokens, bounds = self.arrays["tokens"].astype(np.int64), self.arrays["bounds"]
        self.texts = [tokens[begin:end] for begin, end in itertools.pairwise(bounds)]

    def history(self, split: str, turn: int) -> Any:
        """The last tokens of the last turns."""
        own = [self.texts[i] for i in self.arrays[f"{split}.history"][turn] if i >= 0]
        return np.concatenate(own)[-HISTORY_TOKENS:] if own else np.zeros(0, np.int64)

    def row(self, history: Any, sentence: int) -> Any:
        return np.concatenate([history, self.texts[sentence][:SENTENCE_TOKENS], [END]])

    def draw(self, turn: int, n: int, rng: Any) -> tuple[list[int], list[float]]:
        """`n` sentences of a turn of the training part, the oracle's first, and their scores."""
        best, score, target = (self.arrays[f"train.{name}"][turn] for name in ("best", "score", "target"))
        own = int(target) if target >= 0 else N_BEST
        others = [i for i in range(int(self.arrays["train.n"][turn])) if i != own]
        places = [own, *rng.choice(others, n - 1, replace=len(others) < n - 1)]
        return [int(best[i]) for i in places], [float(score[i]) for i in places]


class Trainer:
    """Fits the adapter, and scores sentences with it."""

    def __init__(self, given: argparse.Namespace, settings: Settings) -> None:
        import torch
        from plain_llama import PlainLlama  # type: ignore[import-not-found]

        from palaver.comparator.language_model import open_base

        self.torch, self.given, self.settings = torch, given, settings
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.data = Data(given.prepared)
        base, _ = open_base(given.base, settings.layers)
        half = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.network = PlainLlama(base, self.device, half)
        torch.manual_seed(given.seed)
        self.adapter = self.network.fresh_adapter(settings.rank)
        self.weight = torch.zeros(2 * self.network.width, device=self.device).requires_grad_()
        self.share = torch.ones((), device=self.device).requires_grad_()  # of the score of trained-encoder
        self.is_training = False

    def merged(self) -> dict[str, Any]:
        """The base's weights with the adapter's changes."""
        return self.network.merge(self.adapter, self.settings.alpha / self.settings.rank)

    def scores(self, rows: list[Any], begins: list[int], weights: dict[str, Any]) -> Any:
        """(n,) what the adapter says of each row, whose sentence begins at `begins`."""
        from palaver.comparator.language_model import cut_by_tokens

        torch = self.torch
        lengths, first = np.array([len(row) for row in rows]), np.array(begins)
        pieces = cut_by_tokens(lengths, self.settings.budget)
        parts = []
        for piece in pieces:
            tokens = np.zeros((len(piece), int(lengths[piece].max())), np.int64)
            for place, i in enumerate(piece):
                tokens[place, : lengths[i]] = rows[i]
            tokens, start, end = (
                torch.from_numpy(a).to(self.device) for a in (tokens, first[piece], lengths[piece])
            )
            hidden = self.network.states(tokens, weights).float()  # (B, T, C)
            at = torch.arange(tokens.shape[1], device=self.device)[None]
            of_sentence = ((at >= start[:, None]) & (at < end[:, None] - 1)).float()  # (B, T)
            mean = torch.einsum("btc,bt->bc", hidden, of_sentence)
            mean = mean / of_sentence.sum(1, keepdim=True).clamp(min=1)
            last = hidden[torch.arange(len(piece), device=self.device), end - 1]
            pooled = torch.cat([mean, last], 1)  # (B, 2C)
            pooled = torch.nn.functional.dropout(pooled, self.settings.dropout, self.is_training)
            parts.append(pooled @ self.weight)
        back = np.argsort(np.concatenate(pieces))
        return torch.cat(parts)[torch.from_numpy(back).to(self.device)]

    def loss(self, turns: Any, rng: Any) -> Any:
        """Cross-entropy of the oracle's sentence among those drawn for each turn."""
        torch = self.torch
        rows, begins, known = [], [], []
        for turn in turns:
            history = self.data.history("train", turn)
            sentences, scores = self.data.draw(turn, self.settings.sentences, rng)
            rows += [self.data.row(history, i) for i in sentences]
            begins += [len(history)] * len(sentences)
            known.append(scores)
        told = self.scores(rows, begins, self.merged()).view(len(turns), -1)
        logits = told + self.share * torch.tensor(known, dtype=torch.float32, device=self.device)
        oracle = torch.zeros(len(turns), dtype=torch.long, device=self.device)
        return torch.nn.functional.cross_entropy(logits, oracle)

    def fit(self) -> list[dict[str, Any]]:
        """Learn from the training part; a record for each epoch."""
        torch, s, rng = self.torch, self.settings, np.random.default_rng(self.given.seed)
        parameters = [*self.adapter.values(), self.weight, self.share]
        optimiser = torch.optim.AdamW(
            [
                {"params": parameters[:-2], "lr": s.learning_rate},
                {"params": parameters[-2:], "lr": s.head_rate},
            ],
            weight_decay=0.01,
        )
        rates = [group["lr"] for group in optimiser.param_groups]
        n = len(self.data.arrays["train.target"])
        size = np.array([len(self.data.history("train", turn)) for turn in range(n)])
        n_steps = min(s.epochs * -(-n // s.turns), self.given.steps or 10**9)
        warm = max(1, int(s.warm_up * n_steps))
        step, epochs, began = 0, [], time.time()
        for epoch in range(1, s.epochs + 1):
            self.is_training = True
            order = np.argsort(size + rng.normal(0, 12, n))  # turns of like length come together
            chunks = [order[i : i + s.turns] for i in range(0, n, s.turns)]
            losses = []
            for i in rng.permutation(len(chunks))[: n_steps - step]:
                loss = self.loss(chunks[i], rng)
                now = min((step + 1) / warm, 0.5 * (1 + math.cos(math.pi * step / n_steps)))
                for group, rate in zip(optimiser.param_groups, rates, strict=True):
                    group["lr"] = rate * now
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                step += 1
                losses.append(loss.detach())
            self.is_training = False
            record = {"epoch": epoch, "loss": float(torch.stack(losses).mean()) if losses else math.nan}
            record |= {"valid_freq": self.first_choices("valid_freq", self.measure("valid_freq"))}
            epochs.append(record | {"seconds": round(time.time() - began, 1)})
            print(json.dumps(epochs[-1]), flush=True)
        return epochs

    def measure(self, split: str) -> Any:
        """(turns, N_BEST) what the adapter says of the best sentences of each turn."""
        arrays = self.data.arrays
        n = min(len(arrays[f"{split}.target"]), self.given.limit or 10**9)
        told = np.full((n, N_BEST), -np.inf, np.float32)
        with self.torch.inference_mode():
            weights = self.merged()
            for begin in range(0, n, 512):
                rows, begins, places = [], [], []
                for turn in range(begin, min(n, begin + 512)):
                    history = self.data.history(split, turn)
                    for k in range(arrays[f"{split}.n"][turn]):
                        rows.append(self.data.row(history, arrays[f"{split}.best"][turn, k]))
                        begins.append(len(history))
                        places.append((turn, k))
                at = np.array(places)
                told[at[:, 0], at[:, 1]] = self.scores(rows, begins, weights).float().cpu().numpy()
        return told

    def first_choices(self, split: str, told: Any) -> float:
        """How often the first choice of both together is the oracle's."""
        known = self.data.arrays[f"{split}.score"][: len(told), :N_BEST].astype(np.float32)
        chosen = (told + self.share.item() * known).argmax(1)
        return float((chosen == self.data.arrays[f"{split}.target"][: len(told)]).mean())


def run(given: argparse.Namespace) -> None:
    """Fit, and keep what the adapter says of all sentences."""
    trainer = Trainer(given, Settings(**json.loads(given.settings)))
    torch = trainer.torch
    began = time.time()
    epochs = trainer.fit()
    given.out.mkdir(parents=True, exist_ok=True)
    told = {split: trainer.measure(split) for split in SPLITS[1:]}
    np.savez_compressed(
        given.out / "reranker.npz", **{name: table.astype("f2") for name, table in told.items()}
    )
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    about = {
        "machine": f"{machine}, torch {torch.__version__}",
        "seed": given.seed,
        "settings": asdict(trainer.settings),
        "epochs": epochs,
        "share": trainer.share.item(),
        "seconds": round(time.time() - began, 1),
    }
    (given.out / "reranker.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


# Here again -------------------------------------------------------------------------------------------------


def report(given: argparse.Namespace) -> None:
    """First choices with and without the language model, and their difference, over conversations."""
    from palaver.statistics.bootstrap import percentile_interval, resample_sums

    about = json.loads((given.runs / "reranker.json").read_text(encoding="utf-8"))
    arrays, told = np.load(given.prepared), np.load(given.runs / "reranker.npz")
    splits = {}
    for split in told.files:
        known = arrays[f"{split}.score"][:, :N_BEST].astype(np.float32)
        both = told[split].astype(np.float32) + about["share"] * known
        target, dialogue = arrays[f"{split}.target"], arrays[f"{split}.dialogue"]
        right = [(scores.argmax(1) == target).astype(float) for scores in (known, both)]
        columns = [*right, right[1] - right[0], np.ones(len(target))]
        table = np.stack([np.bincount(dialogue, column) for column in columns], 1)  # (dialogues, 4)
        table = table[table[:, -1] > 0]
        replicates = resample_sums(table, 1000, np.random.default_rng(0))
        row: dict[str, Any] = {"n_turns": len(target), "n_dialogues": len(table)}
        row["among_best"] = float((target >= 0).mean())
        for i, name in enumerate(("trained-encoder", "with the language model", "difference")):
            interval = percentile_interval(replicates[:, i] / replicates[:, -1], 0.95)
            value = float(table[:, i].sum() / table[:, -1].sum())
            row[name] = {"value": value, "low": interval.low, "high": interval.high}
        splits[split] = row
        print(split, {k: round(v["value"], 4) if isinstance(v, dict) else v for k, v in row.items()})
    keys = ("machine", "seed", "settings", "epochs", "share", "seconds")
    content = {"commands": COMMANDS, **{key: about[key] for key in keys}, "n_best": N_BEST, "splits": splits}
    given.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("prepare")
    verb.add_argument("--data", type=Path, required=True)
    verb.add_argument("--vectors", type=Path, help="a folder for the encoder's vectors")
    verb.add_argument(
        "--base", type=Path, help="a folder of transformers; else what `palaver get smollm2` got"
    )
    verb.add_argument("--first", type=int, help="dialogues of each part, for a trial")
    verb.add_argument("--out", type=Path, required=True)
    verb.set_defaults(work=prepare)
    verb = verbs.add_parser("run")
    verb.add_argument("prepared", type=Path)
    verb.add_argument("--base", type=Path)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--settings", default="{}", help='other settings as JSON: {"layers": 8}')
    verb.add_argument("--steps", type=int, default=0, help="for a trial")
    verb.add_argument("--limit", type=int, default=0, help="turns that are measured, for a trial")
    verb.set_defaults(work=run)
    verb = verbs.add_parser("report")
    verb.add_argument("runs", type=Path)
    verb.add_argument("--from", type=Path, required=True, dest="prepared")
    verb.add_argument("--out", type=Path, required=True)
    verb.set_defaults(work=report)
    given = parser.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
