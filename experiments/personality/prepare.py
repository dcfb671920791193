"""What the models of docs/results/personality.md are trained and tested with: tables of scores, and contexts.

    python experiments/personality/prepare.py --data DATA --out runs/made

`ocean.csv` has the scores of the characters as the recogniser sees them (Xing & Fernández 2018, section 3.1).
They lie close together, so `ocean-wide.csv` has them relative to the cast: each trait has mean 4 and standard
deviation 1. `extremes.csv` has the five types of section 5.2. `contexts.txt` are utterances, none twice, of
splits that no model was trained on (the paper: OpenSubtitles, not used in training either).
"""

from __future__ import annotations

import argparse
import csv
import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from palaver.corpora.catalogue import read_corpus
from palaver.corpora.personalities import TRAITS
from palaver.personality.plan import Settings
from palaver.personality.recogniser import load_recogniser
from palaver.reproduce.personality import EXTREMES
from palaver.reproduce.personality_examples import ocean_of_scripts

CORPORA = ("dailydialog", "cmu-dog", "switchboard", "mutual", "dream", "topical-chat")
LONGEST = 40


def contexts(data: Path, n: int) -> list[str]:
    """Utterances of up to 40 words outside the training splits, in random order."""
    found = [
        " ".join(turn.text.split())
        for name in CORPORA
        for dialogue in read_corpus(name, root=data)
        if dialogue.labels.get("split") != "train"
        for turn in dialogue.turns
    ]
    distinct = [text for text in dict.fromkeys(found) if 1 <= len(text.split()) <= LONGEST]
    random.Random(0).shuffle(distinct)
    return distinct[:n]


def wide(table: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    """Scores relative to the cast: mean 4, standard deviation 1, no further than 1 and 7."""
    scores = np.array(list(table.values()))
    relative = 4 + (scores - scores.mean(axis=0)) / scores.std(axis=0)
    return {name: tuple(row) for name, row in zip(table, np.clip(relative, 1, 7).tolist(), strict=True)}


def write_table(path: Path, table: Mapping[str, tuple[float, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("speaker", *TRAITS))
        rows.writerows((name, *(f"{score:.3f}" for score in scores)) for name, scores in table.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--contexts", type=int, default=40_000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    table = ocean_of_scripts(given.data / "scripts", load_recogniser(), Settings())
    write_table(given.out / "ocean.csv", table)
    write_table(given.out / "ocean-wide.csv", wide(table))
    write_table(given.out / "extremes.csv", EXTREMES)
    chosen = contexts(given.data, given.contexts)
    (given.out / "contexts.txt").write_text("".join(f"{text}\n" for text in chosen), encoding="utf-8")
    print(f"{len(table)} characters, {len(chosen):,} contexts")


if __name__ == "__main__":
    main()
