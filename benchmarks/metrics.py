"""`palaver.metrics` beside sacrebleu, rouge-score, ParlAI's F1 and a set of n-grams.

    python -m benchmarks.metrics [--out docs/results/metrics-speed.json] [--responses 100000] [--data FOLDER]
    python -m benchmarks.metrics --only models --out docs/results/metrics-models-speed.json

One process, the same 100,000 pairs of texts: turns of Topical-Chat (from the beginning again where there are
not enough), each beside the turn 40,001 places further on. F1, BLEU, distinct-1 and -2, diversity-1 and -2
and ROUGE-L in one pass, beside the reference implementations one after the other; then 1,000 paired bootstrap
replicates of all of these for two systems, beside sacrebleu's paired test of BLEU alone. sacrebleu holds
replicates x responses x statistics in memory, so it is timed on `--peer-replicates` of them and scaled. Each
case first checks that both sides give the same figure. The peers, which take a minute, run once; ours is the
best of three runs, of two for the replicates. Ends with 1 if a target was missed.

`--only models` compares BERTScore with the package bert_score (requirements-bench.lock) on the same encoder,
MiniLM on the CPU: precision, recall and F of four systems that share their references, on `--pairs` items.
Both have loaded the model before. Each side is timed once, ours first.

`--only memory` runs `palaver metrics FILE --reference FILE` with all metrics that need no model, in a fresh
process, on files of `--lines` lines: halves of two turns each, so that nearly every line is different. Ends
with 1 if the last file takes more than `MOST_GROWTH` times the memory of the first.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import string
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU
from sacrebleu.significance import Result, _paired_bs_test

from benchmarks.harness import Table, best_of, machine, run_palaver
from palaver.corpora.catalogue import read_corpus
from palaver.metrics.bleu import bleu, bleu_statistics
from palaver.metrics.evaluate import choose_metrics, evaluate, measure
from palaver.metrics.examples import Example, Examples
from palaver.metrics.systems import SystemResponses
from palaver.statistics.bootstrap import Resampling
from palaver.text.words import words

METRICS = ["unigram_f1", "bleu", "distinct_1", "distinct_2", "diversity_1", "diversity_2", "rouge_l"]
TARGET, TARGET_REPLICATES, TARGET_MODELS = 30, 50, 2
MOST_GROWTH = 2
_APART = 40_001


def texts(data: Path | None, n: int) -> list[str]:
    """Turns of Topical-Chat, from the beginning again where there are not enough."""
    splits = ("train", "valid_freq", "valid_rare", "test_freq", "test_rare")
    turns = [
        turn.text
        for split in splits
        for talk in read_corpus("topical-chat", root=data, split=split)
        for turn in talk.turns
    ]
    return [turns[i % len(turns)] for i in range(n)]


# The peers, written as their users write them ---------------------------------------------------------------

_PUNCTUATION = re.compile(r"[" + re.escape(string.punctuation) + "‘’“”]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def parlai_f1(guess: str, answer: str) -> float:
    """ParlAI's F1: normalise_answer, then bags of words."""

    def bag(text: str) -> list[str]:
        return _ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split()

    guessed, expected = bag(guess), bag(answer)
    n_common = sum((Counter(guessed) & Counter(expected)).values())
    if not n_common:
        return 0.0
    precision, recall = n_common / len(guessed), n_common / len(expected)
    return 2 * precision * recall / (precision + recall)


def peers(said: list[str], references: list[str]) -> dict[str, float]:
    """Every figure by its reference implementation, one after the other."""
    figures = {"unigram_f1": float(np.mean([parlai_f1(a, b) for a, b in zip(said, references, strict=True)]))}
    figures["bleu"] = sacrebleu.corpus_bleu(said, [references]).score
    for n in (1, 2):
        pooled: set[tuple[str, ...]] = set()
        total = 0
        shares = []
        for text in said:
            tokens = words(text)
            grams = list(zip(*(tokens[i:] for i in range(n)), strict=False))
            pooled.update(grams)
            total += len(grams)
            if grams:
                shares.append(len(set(grams)) / len(tokens))
        figures[f"distinct_{n}"] = len(pooled) / total
        figures[f"diversity_{n}"] = float(np.mean(shares))
    scorer = RougeScorer(["rougeL"])
    scores = [scorer.score(b, a)["rougeL"].fmeasure for a, b in zip(said, references, strict=True)]
    figures["rouge_l"] = float(np.mean(scores))
    return figures


