"""Train the knowledge selector that comes with Palaver, and compare it with the others.

    python experiments/topical_chat/selector.py --data DATA --out selector.npz --results knowledge.json

It learns from the training part alone: the oracle's sentence of each turn, given the turns before it. What is
counted (popularity of sentences and words, which words answer which) is counted in the other folds for each
fifth of the conversations, so that the network does not learn to trust its own answers. --test measures the
test sets as well; settings were chosen on valid_freq.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from palaver import __version__
from palaver.corpora.catalogue import read_corpus
from palaver.knowledge.agreement import agreement
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import shares_of
from palaver.knowledge.features import FEATURES, FeatureTable, Priors, hash_of
from palaver.knowledge.selector import Group, OracleSelector, Selector, first_best, make_selector
from palaver.knowledge.trained import Ranker, TrainedSelector, load_ranker
from palaver.schema import Dialogue
from palaver.text.tfidf import Tfidf

FOLDS = 5
RANK = 24
MIN_TIMES = 20
"""A term that is in fewer turns has no prior."""
HIDDEN = (64, 32)
NETWORKS = 2
DROPOUT = 0.15
EPOCHS = 5
BATCH = 256
RATE = 4e-3
WEIGHT_DECAY = 1e-2


@dataclass
class Choices:
    """The turns of one dialogue that have a history and something in common with a candidate."""

    groups: list[Group]
    targets: list[NDArray[np.intp]]
    """For each group the oracle's candidates. (queries,)"""


def choices_of(dialogue: Dialogue, oracle: Selector) -> Choices:
    shares = shares_of(dialogue)
    groups, targets = [], []
    for share, table in zip(shares, oracle.scores([share.group for share in shares]), strict=True):
        if table is None or len(share.group.candidates) < 2:
            continue
        usable = [i for i, q in enumerate(share.group.queries) if q.history and table[i].max() > 0]
        if usable:
            groups.append(Group([share.group.queries[i] for i in usable], share.group.candidates))
            targets.append(first_best(table[usable]))
    return Choices(groups, targets)


def count_priors(dialogues: Sequence[Choices], tfidf: Tfidf) -> Priors:
    """What `dialogues` say about sentences and words."""
    expected: dict[str, float] = {}
    used: dict[str, float] = {}
    before, replies = [], []
    for choices in dialogues:
        for group, targets in zip(choices.groups, choices.targets, strict=True):
            chance = len(group.queries) / len(group.candidates)
            for sentence in group.candidates:
                expected[sentence] = expected.get(sentence, 0.0) + chance
            for place in targets:
                chosen = group.candidates[place]
                used[chosen] = used.get(chosen, 0.0) + 1
            before += [query.history[-1] for query in group.queries]
            replies += [query.response or "" for query in group.queries]
    sentences = list(expected)
    n_expected = np.array([expected[s] for s in sentences])
    n_used = np.array([used.get(s, 0.0) for s in sentences])
    said, replied = tfidf.documents(before), tfidf.documents(replies)  # (turns, terms)
    times = np.bincount(said.indices, minlength=said.shape[1])
    times = times + np.bincount(replied.indices, minlength=said.shape[1])
    kept = np.flatnonzero(times >= MIN_TIMES)
    holds = tfidf.documents(sentences)[:, kept]
    holds.data = np.ones_like(holds.data)
    with_term, used_with_term = holds.T @ n_expected, holds.T @ n_used
    odds = np.where(with_term >= 5, np.log((used_with_term + 10) / (with_term + 10)), 0)
    left, right = associations(said[:, kept], replied[:, kept])
    hashes = np.array([hash_of(s) for s in sentences], np.uint32)
    order = np.argsort(hashes)
    names = tfidf.terms
    return Priors(
        sentences=hashes[order],
        popularity=np.log((n_used + 1) / (n_expected + 1))[order].astype(np.float32),
        terms=tuple(names[i] for i in kept),
        term_odds=odds.astype(np.float32),
        mean_reply=(10 * np.asarray(replied.mean(axis=0)).ravel()[kept]).astype(np.float32),
        said=left,
        replied=right,
    )


