"""What the models of docs/results/personality.md are trained and tested with, as one folder.

    python experiments/personality/prepare.py --data DATA --out carry/characters

- `talk.jsonl.xz`: what the bases learn from, other talk than the scripts;
- `friends.jsonl.xz`, `big-bang-theory.jsonl.xz`: the scripts;
- `bpe/`, `words/`: the vocabularies of the two bases, made of the talk;
- `ocean.csv`: the scores of the characters as the recogniser sees them (Xing & Fernández 2018, section 3.1);
- `ocean-wide.csv`: the same relative to the cast, for they lie close together: each trait has mean 4 and
  standard deviation 1;
- `extremes.csv`: the five types of section 5.2;
- `requests.csv`, `requests-wide.csv`: personalities that nobody has, for trait fidelity. Each trait has the
  mean and the standard deviation of the cast, and the five traits are independent of each other;
- `contexts.txt`: utterances, none twice, of splits that no model was trained on (the paper: OpenSubtitles,
  not used in training either).

The folder is small enough to be carried to a machine with a GPU, where `models.py` needs only torch,
accelerate, tokenizers, safetensors and pydantic (whose wheels may lie in the folder, too).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import NormalDist

import numpy as np

from palaver.corpora.catalogue import read_corpus
from palaver.corpora.personalities import TRAITS, write_ocean_table
from palaver.personality.recogniser import load_recogniser
from palaver.personality.table import estimate_table
from palaver.reproduce.personality import EXTREMES, SHOWS
from palaver.schema import Dialogue
from palaver.text.vocabulary import Vocabulary

TALK = {
    "self-dialogue": None,
    "dailydialog": "train",
    "switchboard": "train",
    "mutual": "train",
    "dream": "train",
    "commonsense-dialogues": None,
    "taskmaster4": None,
    "topical-chat": "train",
}
"""Corpus -> split. CMU DoG is left out, for the folder is to be small."""
ASKED = ("dailydialog", "cmu-dog", "switchboard", "mutual", "dream", "topical-chat")
LONGEST = 40
N_REQUESTS = 64

Table = Mapping[str, tuple[float, ...]]


def contexts(data: Path, n: int) -> list[str]:
    """Utterances of up to 40 words outside the training splits, in random order."""
    texts = [
        " ".join(turn.text.split())
        for name in ASKED
        for dialogue in read_corpus(name, root=data)
        if dialogue.labels.get("split") != "train"
        for turn in dialogue.turns
    ]
    distinct = [text for text in dict.fromkeys(texts) if 1 <= len(text.split()) <= LONGEST]
    random.Random(0).shuffle(distinct)
    return distinct[:n]


def requests(table: Table, n: int = N_REQUESTS) -> dict[str, tuple[float, ...]]:
    """Personalities around the mean of a table, as far from it as its rows are, traits independent."""
    scores = np.array(list(table.values()))
    rng = np.random.default_rng(0)
    quantiles = np.array([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])
    z = np.stack([rng.permutation(quantiles) for _ in TRAITS], axis=1)
    asked = np.clip(scores.mean(axis=0) + z * scores.std(axis=0), 1, 7)
    return {f"request {i:02}": tuple(row) for i, row in enumerate(asked.tolist(), start=1)}


def write_talk(path: Path, dialogues: Iterator[Dialogue]) -> int:
    """JSON lines of turns; the number of pairs of a turn and its answer."""
    n_pairs = 0
    with lzma.open(path, "wt", encoding="utf-8", preset=6) as file:
        for number, dialogue in enumerate(dialogues):
            turns = [{"s": turn.speaker, "t": " ".join(turn.text.split())} for turn in dialogue.turns]
            file.write(json.dumps({"id": str(number), "turns": turns}, ensure_ascii=False) + "\n")
            n_pairs += max(0, len(turns) - 1)
    return n_pairs


def talk(data: Path) -> Iterator[Dialogue]:
    for name, split in TALK.items():
        yield from read_corpus(name, root=data, split=split)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--contexts", type=int, default=20_000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    estimates = estimate_table(tuple(SHOWS), load_recogniser(), root=given.data)
    table, wide = estimates.scores(), estimates.scores(relative=True)
    write_ocean_table(given.out / "ocean.csv", table)
    write_ocean_table(given.out / "ocean-wide.csv", wide)
    write_ocean_table(given.out / "extremes.csv", EXTREMES)
    write_ocean_table(given.out / "requests.csv", requests(table))
    write_ocean_table(given.out / "requests-wide.csv", requests(wide))
    chosen = contexts(given.data, given.contexts)
    (given.out / "contexts.txt").write_text("".join(f"{text}\n" for text in chosen), encoding="utf-8")
    print(f"{len(table)} characters, {len(chosen):,} contexts")
    for show in SHOWS:
        n_pairs = write_talk(given.out / f"{show}.jsonl.xz", read_corpus(show, root=given.data))
        print(f"{show}: {n_pairs:,} pairs")
    print(f"talk: {write_talk(given.out / 'talk.jsonl.xz', talk(given.data)):,} pairs")
    for kind, size, folder in (("bpe", 16_000, "bpe"), ("word", 25_000, "words")):
        texts = (turn.text for dialogue in talk(given.data) for turn in dialogue.turns)
        Vocabulary.train(texts, kind=kind, size=size).save(given.out / folder)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