def ours(said: list[str], references: list[str]) -> dict[str, float]:
    """The same from texts to figures, without intervals."""
    return {row.name: row.value for row in evaluate(said, references, metrics=METRICS, n_replicates=0)}


def one_pass(report: Table, said: list[str], references: list[str]) -> dict[str, object]:
    begin = time.perf_counter()
    expected = peers(said, references)
    peer = time.perf_counter() - begin
    seconds, figures = best_of(lambda: ours(said, references), 3)
    for name, value in figures.items():
        tolerance = 1e-9 if name == "bleu" else 1e-3 if name in ("unigram_f1", "rouge_l") else 1e-12
        # a reference without a word counts 0 with ParlAI and rouge-score, and is left out by us
        assert abs(value - expected[name]) < tolerance, (name, value, expected[name])
    report(f"{', '.join(METRICS)}: {len(said):,} responses", peer=peer, ours=seconds, target=TARGET)
    return {
        "peer_seconds": peer, "our_seconds": seconds, "ratio": peer / seconds, "target": TARGET,
        "figures": {name: [figures[name], expected[name]] for name in figures},
    }  # fmt: skip


def paired(
    report: Table, said: list[str], other: list[str], references: list[str], n_peer: int
) -> dict[str, object]:
    n_replicates = 1000
    single = [(reference,) for reference in references]
    none = [""] * len(references)
    examples = {
        name: Examples.of_columns(texts, single, none) for name, texts in (("said", said), ("other", other))
    }
    systems = [SystemResponses(name, range(len(said)), [of_system]) for name, of_system in examples.items()]
    # What sacrebleu counts is what we count, in another order; counting is not part of what is timed.
    lengths_first = [8, 9, *range(8)]
    statistics = [bleu_statistics(of_system) for of_system in examples.values()]
    tables = [table[:, lengths_first].astype(int).tolist() for table in statistics]

    class Counted(BLEU):
        def _extract_corpus_statistics(self, hypotheses: object, references: object) -> list[list[int]]:
            return tables[1]

    first = Counted()._aggregate_and_compute(tables[0]).score
    assert abs(first - float(bleu(statistics[0].sum(axis=0)))) < 1e-9
    baseline = {"BLEU": (tables[0], Result(first))}
    begin = time.perf_counter()
    _paired_bs_test(baseline, "other", other, [references], {"BLEU": Counted()}, n_samples=n_peer, seed=1)
    peer = (time.perf_counter() - begin) * n_replicates / n_peer
    metrics = [m for m in choose_metrics(METRICS, {"references"}) if m.whole is None]
    without, _ = best_of(lambda: measure(systems, metrics, Resampling.of(0.95, 0, None)), 1)
    whole, _ = best_of(lambda: measure(systems, metrics, Resampling.of(0.95, n_replicates, 0)), 2)
    seconds = whole - without
    names = ", ".join(metric.name for metric in metrics)
    report(f"1,000 paired replicates of {names}", peer=peer, ours=seconds, target=TARGET_REPLICATES,
           note=f"sacrebleu: BLEU alone, {n_peer} replicates, scaled")  # fmt: skip
    return {
        "peer_seconds": peer, "our_seconds": seconds, "ratio": peer / seconds, "target": TARGET_REPLICATES,
        "metrics": [metric.name for metric in metrics], "peer_replicates": n_peer,
    }  # fmt: skip


def models(report: Table, every: list[str], n_items: int) -> dict[str, object]:
    """BERTScore of four systems that share references, beside bert_score."""
    from bert_score import BERTScorer

    from palaver.metrics.metric import open_metric
    from palaver.models.encoders.transformer import minilm_folder

    n_systems = 4
    references = every[:n_items]
    said = [every[(n + 1) * n_items : (n + 2) * n_items] for n in range(n_systems)]
    names = ["bertscore_precision", "bertscore_recall", "bertscore"]
    metrics = [open_metric(name, "cpu") for name in names]
    warm = Examples.of([Example("warm", ("up",)), Example("a b", ("c d",))])
    measure([SystemResponses("w", range(2), [warm])], metrics, Resampling.of(0.95, 0, None))

    def with_ours() -> list[float]:
        systems = []
        for n, texts_of_system in enumerate(said):
            rows = [Example(a, (b,)) for a, b in zip(texts_of_system, references, strict=True)]
            systems.append(SystemResponses(str(n), range(n_items), [Examples.of(rows)]))
        results, _ = measure(systems, metrics, Resampling.of(0.95, 0, None))
        return [row.value for row in results]

    scorer = BERTScorer(model_type=str(minilm_folder()), num_layers=6, device="cpu", batch_size=64)
    scorer.score(["warm"], ["up"])

    def with_theirs() -> list[float]:
        scores = [scorer.score(texts_of_system, references) for texts_of_system in said]
        return [float(part[column].mean()) for column in range(3) for part in scores]

    # not after a run that leaves vectors behind
    seconds, figures = best_of(with_ours, 1, warm_up=False)
    peer, expected = best_of(with_theirs, 1, warm_up=False)
    np.testing.assert_allclose(figures, expected, atol=2e-4)
    report(
        f"BERTScore of {n_systems} systems on {n_items:,} items",
        peer=peer,
        ours=seconds,
        target=TARGET_MODELS,
    )
    by_metric = dict(zip(names, np.reshape(figures, (3, -1)).tolist(), strict=True))
    return {
        "peer_seconds": peer, "our_seconds": seconds, "ratio": peer / seconds, "target": TARGET_MODELS,
        "n_items": n_items, "n_systems": n_systems, "figures": by_metric,
    }  # fmt: skip


