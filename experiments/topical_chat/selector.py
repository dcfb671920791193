"""Train the knowledge selectors that come with Palaver, and compare them with the others.

    python experiments/topical_chat/selector.py --data DATA --out selector.npz \\
        --encoder-out selector_encoder.npz --results knowledge.json

--out is `trained`; --encoder-out is `trained-encoder`, which also looks at MiniLM vectors. --vectors FOLDER
keeps those for another run. Both learn from the training part alone: the oracle's sentence of each turn,
given the turns before it. What is counted (popularity of sentences and words, which words answer which) is
counted in the other folds for each third of the conversations, so that the network does not learn to trust
its own answers. --test measures the test sets too; settings were chosen on valid_freq. With --limits alone
what bounds every selector on valid_freq is added to the results:

    python experiments/topical_chat/selector.py --data DATA --limits --results knowledge.json
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from palaver.knowledge.encoder import UnitVectors
from palaver.knowledge.features import FeatureTable, Priors, hash_of
from palaver.knowledge.ranker import Ranker, TrainedSelector, load_ranker
from palaver.knowledge.selector import Group, OracleSelector, Query, Selector, first_best, make_selector
from palaver.knowledge.trained_encoder import ALL_FEATURES, TrainedEncoderSelector, with_meanings
from palaver.models.encoders import Places, open_encoder
from palaver.probes.vectors import encode_texts
from palaver.schema import Dialogue
from palaver.text.tfidf import Tfidf

COMMAND = "python experiments/topical_chat/selector.py --data DATA"
TESTS = ("valid_freq", "valid_rare", "test_freq", "test_rare")
FOLDS = 3
RANK = 24
MIN_TIMES = 20
"""A term that is in fewer turns has no prior."""
NEGATIVES = 15
"""Candidates, drawn anew for every step, that the chosen one is compared with."""
DROPOUT = 0.1
EPOCHS = 6
BATCH = 256
RATE = 4e-3
WEIGHT_DECAY = 1e-2


@dataclass(frozen=True)
class Size:
    """Of a ranker."""

    hidden: tuple[int, int]
    networks: int


OF_WORDS = Size(hidden=(64, 32), networks=1)
OF_MEANING = Size(hidden=(96, 48), networks=4)


@dataclass
class Choices:
    """The turns of one dialogue that have a history and something in common with a candidate."""

    groups: list[Group]
    targets: list[NDArray[np.intp]]
    """For each group the oracle's candidates. (queries,)"""
    rows: range = range(0)
    """The turns' numbers among those of all dialogues."""


def choices_of(dialogues: Sequence[Dialogue], oracle: Selector) -> list[Choices]:
    shares = [shares_of(dialogue) for dialogue in dialogues]
    tables = iter(oracle.scores([share.group for own in shares for share in own]))
    choices = []
    n_turns = 0
    for own in shares:
        groups, targets = [], []
        for share in own:
            table = next(tables)
            if table is None or len(share.group.candidates) < 2:
                continue
            usable = [i for i, q in enumerate(share.group.queries) if q.history and table[i].max() > 0]
            if usable:
                groups.append(Group([share.group.queries[i] for i in usable], share.group.candidates))
                targets.append(first_best(table[usable]))
        end = n_turns + sum(map(len, targets))
        choices.append(Choices(groups, targets, range(n_turns, end)))
        n_turns = end
    return choices


class Turns:
    """TF-IDF vectors of all turns before a reply, and of all replies."""

    def __init__(self, dialogues: Sequence[Choices], tfidf: Tfidf) -> None:
        queries = [q for choices in dialogues for group in choices.groups for q in group.queries]
        self.tfidf = tfidf
        self.said = tfidf.documents([query.history[-1] for query in queries])  # (turns, terms)
        self.replied = tfidf.documents([query.response or "" for query in queries])


def count_priors(dialogues: Sequence[Choices], turns: Turns) -> Priors:
    """What `dialogues` say about sentences and words."""
    expected: dict[str, float] = {}
    used: dict[str, float] = {}
    for choices in dialogues:
        for group, targets in zip(choices.groups, choices.targets, strict=True):
            chance = len(group.queries) / len(group.candidates)
            for sentence in group.candidates:
                expected[sentence] = expected.get(sentence, 0.0) + chance
            for place in targets:
                chosen = group.candidates[place]
                used[chosen] = used.get(chosen, 0.0) + 1
    tfidf = turns.tfidf
    rows = [row for choices in dialogues for row in choices.rows]
    said, replied = turns.said[rows], turns.replied[rows]
    sentences = list(expected)
    n_expected = np.array([expected[s] for s in sentences])
    n_used = np.array([used.get(s, 0.0) for s in sentences])
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


MakeFeatures = Callable[[Sequence[Group]], Iterable[list[NDArray[np.float32]]]]


