"""Perplexity and generated responses on Topical-Chat's test sets (Table 3 of Gopalakrishnan et al. 2019).

python experiments/responders/evaluate.py runs/tf runs/tf-knowledge --data DATA --out results.json

Knowledge is the oracle's sentence; with --selectors oracle,tfidf,trained also what the others choose from the
history alone, as runs called tf-knowledge/tfidf. `palaver reproduce topical-chat` prints the table.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import torch

from palaver.corpora.catalogue import read_corpus
from palaver.generation.decode import Decoding, decode, pad
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import select_for
from palaver.knowledge.selector import make_selector
from palaver.metrics.evaluate import evaluate
from palaver.models.pretrained import Responder, load
from palaver.models.turns import encode_knowledge, encode_turns, join_turns
from palaver.statistics.perplexity import corpus_perplexity
from palaver.text.spelling import Spelling
from palaver.text.vocabulary import EOS, UNK, Vocabulary
from palaver.text.words import count_words

SPLITS = ("test_freq", "test_rare")
METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]


class Example(NamedTuple):
    dialogue: str
    history: tuple[str, ...]
    response: str
    knowledge: str


def examples(data: Path, split: str, selector: str) -> list[Example]:
    """Every turn but the first of each conversation, with the sentence that `selector` finds for it."""
    sentences = reading_sentences(read_corpus("topical-chat", root=data))
    chosen = select_for(
        read_corpus("topical-chat", root=data, split=split), make_selector(selector, sentences)
    )
    rows = []
    for dialogue, picks in chosen:
        texts = [turn.text.strip() for turn in dialogue.turns]
        for i in range(1, len(texts)):
            if texts[i] and any(texts[:i]):
                pick = picks[i]
                rows.append(Example(dialogue.id, tuple(texts[:i]), texts[i], pick.sentence if pick else ""))
    return rows


@torch.inference_mode()
def score(model: Responder, vocabulary: Vocabulary, some: list[Example]) -> dict[str, object]:
    """Perplexity per token and per word; the end counts as one of each, unknown words cost their spelling.

    The interval is that over conversations.
    """
    limits = model.config
    spelling = Spelling(vocabulary)
    nll, spelled, n_tokens, n_words = [], [], [], []
    n_unknown = 0
    for _, conversation in groupby(some, key=lambda e: e.dialogue):
        rows, costs, words = [], 0.0, 0
        for e in conversation:
            response = [*vocabulary.encode(e.response), EOS]
            words += 1 + count_words(e.response)
            if len(response) > limits.max_response:  # its end is not seen: neither are the words that are cut
                response = response[: limits.max_response]
                words += count_words(vocabulary.decode(response)) - count_words(e.response) - 1
            knowledge = encode_knowledge(vocabulary, [e.knowledge], limits.max_knowledge)[0].tokens
            history = join_turns(encode_turns(vocabulary, e.history), limits.max_context)
            rows.append((history.tokens, response, knowledge if limits.knowledge else []))
            costs += spelling.unknown(e.response, response)
            n_unknown += sum(token == UNK for token in response)
        context, said, knowledge_ids = (pad([row[k] for row in rows], model.device) for k in range(3))
        cost = model(context, said, knowledge=knowledge_ids if limits.knowledge else None)
        nll.append(float(cost.nll))
        n_tokens.append(int(cost.n_tokens))
        spelled.append(costs)
        n_words.append(words)
    with_spelling = [cost + more for cost, more in zip(nll, spelled, strict=True)]
    per_word = corpus_perplexity(with_spelling, n_tokens, n_words)
    interval = per_word.per_word_interval
    assert interval is not None
    return {
        "ppl_word": [per_word.per_word, interval.low, interval.high],
        "ppl_token": corpus_perplexity(nll, n_tokens, n_words).per_token,
        "unknown_share": n_unknown / sum(n_tokens),
        "n_conversations": len(nll),
    }


def training(run: Path) -> dict[str, object]:
    """The epochs of a run, and why it ended, as its log beside its folder says."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    keys = ("epoch", "step", "seconds", "ppl_word", "valid_ppl", "valid_ppl_word", "lr")
    epochs = [{key: row[key] for key in keys if key in row} for row in rows if row["kind"] == "epoch"]
    log = run.with_suffix(".log")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    ends = [line for line in lines if line.startswith(("finished:", "stopped after"))]
    return {"epochs": epochs, "end": ends[-1].partition("; ")[0] if ends else ""}


def answers(model: Responder, vocabulary: Vocabulary, some: list[Example], how: Decoding) -> list[str]:
    limits = model.config
    contexts = [join_turns(encode_turns(vocabulary, e.history), limits.max_context).tokens for e in some]
    knowledge = None
    if limits.knowledge:
        facts = encode_knowledge(vocabulary, [e.knowledge for e in some], limits.max_knowledge)
        knowledge = [fact.tokens for fact in facts]
    return [
        vocabulary.decode(d.tokens) for d in decode(model, contexts, how, knowledge=knowledge, batch_size=512)
    ]


def test(model: Responder, vocabulary: Vocabulary, some: list[Example]) -> dict[str, Any]:
    """All columns of the table from one checkpoint."""
    began = time.perf_counter()
    numbers: dict[str, Any] = dict(score(model, vocabulary, some))
    how = Decoding(method="beam", beam_size=5, max_length=model.config.max_response)
    said = answers(model, vocabulary, some, how)
    table = evaluate(said, [e.response for e in some], metrics=METRICS)
    numbers |= {row.name: [row.value, row.low, row.high] for row in table}
    numbers |= {"n": len(some), "seconds": time.perf_counter() - began}
    numbers["samples"] = [
        {"history": list(e.history[-2:]), "knowledge": e.knowledge, "true": e.response, "said": s}
        for e, s in list(zip(some, said, strict=True))[:: max(1, len(some) // 8)]
    ]
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--selectors", default="oracle", help="who chooses the knowledge, several with commas"
    )
    parser.add_argument("--limit", type=int, default=0, help="only so many examples of each set")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    selectors = given.selectors.split(",")
    sets = {(name, split): examples(given.data, split, name) for name in selectors for split in SPLITS}
    results: dict[str, dict[str, Any]] = {}
    for run in given.runs:
        if not (run / "best").exists():
            print(f"{run}: no model, left out")
            continue
        model, vocabulary = load(run / "best", device=device)
        for name in selectors if model.config.knowledge else ["oracle"]:
            row = run.name if name == "oracle" else f"{run.name}/{name}"
            tests = {
                split: test(model, vocabulary, sets[name, split][: given.limit or None]) for split in SPLITS
            }
            results[row] = {**training(run), "test": tests}
            for split, numbers in tests.items():
                shown = {k: v[0] if isinstance(v, list) else v for k, v in numbers.items() if k != "samples"}
                print(row, split, " ".join(f"{k}={v:.3f}" for k, v in shown.items()), flush=True)
    given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
