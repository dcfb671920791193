"""The figures of Topical-Chat's Tables 3 and 5 from what `topical_chat.py test` wrote.

    python experiments/responders/evaluate.py --from OUT --carried carry/tables --out results.json

Perplexity per token and per word: the end of a response counts as one of each, unknown words cost their
spelling. Intervals are over conversations for perplexity and over responses for the rest. Replies to the
sentences of another selector than the oracle are rows called tf-knowledge/tfidf. `palaver reproduce
topical-chat --runs results.json` prints the tables.
"""

from __future__ import annotations

import argparse
import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from topical_chat import LIMITS, ROWS, SELECTORS, TESTS, plain_command, read_rows

from palaver.metrics.evaluate import evaluate
from palaver.statistics.perplexity import corpus_perplexity
from palaver.text.spelling import Spelling
from palaver.text.vocabulary import EOS, UNK, Vocabulary
from palaver.text.words import count_words

METRICS = ["unigram_f1", "diversity_1", "diversity_2", "distinct_1", "distinct_2", "words"]


class Turn(NamedTuple):
    """A response of the test set."""

    dialogue: str
    response: str


def read_turns(carried: Path, split: str) -> list[Turn]:
    """In the order of the examples that were tested."""
    turns = []
    for row in read_rows(carried / f"{split}.jsonl.xz"):
        texts = [text.strip() for text in row["turns"]]
        for i in range(1, len(texts)):
            if texts[i] and any(texts[:i]):
                turns.append(Turn(row["id"], texts[i]))
    return turns


class Words:
    """How many tokens and words of each response were scored, and what its unknown words cost on top."""

    def __init__(self, turns: list[Turn], vocabulary: Vocabulary, longest: int) -> None:
        spelling = Spelling(vocabulary)
        self.n_tokens, self.n_words, self.spelled, self.n_unknown = [], [], [], 0
        for turn in turns:
            response = [*vocabulary.encode(turn.response), EOS]
            n_words = 1 + count_words(turn.response)
            if len(response) > longest:  # neither its end nor the words behind are scored
                response = response[:longest]
                n_words = count_words(vocabulary.decode(response))
            self.n_tokens.append(len(response))
            self.n_words.append(n_words)
            self.spelled.append(spelling.unknown(turn.response, response))
            self.n_unknown += sum(token == UNK for token in response)


def measure_perplexity(nll: np.ndarray, turns: list[Turn], words: Words) -> dict[str, Any]:
    """Over conversations."""
    n_tokens, n_words, n_unknown = words.n_tokens, words.n_words, words.n_unknown
    table = np.column_stack([nll, nll + np.array(words.spelled), n_tokens, n_words])  # (turns, 4)
    sizes = [len(list(own)) for _, own in groupby(turns, key=lambda turn: turn.dialogue)]
    sums = np.add.reduceat(table, np.cumsum([0, *sizes[:-1]]))  # (conversations, 4)
    per_word = corpus_perplexity(sums[:, 1], sums[:, 2], sums[:, 3])
    interval = per_word.per_word_interval
    assert interval is not None
    return {
        "ppl_word": [per_word.per_word, interval.low, interval.high],
        "ppl_token": corpus_perplexity(sums[:, 0], sums[:, 2], sums[:, 3]).per_token,
        "unknown_share": n_unknown / sum(n_tokens),
        "n_conversations": len(sizes),
    }


def measure(arrays: Any, key: str, turns: list[Turn], words: Words, vocabulary: Vocabulary) -> dict[str, Any]:
    """All columns of one row and test set."""
    nll = arrays[f"{key}.nll"]
    turns = turns[: len(nll)]
    if len(turns) < len(nll) or len(words.n_tokens) < len(nll):
        raise SystemExit(f"{key}: {len(nll)} responses were scored, the test set has {len(turns)}")
    lengths = arrays[f"{key}.lengths"]
    tokens = np.split(arrays[f"{key}.tokens"], np.cumsum(lengths)[:-1])
    replies = [vocabulary.decode(own.tolist()) for own in tokens]
    numbers = measure_perplexity(nll, turns, words)
    table = evaluate(replies, [turn.response for turn in turns], metrics=METRICS)
    numbers |= {row.name: [row.value, row.low, row.high] for row in table}
    numbers |= {"n": len(turns), "seconds": float(arrays[f"{key}.seconds"])}
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", type=Path, required=True, dest="tested")
    parser.add_argument("--carried", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    turns = {split: read_turns(given.carried, split) for split in TESTS}
    words: dict[tuple[str, str], Words] = {}
    results: dict[str, dict[str, Any]] = {}
    for name in ROWS:
        about, tested = given.tested / f"{name}.json", given.tested / f"{name}.npz"
        if not about.is_file():
            print(f"{name}: no training, left out")
            continue
        training = json.loads(about.read_text(encoding="utf-8"))
        training["command"] = plain_command(training.get("command", "").split(" "))
        training["notes"] = [re.sub(r"/\S*/runs/", "runs/", note) for note in training.get("notes", [])]
        results[name] = {**training, "test": {}}
        if not tested.is_file():
            continue
        vocabulary = Vocabulary.load(given.tested / ROWS[name])
        arrays = np.load(tested)
        for selector in SELECTORS:
            row = name if selector == "oracle" else f"{name}/{selector}"
            for split in TESTS:
                key = split if selector == "oracle" else f"{selector}.{split}"
                if f"{key}.seconds" not in arrays:
                    continue
                known = (ROWS[name], split)
                if known not in words:
                    n_tested = len(arrays[f"{key}.nll"])
                    longest = LIMITS[ROWS[name]].response
                    words[known] = Words(turns[split][:n_tested], vocabulary, longest)
                numbers = measure(arrays, key, turns[split], words[known], vocabulary)
                results.setdefault(row, {"epochs": training["epochs"], "end": training["end"], "test": {}})
                results[row]["test"][split] = numbers
                shown = {k: v[0] if isinstance(v, list) else v for k, v in numbers.items()}
                print(row, split, " ".join(f"{k}={v:.3f}" for k, v in shown.items()), flush=True)
    given.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