def associations(said: Any, replied: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Two tables whose products are near ln (weight together / weight expected by chance)."""
    together = (said.T @ replied).tocoo()
    by_chance = np.asarray(said.sum(axis=0)).ravel()[together.row]
    by_chance = by_chance * np.asarray(replied.sum(axis=0)).ravel()[together.col] / said.shape[0]
    table = sparse.csr_matrix(
        (np.log((together.data + 1) / (by_chance + 1)), (together.row, together.col)), together.shape
    )
    u, s, v = svds(table, k=RANK, random_state=0)
    root = np.sqrt(s)
    return (u * root).astype(np.float32), (v.T * root).astype(np.float32)


@dataclass
class Examples:
    """Features of all candidates of all turns, one below the other."""

    features: NDArray[np.float32]
    begins: NDArray[np.intp]
    sizes: NDArray[np.intp]
    targets: NDArray[np.intp]


def make_examples(parts: Sequence[tuple[Sequence[Choices], FeatureTable]]) -> Examples:
    tables: list[NDArray[np.float32]] = []
    targets: list[NDArray[np.intp]] = []
    for dialogues, maker in parts:
        groups = [group for choices in dialogues for group in choices.groups]
        targets += [own for choices in dialogues for own in choices.targets]
        tables += [table for of_group in maker.of_groups(groups) for table in of_group]
    sizes = np.array([len(table) for table in tables])
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Examples(np.concatenate(tables), begins, sizes, np.concatenate(targets))


def fit_network(examples: Examples, seed: int, device: str) -> torch.nn.Sequential:
    """A softmax over the candidates of each turn, fitted to the oracle's choice."""
    torch.manual_seed(seed)
    one, two = HIDDEN
    network = torch.nn.Sequential(
        torch.nn.Linear(len(FEATURES), one), torch.nn.SiLU(), torch.nn.Dropout(DROPOUT),
        torch.nn.Linear(one, two), torch.nn.SiLU(), torch.nn.Dropout(DROPOUT), torch.nn.Linear(two, 1),
    ).to(device)  # fmt: skip
    n = len(examples.targets)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
    steps = EPOCHS * -(-n // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    features = torch.from_numpy(examples.features).to(device)
    rng = np.random.default_rng(seed)
    for epoch in range(EPOCHS):
        began, total = time.perf_counter(), 0.0
        order = rng.permutation(n)
        for begin in range(0, n, BATCH):
            turns = order[begin : begin + BATCH]
            sizes = examples.sizes[turns]
            width = int(sizes.max())
            is_there = np.arange(width) < sizes[:, None]  # (batch, width)
            rows = np.where(is_there, examples.begins[turns][:, None] + np.arange(width), 0)
            scores = torch.full(rows.shape, -1e9, device=device)
            mask = torch.from_numpy(is_there).to(device)
            scores[mask] = network(features[torch.from_numpy(rows[is_there]).to(device)])[:, 0]
            loss = torch.nn.functional.cross_entropy(
                scores, torch.from_numpy(examples.targets[turns]).to(device)
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss) * len(turns)
        print(
            f"network {seed}, epoch {epoch}: {total / n:.4f} ({time.perf_counter() - began:.0f} s)",
            flush=True,
        )
    return network.eval().cpu()


def train(data: Path, sentences: list[str], command: str, device: str) -> Ranker:
    oracle = OracleSelector(sentences)
    dialogues = [choices_of(d, oracle) for d in read_corpus("topical-chat", root=data, split="train")]
    tfidf = Tfidf(sentences)
    folds = [dialogues[fold::FOLDS] for fold in range(FOLDS)]
    ours = count_priors(dialogues, tfidf)
    maker = FeatureTable(sentences, ours)
    parts = []
    for fold in range(FOLDS):
        others = [choices for i, some in enumerate(folds) if i != fold for choices in some]
        parts.append((folds[fold], maker.with_priors(count_priors(others, tfidf))))
    examples = make_examples(parts)
    print(f"{len(examples.targets):,} turns, {len(examples.features):,} candidates", flush=True)
    mean, deviation = examples.features.mean(axis=0), examples.features.std(axis=0) + 1e-6
    card = {
        "data": "Topical-Chat, training part (1,524 conversations)",
        "licence": "CDLA-Sharing 1.0",
        "command": command,
        "seeds": list(range(NETWORKS)),
        "version": __version__,
    }
    ranker = Ranker(ours, mean, deviation, (mean,) * 3, (mean,) * 3, card)
    examples.features = ranker.normalise(examples.features)
    networks = [fit_network(examples, seed, device) for seed in range(NETWORKS)]
    layers = [[layer for layer in network if isinstance(layer, torch.nn.Linear)] for network in networks]
    weights = [np.stack([own[i].weight.detach().numpy().T for own in layers]) for i in range(3)]
    biases = [np.stack([own[i].bias.detach().numpy() for own in layers]) for i in range(3)]
    return Ranker(ours, mean, deviation, tuple(weights), tuple(biases), card)  # type: ignore[arg-type]


class FixedPlace(Selector):
    """Always the candidate at one place of the reading set: a bound that looks at nothing."""

    name = "most common place"

    def __init__(self, place: int) -> None:
        self.place = place

    def scores(self, groups: Sequence[Group]) -> list[NDArray[np.float64] | None]:
        tables: list[NDArray[np.float64] | None] = []
        for group in groups:
            table = np.zeros((len(group.queries), len(group.candidates)))
            table[:, min(self.place, len(group.candidates) - 1)] = 1
            tables.append(table)
        return tables


def most_common_place(data: Path, sentences: list[str]) -> int:
    oracle = OracleSelector(sentences)
    targets = [
        target
        for dialogue in read_corpus("topical-chat", root=data, split="train")
        for target in choices_of(dialogue, oracle).targets
    ]
    return int(np.bincount(np.concatenate(targets)).argmax())


def measure(
    data: Path, sentences: list[str], ranker: Ranker, names: list[str], splits: list[str]
) -> dict[str, Any]:
    selectors = [make_selector(name, sentences) for name in names if name != "trained"]
    selectors += [TrainedSelector(sentences, ranker=ranker), FixedPlace(most_common_place(data, sentences))]
    results = {}
    for split in splits:
        dialogues = list(read_corpus("topical-chat", root=data, split=split))
        rows = agreement(dialogues, selectors, OracleSelector(sentences))
        results[split] = [row.as_dict() for row in rows]
        for row in rows:
            print(
                f"{split} {row.selector}: {row.top1.value:.4f} [{row.top1.low:.4f}, {row.top1.high:.4f}]",
                flush=True,
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--out", type=Path, required=True, help="the weights; if they are there they are measured"
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument(
        "--selectors", default="tfidf,bm25,trained", help="with encoder if there is time for it"
    )
    parser.add_argument("--test", action="store_true")
    given = parser.parse_args()
    command = "python experiments/topical_chat/selector.py --data DATA --out selector.npz"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reader = read_corpus("topical-chat", root=given.data)
    sentences = reading_sentences(reader)
    if not given.out.exists():
        train(given.data, sentences, command, device).save(given.out)
    ranker = load_ranker(given.out)
    splits = ["valid_freq", *(["valid_rare", "test_freq", "test_rare"] if given.test else [])]
    results = measure(given.data, sentences, ranker, given.selectors.split(","), splits)
    if given.results:
        content = {
            "command": f"{command} --results knowledge.json" + (" --test" if given.test else ""),
            "corpus": "topical-chat",
            "last_turns": 2,
            "n_sentences": len(sentences),
            "notes": reader.notes,
            "hardware": platform.machine() if device == "cpu" else torch.cuda.get_device_name(),
            "settings_chosen_on": "valid_freq",
            "card": dict(ranker.card),
            "splits": results,
        }
        given.results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
