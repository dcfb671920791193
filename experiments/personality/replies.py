"""What is behind the figures of characters on SmolLM2: docs/results/personality-replies.json.

    python experiments/personality/replies.py --data DATA --responses OUT
        --models smollm-speaker,smollm-speaker-guided-1,smollm-personality,smollm-personality-guided-1
        --out docs/results/personality-replies.json

A character can be told apart by little. So of each model: how long its replies are, how many differ, how
many say a thing twice, what SmolLM2 finds of some of them, which words tell its characters apart, and F1 on
unseen contexts

- by the length of replies alone (of the transcripts, too),
- without the three most telling words of each character,
- of replies that are dealt out anew, where each character begins some with a word of its own: no character at
  all but a catch word,
- of half the contexts, with samples of 250: whether fewer contexts make it easier.

Each is the short form of measure.py, without an interval. Needs SmolLM2.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import platform
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import guidance  # type: ignore[import-not-found]
import measure  # type: ignore[import-not-found]
import numpy as np
import prepare  # type: ignore[import-not-found]
from scipy.sparse import csr_matrix

from palaver.corpora.catalogue import read_corpus
from palaver.files import sha256_of
from palaver.models.likelihood import open_language_model
from palaver.personality.plan import Settings
from palaver.personality.pools import Choice, Pools
from palaver.personality.protocol import run_protocol
from palaver.personality.recogniser import load_recogniser
from palaver.personality.samples import CountVectors
from palaver.personality.sources import read_pools
from palaver.reproduce.personality import DROPPED, SHOWS
from palaver.text.words import count_words, join_words, words

SETTINGS = replace(measure.SETTINGS, replicates=0)
N_TELLING = 3
LEAST = 30
"""Replies of a show that a telling word is in."""
CATCH_WORDS = ("Oh", "Yeah", "Well", "What", "Hey", "Okay", "Really")
CATCH_SHARES = (10, 3)
"""One reply in so many begins with the character's own word."""
N_COMMON = 10

Row = dict[str, Any]


class Length:
    """In place of a recogniser: the number of words."""

    name = "length"

    def count(self, utterances: Sequence[str]) -> csr_matrix:
        return csr_matrix([[count_words(text)] for text in utterances], dtype=np.float64)

    def score(self, totals: np.ndarray) -> np.ndarray:
        return totals


def by_length(pools: Pools) -> Pools:
    """Samples are told apart by their number of words and nothing else."""
    assert isinstance(pools.traits, CountVectors)
    return replace(pools, traits=replace(pools.traits, score=None))


def f1(pools: Pools, settings: Settings = SETTINGS) -> dict[str, float | None]:
    """On unseen contexts, beside that of pseudo-characters."""
    row = measure.summary(run_protocol(pools, settings))
    return {"by_group": row["by_group"], "pseudo_by_group": row["pseudo_by_group"]}


def repeats(text: str) -> bool:
    """Whether three words in a row come twice: "I'm going. I'm going."."""
    said = [word for word in words(text) if any(map(str.isalpha, word))]
    runs = list(zip(said, said[1:], said[2:], strict=False))
    return len(set(runs)) < len(runs)


