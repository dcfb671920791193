"""Train Sent2Vec, SkipThought and InferSent: the rows "trained here" of docs/results/probes.md.

    python experiments/probes/train.py --data DATA --triplets triplets.jsonl --out runs/probes --minutes 9

DATA holds `dialogue/*.jsonl.gz` and `sentences/` (cad_nli_train.tsv.gz, SICK_full.txt.gz, the GloVe .npz).
Each model becomes a folder of OUT that `palaver probe sent2vec=OUT/sent2vec` reads. `--tiny` shows in a
minute on a CPU that everything runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))
from reading import Pairs, Text, glove_words, read_pairs, read_text, shuffled

from palaver.models.sentence import (
    InferSent,
    InferSentConfig,
    Sent2Vec,
    Sent2VecConfig,
    SkipThought,
    SkipThoughtConfig,
    Words,
)
from palaver.models.sentence.infersent import Inference
from palaver.models.sentence.sentence_model import padded
from palaver.models.sentence.skipthought import Decoders

MODELS = ("sent2vec", "skipthought", "infersent")
SHARE = {"sent2vec": 0.25, "skipthought": 0.6, "infersent": 0.15}
"""Of the time."""


class Clock:
    """How far a training has come, by epochs or by time, whichever is further."""

    def __init__(self, seconds: float, steps: int) -> None:
        self.began, self.seconds, self.steps, self.step = time.monotonic(), seconds, max(steps, 1), 0

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def part(self) -> float:
        return min(1.0, max(self.step / self.steps, self.spent / self.seconds))


def steps_of(
    clock: Clock, n: int, batch: int, optimiser: torch.optim.Optimizer, rate: float, device: str
) -> Iterator[Tensor]:
    """Batches of numbers below n, shuffled anew each epoch, while there is time; sets the learning rate."""
    while clock.part < 1:
        order = torch.randperm(n, device=device)
        for begin in range(0, n, batch):
            if clock.part >= 1:
                return
            for group in optimiser.param_groups:
                warm = min(1.0, (clock.step + 1) / 200)
                group["lr"] = rate * warm * max(1 - clock.part, 0.02)
            yield order[begin : begin + batch]
            clock.step += 1


def autocast(device: str) -> torch.autocast:
    return torch.autocast(device, torch.bfloat16, enabled=device == "cuda")


def train_sent2vec(
    text: Text, settings: argparse.Namespace, seconds: float
) -> tuple[nn.Module, dict[str, Any]]:
    device = settings.device
    words = Words(word for word, n in text.counts.most_common(settings.words) if n >= settings.least)
    rows = text.rows(words, 40)  # (N, T)
    model = Sent2Vec(Sent2VecConfig(size=100, n_bigrams=settings.bigrams), words)
    model.set_bigrams(frequent_bigrams(rows, len(words), settings.bigrams))
    model.to(device)
    counts = torch.bincount(torch.from_numpy(rows.ravel().astype(np.int64)), minlength=len(words)).float()
    counts[:2] = 0
    share = counts / counts.sum()
    keep = (
        (torch.sqrt(1e-4 / share) + 1e-4 / share).clamp(max=1).nan_to_num(0, 0, 0).to(device)
    )  # as word2vec
    noise = torch.sqrt(counts).to(device)
    chances = (share * keep.cpu()) / (share * keep.cpu()).sum()  # of being a target
    start = (chances / (10 * torch.sqrt(counts) / torch.sqrt(counts).sum())).clamp(min=1e-6)
    model.target_bias.data.copy_(torch.log(start.nan_to_num(1e-6)))  # where no context tells anything
    table = torch.from_numpy(rows).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    clock = Clock(seconds, settings.epochs_sent2vec * len(rows) // 1024)
    log = LossLog("sent2vec", clock)
    for at in steps_of(clock, len(rows), 1024, optimiser, settings.rate_sent2vec, device):
        ids = trimmed(table[at])
        chosen = (torch.rand(ids.shape, device=device) < keep[ids]).float()
        negatives = torch.multinomial(noise, 1024, replacement=True)
        loss = model(ids, chosen, negatives)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        log(loss)
    return model, {"epochs": clock.step * 1024 / len(rows), "loss": log.mean, "turns": len(rows)}


def frequent_bigrams(rows: np.ndarray, n_words: int, size: int) -> np.ndarray:
    """(size, 2) most frequent pairs of known words that stand side by side."""
    left, right = rows[:, :-1].astype(np.int64), rows[:, 1:].astype(np.int64)
    keys = (left * n_words + right)[(left > 1) & (right > 1)]
    distinct, counts = np.unique(keys, return_counts=True)
    best = distinct[np.argsort(-counts, kind="stable")[:size]]
    return np.stack([best // n_words, best % n_words], axis=1)


def trimmed(ids: Tensor) -> Tensor:
    """(B, T) as long as the longest row."""
    return ids[:, : int((ids != 0).sum(1).max())].long()


def train_skipthought(
    text: Text, settings: argparse.Namespace, seconds: float
) -> tuple[nn.Module, dict[str, Any]]:
    device = settings.device
    words, vectors = glove_words(settings.glove, text.counts, settings.glove_words)
    model = SkipThought(SkipThoughtConfig(word_size=vectors.shape[1], hidden=settings.hidden), words)
    model.embedding.weight.data.copy_(torch.from_numpy(vectors))
    decoders = Decoders(model.config, min(settings.targets, len(words)))
    seen = torch.tensor([0.0, 0.0, *(text.counts[word] for word in words.known)])[: decoders.n_targets]
    seen = torch.cat([seen, torch.tensor([float(len(text.turns))])]).clamp(min=0.1)
    decoders.output.bias.data.copy_(
        torch.log(seen / seen.sum())
    )  # how frequent words are need not be learned
    model.to(device)
    decoders.to(device)
    table = torch.from_numpy(text.rows(words, 30)).to(device)
    lengths = (table != 0).sum(1)
    middles = torch.from_numpy(text.middles()).to(device)
    kept = torch.randperm(len(middles), device=device)
    held, kept = middles[kept[: min(2048, len(kept) // 20)]], middles[kept[min(2048, len(kept) // 20) :]]
    parameters = [p for p in [*model.parameters(), *decoders.parameters()] if p.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=1e-3)

    def cost(at: Tensor) -> tuple[Tensor, Tensor]:
        ids = trimmed(table[at])
        with autocast(device):
            vector = model.vectors(ids, lengths[at])  # (B, H)
            total, count = torch.zeros((), device=device), torch.zeros((), device=device)
            for which, other in enumerate((at - 1, at + 1)):
                near = trimmed(table[other])
                nats, n = decoders(which, vector, near, model.embedding(near))
                total, count = total + nats, count + n
        return total, count

    batch = settings.batch
    clock = Clock(seconds, settings.epochs_skipthought * len(kept) // batch)
    log = LossLog("skipthought", clock)
    for at in steps_of(clock, len(kept), batch, optimiser, settings.rate_skipthought, device):
        total, count = cost(kept[at])
        loss = total / count.clamp(min=1)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimiser.step()
        log(loss)
    with torch.inference_mode():
        sums = [cost(part) for part in held.split(256)]
    nats = float(sum(t for t, _ in sums)) / float(sum(c for _, c in sums))
    return model, {"epochs": clock.step * batch / len(kept), "held_out_nats": nats, "triples": len(kept)}


def train_infersent(
    text: Text, pairs: Pairs, settings: argparse.Namespace, seconds: float
) -> tuple[nn.Module, dict[str, Any]]:
    device = settings.device
    counts = Counter(text.counts)
    for a, b, _ in pairs.rows:
        counts.update(a.lower().split() + b.lower().split())
    words, vectors = glove_words(settings.glove, counts, settings.glove_words)
    model = InferSent(InferSentConfig(word_size=vectors.shape[1], hidden=settings.hidden_infersent), words)
    model.embedding.weight.data.copy_(torch.from_numpy(vectors))
    top = Inference(2 * settings.hidden_infersent)
    model.to(device)
    top.to(device)
    order = shuffled(len(pairs.rows), settings.seed)
    n_held = len(order) // 20
    rows = [
        (words.encode(a, 60), words.encode(b, 60), label) for a, b, label in (pairs.rows[i] for i in order)
    ]
    held, kept = rows[:n_held], rows[n_held:]
    parameters = [p for p in [*model.parameters(), *top.parameters()] if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)
    drop = nn.Dropout(0.2)

    def logits(batch: list[tuple[list[int], list[int], int]]) -> tuple[Tensor, Tensor]:
        sides = []
        for side in (0, 1):
            ids, lengths = padded([row[side] for row in batch], device)
            if model.training:  # words that are missing now and then make it look at the others
                ids = torch.where(
                    torch.rand(ids.shape, device=device) < settings.drop_words, ids.clamp(max=1), ids
                )
            sides.append(model.vectors(ids, lengths))
        labels = torch.tensor([row[2] for row in batch], device=device)
        return top(drop(sides[0]), drop(sides[1])) if model.training else top(*sides), labels

    clock = Clock(seconds, settings.epochs_infersent * len(kept) // 64)
    log = LossLog("infersent", clock)
    best, best_state, at_best = -1.0, {}, 0.0
    per_epoch = max(1, len(kept) // 64)
    for at in steps_of(clock, len(kept), 64, optimiser, settings.rate_infersent, "cpu"):
        model.train()
        top.train()
        scores, labels = logits([kept[i] for i in at.tolist()])
        loss = F.cross_entropy(scores, labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimiser.step()
        log(loss)
        if (clock.step + 1) % per_epoch == 0:
            accuracy = _accuracy(model, top, logits, held)
            print(f"infersent: epoch {(clock.step + 1) / per_epoch:.0f}, held-out accuracy {accuracy:.3f}")
            if accuracy > best:
                best, at_best = accuracy, (clock.step + 1) / per_epoch
                best_state = {n: w.detach().clone() for n, w in model.state_dict().items()}
    if best_state:
        model.load_state_dict(best_state)
    return model, {"epochs": at_best, "held_out_accuracy": best, "pairs": len(kept),
                   "sources": dict(pairs.sources), "left_out": dict(pairs.left_out)}  # fmt: skip


def _accuracy(model: nn.Module, top: nn.Module, logits: Callable[..., Any], rows: list[Any]) -> float:
    model.eval()
    top.eval()
    right = 0
    with torch.inference_mode():
        for begin in range(0, len(rows), 256):
            scores, labels = logits(rows[begin : begin + 256])
            right += int((scores.argmax(1) == labels).sum())
    return right / max(len(rows), 1)


class LossLog:
    """The running mean of a loss, told every ten seconds."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name, self.clock, self.last, self.mean = name, clock, time.monotonic(), float("nan")
        self.losses: list[Tensor] = []

    def __call__(self, loss: Tensor) -> None:
        self.losses.append(loss.detach())
        if time.monotonic() - self.last > 10 or self.clock.part >= 1 or len(self.losses) == 1000:
            self.mean = float(torch.stack(self.losses).mean())
            self.losses, self.last = [], time.monotonic()
            print(
                f"{self.name}: step {self.clock.step + 1}, {self.clock.part:.0%}, loss {self.mean:.4f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--triplets", type=Path, help="leave inference pairs out that share a sentence")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--only", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tiny", action="store_true", help="small models, little text, for a first try")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for name, number in (("words", 20_000), ("bigrams", 15_000), ("glove-words", 24_000), ("hidden", 600),
                         ("hidden-infersent", 256), ("targets", 10_000), ("batch", 256), ("least", 5),
                         ("epochs-sent2vec", 20), ("epochs-skipthought", 8), ("epochs-infersent", 20),
                         ("dialogues", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--rate-sent2vec", type=float, default=5e-3)
    parser.add_argument("--rate-skipthought", type=float, default=1e-3)
    parser.add_argument("--rate-infersent", type=float, default=2e-3)
    parser.add_argument("--drop-words", type=float, default=0.0, help="share of words hidden from InferSent")
    given = parser.parse_args()
    if given.tiny:
        given.words, given.bigrams, given.glove_words, given.hidden, given.targets = 3000, 500, 4000, 64, 1000
        given.hidden_infersent, given.batch, given.dialogues, given.least = 32, 64, given.dialogues or 60, 2
    torch.manual_seed(given.seed)
    if given.device == "cpu":
        torch.set_num_threads(1)
    sentences = given.data / "sentences" if (given.data / "sentences").is_dir() else given.data
    given.glove = next(iter(sorted(sentences.glob("glove*.npz"))), None)
    if given.glove is None and set(given.only) != {"sent2vec"}:
        raise SystemExit(f"no GloVe vectors (glove*.npz) in {sentences}")
    began = time.monotonic()
    text = read_text(given.data / "dialogue", given.dialogues, workers=min(8, os.cpu_count() or 1))
    print(f"{len(text.begin) - 1} dialogues, {len(text.turns)} turns, {sum(text.counts.values())} words, "
          f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    total = sum(SHARE[name] for name in given.only)
    for name in given.only:
        left = given.minutes * 60 * SHARE[name] / total
        started = time.monotonic()
        torch.manual_seed(given.seed)
        if name == "sent2vec":
            model, said = train_sent2vec(text, given, left)
        elif name == "skipthought":
            model, said = train_skipthought(text, given, left)
        else:
            pairs = read_pairs(sentences, given.triplets)
            print(f"inference pairs: {dict(pairs.sources)}, left out: {dict(pairs.left_out)}", flush=True)
            model, said = train_infersent(text, pairs, given, left)
        said |= {"seed": given.seed, "seconds": round(time.monotonic() - started), "device": given.device}
        said |= {"text": "dialogue turns", "triplets_left_out": given.triplets is not None}
        model.save(given.out / name, said)
        size = sum(f.stat().st_size for f in (given.out / name).iterdir())
        print(f"{name}: {json.dumps(said)}; {size / 1e6:.1f} MB in {given.out / name}", flush=True)


if __name__ == "__main__":
    main()