def make_examples(parts: Sequence[tuple[Sequence[Choices], MakeFeatures]]) -> Examples:
    tables: list[NDArray[np.float32]] = []
    targets: list[NDArray[np.intp]] = []
    for dialogues, make_features in parts:
        groups = [group for choices in dialogues for group in choices.groups]
        targets += [own for choices in dialogues for own in choices.targets]
        tables += [table for of_group in make_features(groups) for table in of_group]
    sizes = np.array([len(table) for table in tables])
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return Examples(np.concatenate(tables), begins, sizes, np.concatenate(targets))


def fit_network(examples: Examples, hidden: tuple[int, int], seed: int, device: str) -> torch.nn.Sequential:
    """A softmax over the candidates of each turn, fitted to the oracle's choice."""
    torch.manual_seed(seed)
    one, two = hidden
    network = torch.nn.Sequential(
        torch.nn.Linear(examples.features.shape[1], one), torch.nn.SiLU(), torch.nn.Dropout(DROPOUT),
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
            sizes, targets = examples.sizes[turns], examples.targets[turns]
            others = rng.integers(0, sizes[:, None] - 1, (len(turns), NEGATIVES))
            others += others >= targets[:, None]  # all but the chosen one
            places = np.column_stack([targets, others]) + examples.begins[turns][:, None]
            scores = network(features[torch.from_numpy(places).to(device)])[..., 0]  # (batch, 1 + NEGATIVES)
            loss = torch.nn.functional.cross_entropy(
                scores, torch.zeros(len(turns), dtype=torch.long, device=device)
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item() * len(turns)
        print(
            f"network {seed}, epoch {epoch}: {total / n:.4f} ({time.perf_counter() - began:.0f} s)",
            flush=True,
        )
    return network.eval().cpu()


def features_of_folds(
    dialogues: Sequence[Choices], turns: Turns, maker: FeatureTable, vectors: UnitVectors | None
) -> list[tuple[Sequence[Choices], MakeFeatures]]:
    """Each third of the conversations, and features for which the other thirds were counted."""
    folds = [dialogues[fold::FOLDS] for fold in range(FOLDS)]
    parts = []
    for fold in range(FOLDS):
        others = [choices for i, some in enumerate(folds) if i != fold for choices in some]
        of_words = maker.with_priors(count_priors(others, turns)).of_groups
        parts.append((folds[fold], beside_meanings(of_words, vectors) if vectors else of_words))
    return parts


def train(
    dialogues: list[Choices],
    sentences: list[str],
    vectors: UnitVectors | None,
    *,
    size: Size,
    command: str,
    device: str,
) -> Ranker:
    """The ranker of `trained`; with `vectors` that of `trained-encoder`."""
    turns = Turns(dialogues, Tfidf(sentences))
    ours = count_priors(dialogues, turns)
    parts = features_of_folds(dialogues, turns, FeatureTable(sentences, ours), vectors)
    examples = make_examples(parts)
    print(f"{len(examples.targets):,} turns, {len(examples.features):,} candidates", flush=True)
    mean, deviation = examples.features.mean(axis=0), examples.features.std(axis=0) + 1e-6
    card = {
        "data": "Topical-Chat, training part (1,524 conversations)",
        "licence": "CDLA-Sharing 1.0",
        "command": command,
        "seeds": list(range(size.networks)),
        "version": __version__,
    }
    ranker = Ranker(ours, mean, deviation, (mean,) * 3, (mean,) * 3, card)
    examples.features = ranker.normalise(examples.features)
    networks = [fit_network(examples, size.hidden, seed, device) for seed in range(size.networks)]
    layers = [[layer for layer in network if isinstance(layer, torch.nn.Linear)] for network in networks]
    weights = [np.stack([own[i].weight.detach().numpy().T for own in layers]) for i in range(3)]
    biases = [np.stack([own[i].bias.detach().numpy() for own in layers]) for i in range(3)]
    return Ranker(ours, mean, deviation, tuple(weights), tuple(biases), card)  # type: ignore[arg-type]


def beside_meanings(of_words: MakeFeatures, vectors: UnitVectors) -> MakeFeatures:
    return lambda groups: with_meanings(of_words(groups), groups, vectors)


def open_vectors(folder: Path | None, device: str) -> UnitVectors:
    """MiniLM as `trained-encoder` opens it; what `folder` holds is not encoded again."""
    encoder = open_encoder("minilm", Places(device=device, keep_end=True, batch_size=64, half=True))

    def encode(texts: list[str]) -> NDArray[np.float32]:
        vectors = encode_texts(encoder, texts, folder=folder).vectors
        return np.stack([vectors[text] for text in texts])

    return UnitVectors(encode)


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


def measure(
    splits: Mapping[str, list[Dialogue]], selectors: Sequence[Selector], oracle: Selector
) -> dict[str, Any]:
    """How often each of `selectors` chooses as the oracle does, by split."""
    results = {}
    for split, dialogues in splits.items():
        rows = agreement(dialogues, selectors, oracle)
        results[split] = [row.as_dict() for row in rows]
        for row in rows:
            shown = f"{row.top1.value:.4f} [{row.top1.low:.4f}, {row.top1.high:.4f}]"
            print(f"{split} {row.selector}: {shown}", flush=True)
    return results


def measure_limits(dialogues: Sequence[Dialogue], oracle: Selector) -> dict[str, Any]:
    """How clear the oracle's choice is, and how often an oracle makes it that hears the reply's beginning."""
    groups = [share.group for dialogue in dialogues for share in shares_of(dialogue)]
    groups = [Group([q for q in g.queries if q.history], g.candidates) for g in groups]
    groups = [group for group in groups if len(group.candidates) > 1 and group.queries]
    truth = [table for table in oracle.scores(groups) if table is not None]
    usable = [table.max(axis=1) > 0 for table in truth]
    ranked = [np.sort(table[rows], axis=1)[:, -2:] for table, rows in zip(truth, usable, strict=True)]
    second, best = np.concatenate(ranked).T

    def share_by(first_words: int) -> float:
        heard = [
            Group([Query(q.history, " ".join((q.response or "").split()[:first_words])) for q in g.queries],
                  g.candidates)
            for g in groups
        ]  # fmt: skip
        tables = [table for table in oracle.scores(heard) if table is not None]
        same = [
            first_best(table[rows]) == first_best(own[rows])
            for table, own, rows in zip(tables, truth, usable, strict=True)
            if rows.any()
        ]
        return float(np.concatenate(same).mean())

    return {
        "split": "valid_freq",
        "n_turns": len(best),
        "oracle_cosine_mean": float(best.mean()),
        "oracle_cosine_below": {str(at): float((best < at).mean()) for at in (0.1, 0.2, 0.3)},
        "second_within": {
            str(part): float((second >= (1 - part) * best).mean()) for part in (0.05, 0.1, 0.2)
        },
        "first_choice_by_first_words": {str(n): share_by(n) for n in (2, 3, 4, 5, 8, 12)},
        "command": f"{COMMAND} --limits --results knowledge.json",
    }


def write_results(path: Path, content: dict[str, Any]) -> None:
    """Write the figures; the limits that stand there stay, as they do not depend on the selectors."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    limits = {"limits": before["limits"]} if "limits" in before else {}
    path.write_text(json.dumps({**content, **limits}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, help="the weights; if they are there they are measured")
    parser.add_argument("--encoder-out", type=Path, help="the same, of the one with the encoder")
    parser.add_argument("--vectors", type=Path, help="a folder for the encoder's vectors")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--selectors", default="tfidf,bm25", help="beside the trained ones")
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--limits", action="store_true", help="add to --results what bounds every selector")
    given = parser.parse_args()
    if given.out is None and not (given.limits and given.results):
        parser.error("give --out, or --limits and --results")
    command = f"{COMMAND} --out selector.npz"
    if given.encoder_out:
        command += " --encoder-out selector_encoder.npz"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    reader = read_corpus("topical-chat", root=given.data)
    corpus: dict[str, list[Dialogue]] = {}
    for dialogue in reader:
        corpus.setdefault(str(dialogue.labels["split"]), []).append(dialogue)
    sentences = reading_sentences(dialogue for part in corpus.values() for dialogue in part)
    oracle = OracleSelector(sentences)
    if given.limits:
        content = json.loads(given.results.read_text(encoding="utf-8"))
        content["limits"] = measure_limits(corpus["valid_freq"], oracle)
        print(json.dumps(content["limits"], indent=1))
        given.results.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return
    choices = choices_of(corpus["train"], oracle)
    if not given.out.exists():
        train(choices, sentences, None, size=OF_WORDS, command=command, device=device).save(given.out)
    ranker = load_ranker(given.out)
    selectors = [make_selector(name, sentences) for name in given.selectors.split(",") if name]
    selectors.append(TrainedSelector(sentences, ranker=ranker))
    cards = {"card": dict(ranker.card)}
    if given.encoder_out:
        vectors = open_vectors(given.vectors, device)
        if not given.encoder_out.exists():
            ranker = train(choices, sentences, vectors, size=OF_MEANING, command=command, device=device)
            ranker.save(given.encoder_out)
        ranker = load_ranker(given.encoder_out, len(ALL_FEATURES))
        selectors.append(TrainedEncoderSelector(sentences, vectors=vectors, ranker=ranker))
        cards["encoder_card"] = dict(ranker.card)
    place = int(np.bincount(np.concatenate([own for c in choices for own in c.targets])).argmax())
    selectors.append(FixedPlace(place))
    splits = TESTS if given.test else ("valid_freq",)
    results = measure({split: corpus[split] for split in splits}, selectors, oracle)
    if given.results:
        content = {
            "command": f"{command} --results knowledge.json" + (" --test" if given.test else ""),
            "corpus": "topical-chat",
            "last_turns": 2,
            "n_sentences": len(sentences),
            "notes": reader.notes,
            "hardware": platform.machine() if device == "cpu" else torch.cuda.get_device_name(),
            "settings_chosen_on": "valid_freq",
            **cards,
            "splits": results,
        }
        write_results(given.results, content)


if __name__ == "__main__":
    main()