def shares(rows: Iterable[Row]) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Character -> word -> replies that have it; character -> replies."""
    n_with: dict[str, Counter[str]] = defaultdict(Counter)
    n_replies: Counter[str] = Counter()
    for row in rows:
        n_replies[row["speaker"]] += 1
        n_with[row["speaker"]].update({w for w in words(row["response"]) if any(map(str.isalpha, w))})
    return n_with, n_replies


def telling_words(rows: Sequence[Row], turns: Mapping[str, Sequence[str]]) -> dict[str, list[dict[str, Any]]]:
    """Character -> the words that more of its replies have than others', by log odds over their error.

    Beside them the share of its own turns in the transcripts that have the word.
    """
    n_with, n_replies = shares(rows)
    n_turns_with, n_turns = shares(
        {"speaker": who, "response": text} for who, texts in turns.items() for text in texts
    )
    total: Counter[str] = sum(n_with.values(), Counter())
    found = {}
    for who, counts in n_with.items():
        n, n_others = n_replies[who], len(rows) - n_replies[who]

        def score(word: str, counts: Counter[str] = counts, n: int = n, m: int = n_others) -> float:
            own, others = counts[word] + 0.5, total[word] - counts[word] + 0.5
            odds = math.log(own / (n - own + 1)) - math.log(others / (m - others + 1))
            return odds / math.sqrt(1 / own + 1 / others)

        best = sorted((w for w in counts if total[w] >= LEAST), key=score, reverse=True)[:N_TELLING]
        found[who] = [
            {
                "word": word,
                "share": measure.number(counts[word] / n),
                "others": measure.number((total[word] - counts[word]) / n_others),
                "transcripts": measure.number(n_turns_with[who][word] / n_turns[who]),
            }
            for word in best
        ]
    return found


def without(rows: Iterable[Row], taken: set[str]) -> list[Row]:
    """The same replies, some words taken out; replies with no others are gone."""
    kept = [
        row | {"response": join_words([w for w in words(row["response"]) if w not in taken])} for row in rows
    ]
    return [row for row in kept if row["response"]]


def with_catch_words(rows: Iterable[Row], one_in: int) -> list[Row]:
    """Replies of each context dealt out anew, and every so many begin with a word of the character."""
    rng = random.Random(0)
    by_context: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_context[row["id"]].append(row)
    dealt = []
    for same in by_context.values():
        said = [row["response"] for row in same]
        rng.shuffle(said)
        for k, (row, text) in enumerate(zip(same, said, strict=True)):
            own = f"{CATCH_WORDS[k]}, " if rng.randrange(one_in) == 0 else ""
            dealt.append(row | {"response": own + text})
    return dealt


def describe_show(
    rows: Sequence[Row], turns: Mapping[str, Sequence[str]], recogniser: Any, work: Path
) -> dict[str, Any]:
    """F1 of the characters of one show, by what else there is. `turns` are theirs in the transcripts."""
    who = tuple(turns)
    own = [row for row in rows if row["speaker"] in who]
    others = [row for row in rows if row["speaker"] not in who]
    n_contexts = len({row["id"] for row in rows})
    told = telling_words(own, turns)
    taken = {word["word"] for each in told.values() for word in each}
    small = replace(SETTINGS, size=SETTINGS.size // 2)

    def pools(own: Sequence[Row], reader: Any = recogniser) -> Pools:
        """With all characters in the file, since responses that are common to all are dropped."""
        path = work / "replies.jsonl"
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in (*own, *others))
        path.write_text("".join(lines), encoding="utf-8")
        return read_pools(path, reader, Choice(drop_common=DROPPED), n_words=0).only(who)

    n_words: Counter[str] = Counter()
    for row in own:
        n_words[row["speaker"]] += count_words(row["response"])
    return {
        "as_it_is": f1(pools(own)),
        "length_alone": f1(by_length(pools(own, Length()))),
        "without_telling_words": f1(pools(without(own, taken))),
        "catch_words": {str(n): f1(pools(with_catch_words(own, n))) for n in CATCH_SHARES},
        "samples_of_250": f1(pools(own), small),
        "half_the_contexts": f1(pools([row for row in own if int(row["id"]) <= n_contexts // 2]), small),
        "words": {name: measure.number(n / n_contexts) for name, n in n_words.items()},
        "telling_words": told,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--responses", type=Path, required=True)
    parser.add_argument("--models", type=measure.listed, required=True)
    parser.add_argument("--work", type=Path, default=Path("runs/replies"))
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    n_contexts = measure.common_contexts(given.responses, given.models)
    texts = prepare.contexts(given.data, n_contexts)
    reader, recogniser = open_language_model("smollm2"), load_recogniser()
    gold: dict[str, Any] = {}
    turns: dict[str, dict[str, list[str]]] = {}
    for show, title in SHOWS.items():
        pools = read_pools(show, Length(), Choice(), root=given.data, n_words=0)
        turns[title] = {who: [] for who in pools.characters}
        for dialogue in read_corpus(show, root=given.data):
            for turn in dialogue.turns:
                if turn.speaker in turns[title]:
                    turns[title][turn.speaker].append(turn.text)
        gold[title] = {"length_alone": f1(by_length(pools)), "turns": pools.label.size}
        print(title, gold[title], flush=True)
    models = {}
    for name in given.models:
        with gzip.open(given.responses / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [row for row in map(json.loads, file) if int(row["id"]) <= n_contexts]
        said = Counter(row["response"] for row in rows)
        common = sum(n for _, n in said.most_common(N_COMMON))
        models[name] = guidance.describe(rows, texts, reader) | {
            "most_common": measure.number(common / len(rows)),
            "repeating": measure.number(sum(repeats(row["response"]) for row in rows) / len(rows)),
            "shows": {
                title: describe_show(rows, turns[title], recogniser, given.work) for title in SHOWS.values()
            },
        }
        print(name, models[name], flush=True)
    content = {
        "command": "python experiments/personality/replies.py --data DATA --responses OUT "
        f"--models {','.join(given.models)} --out docs/results/{given.out.name}",
        "date": datetime.now(UTC).date().isoformat(),
        "seed": 0,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "data": {
            f"{name}.jsonl.gz": sha256_of(given.responses / f"{name}.jsonl.gz") for name in given.models
        },
        "contexts": n_contexts,
        "settings": {
            "samples": SETTINGS.samples,
            "repetitions": SETTINGS.repetitions,
            "scored": guidance.N_SCORED,
        }
        | {"dropped_common_responses": DROPPED, "catch_words": CATCH_WORDS, "telling_words": N_TELLING},
        "reader": reader.name,
        "transcripts": gold,
        "models": models,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
