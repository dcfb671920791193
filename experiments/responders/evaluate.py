"""Perplexity and generated responses on Topical-Chat's test sets (Table 3 of Gopalakrishnan et al. 2019).

    python experiments/responders/evaluate.py runs/tf runs/tf-knowledge --data DATA --responses answers
    python experiments/responders/evaluate.py --responses answers --out results.json

The first step wants a GPU, the second none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import NamedTuple

import torch

from palaver.corpora.catalogue import read_corpus
from palaver.generation.decode import Decoding, decode, pad
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import select_for
from palaver.knowledge.selector import make_selector
from palaver.metrics.evaluate import evaluate
from palaver.models.pretrained import Responder, load
from palaver.models.turns import encode_knowledge, encode_turns, join_turns
from palaver.statistics.perplexity import Perplexity
from palaver.text.spelling import Spelling
from palaver.text.vocabulary import EOS, UNK, Vocabulary
from palaver.text.words import count_words

SPLITS = ("test_freq", "test_rare")
METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]


class Example(NamedTuple):
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
                rows.append(Example(tuple(texts[:i]), texts[i], pick.sentence if pick else ""))
    return rows


@torch.inference_mode()
def score(model: Responder, vocabulary: Vocabulary, some: list[Example]) -> dict[str, float]:
    """Perplexity per token and per word; the end counts as one of each, unknown words cost their spelling."""
    limits = model.config
    rows, n_words = [], 0
    for e in some:
        response = [*vocabulary.encode(e.response), EOS]
        n_words += 1 + count_words(e.response)
        if len(response) > limits.max_response:  # its end is not seen: neither are the words that are cut
            response = response[: limits.max_response]
            n_words += count_words(vocabulary.decode(response)) - count_words(e.response) - 1
        knowledge = encode_knowledge(vocabulary, [e.knowledge], limits.max_knowledge)[0].tokens
        history = join_turns(encode_turns(vocabulary, e.history), limits.max_context)
        rows.append((history.tokens, response, knowledge if limits.knowledge else []))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][1]))
    nll, n_tokens = 0.0, 0
    for begin in range(0, len(order), 256):
        batch = [rows[i] for i in order[begin : begin + 256]]
        context, response, knowledge = (pad([row[k] for row in batch], model.device) for k in range(3))
        cost = model(context, response, knowledge=knowledge if limits.knowledge else None)
        nll += float(cost.nll)
        n_tokens += int(cost.n_tokens)
    spelling = Spelling(vocabulary)
    spelled = sum(spelling.unknown(e.response, row[1]) for e, row in zip(some, rows, strict=True))
    unknown = sum(token == UNK for _, response, _ in rows for token in response)
    perplexity = Perplexity(nll, n_tokens, n_words, spelled)
    return {
        "ppl_token": perplexity.per_token,
        "ppl_word": perplexity.per_word,
        "unknown_share": unknown / n_tokens,
    }


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


def answer(run: Path, sets: dict[str, list[Example]], folder: Path) -> None:
    """Perplexities and responses of one run into `folder`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, vocabulary = load(run / "best", device=device)
    for split, some in sets.items():
        began = time.perf_counter()
        numbers: dict[str, object] = dict(score(model, vocabulary, some))
        how = Decoding(method="beam", beam_size=5, max_length=model.config.max_response)
        said = answers(model, vocabulary, some, how)
        numbers |= {"n": len(some), "seconds": time.perf_counter() - began, "device": device}
        (folder / f"{run.name}.{split}.json").write_text(json.dumps(numbers), encoding="utf-8")
        with gzip.open(folder / f"{run.name}.{split}.jsonl.gz", "wt", encoding="utf-8") as out:
            for e, response in zip(some, said, strict=True):
                row = {"history": e.history[-2:], "knowledge": e.knowledge, "true": e.response}
                out.write(json.dumps(row | {"said": response}) + "\n")


def measure(numbers_file: Path) -> dict[str, object]:
    """What `answer` kept of one run and set, with the metrics of its responses."""
    numbers: dict[str, object] = json.loads(numbers_file.read_text(encoding="utf-8"))
    with gzip.open(numbers_file.with_suffix(".jsonl.gz"), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    table = evaluate([row["said"] for row in rows], [row["true"] for row in rows], metrics=METRICS)
    numbers |= {row.name: [row.value, row.low, row.high] for row in table}
    numbers["samples"] = rows[:: max(1, len(rows) // 8)]
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--responses", type=Path, required=True, help="folder of what the runs answered")
    parser.add_argument("--out", type=Path, help="results of all that lies in --responses")
    parser.add_argument("--limit", type=int, default=0, help="only so many examples of each set")
    given = parser.parse_args()
    if given.runs:
        given.responses.mkdir(parents=True, exist_ok=True)
        sets = {split: examples(given.data, split, "oracle")[: given.limit or None] for split in SPLITS}
        for run in given.runs:
            if (run / "best").exists():
                answer(run, sets, given.responses)
            else:
                print(f"{run}: no model, left out")
    if given.out is None:
        return
    results: dict[str, dict[str, object]] = {}
    for numbers_file in sorted(given.responses.glob("*.test_*.json")):
        run_name, split = numbers_file.stem.split(".")
        numbers = results.setdefault(run_name, {})[split] = measure(numbers_file)
        shown = {k: v for k, v in numbers.items() if isinstance(v, float)}
        shown |= {k: v[0] for k, v in numbers.items() if isinstance(v, list) and isinstance(v[0], float)}
        print(run_name, split, " ".join(f"{k}={v:.3f}" for k, v in shown.items()), flush=True)
    given.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