def memory(every: list[str], n_lines: list[int]) -> list[dict[str, object]]:
    """Seconds and peak memory of `palaver metrics` on long files."""
    cases: list[dict[str, object]] = []
    for n in n_lines:
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("said.txt", "true.txt")]
            for seed, path in enumerate(paths):
                _write_lines(path, every, n, seed)
            words = ["metrics", str(paths[0]), "--reference", str(paths[1]), "--json"]
            seconds, processor_seconds, megabytes = run_palaver(words)
        cases.append(
            {
                "n_lines": n,
                "seconds": round(seconds, 1),
                "processor_seconds": round(processor_seconds, 1),
                "peak_mb": round(megabytes),
            }
        )
        print(f"{n:>12,} lines {seconds:8.1f} s, processors {processor_seconds:8.1f} s, {megabytes:7,.0f} MB")
    return cases


def _write_lines(path: Path, every: list[str], n: int, seed: int) -> None:
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n):
            first, second = (rng.choice(every).split() for _ in range(2))
            file.write(" ".join([*first[: len(first) // 2 + 1], *second[len(second) // 2 :]]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--responses", type=int, default=100_000)
    parser.add_argument("--peer-replicates", type=int, default=50)
    parser.add_argument("--data", type=Path, help="Folder of corpora.")
    parser.add_argument("--out", type=Path, help="Results file to write.")
    parser.add_argument("--only", choices=["texts", "models", "memory"], default="texts")
    parser.add_argument("--pairs", type=int, default=1000, help="Items of each system with --only models.")
    parser.add_argument(
        "--lines",
        type=int,
        nargs="+",
        default=[100_000, 1_000_000],
        help="Sizes of files with --only memory.",
    )
    given = parser.parse_args()
    every = texts(given.data, given.responses + 2 * _APART)
    report = Table()
    print(f"{machine()}, one process")
    versions = {"sacrebleu": sacrebleu.__version__, "rouge-score": "0.1.2"}
    sizes = f"--responses {given.responses} --peer-replicates {given.peer_replicates}"
    command = f"python -m benchmarks.metrics {sizes}"
    if given.only == "models":
        command = f"python -m benchmarks.metrics --only models --pairs {given.pairs}"
        versions = {name: version(name) for name in ("bert-score", "torch", "transformers")}
        results: dict[str, object] = {"bertscore": models(report, every, given.pairs)}
    elif given.only == "memory":
        command = f"python -m benchmarks.metrics --only memory --lines {' '.join(map(str, given.lines))}"
        versions = {name: version(name) for name in ("palaver", "numpy", "numba")}
        cases = memory(every, given.lines)
        results = {"memory": cases}
        if cases[-1]["peak_mb"] > MOST_GROWTH * cases[0]["peak_mb"]:  # type: ignore[operator]
            report.missed.append("memory")
    else:
        said, references = every[: given.responses], every[_APART : _APART + given.responses]
        other = every[2 * _APART :]
        results = {
            "one_pass": one_pass(report, said, references),
            "paired_replicates": paired(report, said, other, references, given.peer_replicates),
        }
    if given.out is not None:
        content = {
            "command": command,
            "data": "turns of Topical-Chat",
            "n_responses": given.responses,
            "seed": 0,
            "hardware": machine(),
            "python": platform.python_version(),
            "versions": versions,
            "date": datetime.now(UTC).date().isoformat(),
            "results": results,
        }
        given.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if report.missed:
        sys.exit(f"missed: {'; '.join(report.missed)}")


if __name__ == "__main__":
    main()
