"""Topical-Chat's release through the tools of docs/how-to/collected-conversations.md, with planted faults.

    python experiments/collection/release.py --data DATA --out docs/results/collection.json

Sizes and splits are counted; the conversations are split again by our rule, and at random. The quality checks
run twice: on the release as it is, all of which its authors had accepted, and with a fault planted into one
side of some conversations.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from palaver.collection.labels import SPLITS, as_conversation, with_labels
from palaver.collection.quality import check_quality
from palaver.collection.split import describe_split, split_conversations
from palaver.collection.stats import count_conversations
from palaver.corpora.catalogue import read_corpus
from palaver.files import sha256_of
from palaver.knowledge.candidates import candidates_of, reading_set_of
from palaver.schema import Dialogue, Turn, record_run
from palaver.schema.run import plain

SEED = 0
N_PLANTED = 200
"""Conversations of each kind of fault."""
SIDE = "agent_1"
GERMAN = (
    "Das habe ich so noch nie gehört, erzähl mir mehr davon.",
    "Ich glaube, dass die Mannschaft in diesem Jahr gewinnen wird.",
    "Meine Schwester hat früher auch einmal dort gewohnt.",
    "Weißt du, wie lange es diesen Verein schon gibt?",
    "Nein, aber ich habe neulich etwas darüber gelesen.",
    "Wir sollten uns das Spiel am Sonntag zusammen ansehen.",
)

Fault = Callable[[int, Turn, Sequence[str]], Turn]
"""Makes a bad message of a good one: which of the side's it is, the message, and what the side had read."""


def say(turn: Turn, text: str) -> Turn:
    return turn.model_copy(update={"text": text})


@cache
def profane_word() -> str:
    lines = files("palaver.knowledge").joinpath("profanity.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line and not line.startswith("#"))


def annotate_alike(n: int, turn: Turn, read: Sequence[str]) -> Turn:
    return turn.model_copy(update={"knowledge": ("FS1",), "labels": {**turn.labels, "sentiment": "Neutral"}})


FAULTS: dict[str, Fault] = {
    "every message is a sentence of the reading set": lambda n, turn, read: say(turn, read[n % len(read)]),
    "every second message is one": lambda n, turn, read: turn if n % 2 else say(turn, read[n % len(read)]),
    "one or two words a message": lambda n, turn, read: say(turn, " ".join(turn.text.split()[:2]) or "Ok"),
    "says the same over and over": lambda n, turn, read: say(turn, f"{read[0]} Number {n}"),
    "writes German": lambda n, turn, read: say(turn, f"{GERMAN[n % len(GERMAN)]} {n}"),
    "swears in every fourth message": lambda n, turn, read: (
        turn if n % 4 else say(turn, f"{turn.text} {profane_word()}!")
    ),
    "annotates all messages alike": annotate_alike,
    "names no source": lambda n, turn, read: turn.model_copy(update={"knowledge": ("Personal Knowledge",)}),
    "annotates nothing": lambda n, turn, read: turn.model_copy(update={"knowledge": (), "labels": {}}),
}


def plant(dialogue: Dialogue, fault: Fault) -> Dialogue:
    """The conversation with one side spoilt."""
    read = candidates_of(reading_set_of(dialogue, SIDE)).sentences
    turns, n = [], 0
    for turn in dialogue.turns:
        if turn.speaker == SIDE:
            turn, n = fault(n, turn, read), n + 1
        turns.append(turn)
    return dialogue.model_copy(update={"turns": tuple(turns)})


def verdicts(dialogues: Sequence[Dialogue], side: str = "") -> dict[str, int]:
    """How many sides got which verdict; of all sides, or of one."""
    quality = check_quality([as_conversation(dialogue) for dialogue in dialogues])
    counts = Counter(s.verdict for s in quality.sides if side in ("", s.seat))
    return {verdict: counts[verdict] for verdict in ("accepted", "review", "rejected")}


def at_random(dialogues: Sequence[Dialogue], rng: np.random.Generator) -> list[Dialogue]:
    """The same sizes without a rule: 5 % for each smaller set."""
    size = len(dialogues) // 20
    names = [name for name in SPLITS[1:] for _ in range(size)]
    names += [SPLITS[0]] * (len(dialogues) - len(names))
    order = rng.permutation(len(dialogues))
    return [
        with_labels(d, {**d.labels, "split": names[place]}) for d, place in zip(dialogues, order, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    begun = time.monotonic()
    dialogues = list(read_corpus("topical-chat", root=given.data))
    rng = np.random.default_rng(SEED)
    sample = [dialogues[place] for place in rng.permutation(len(dialogues))]
    usable = [d for d in sample if len(candidates_of(reading_set_of(d, SIDE)).sentences) >= 20][:N_PLANTED]
    quality = check_quality([as_conversation(dialogue) for dialogue in dialogues])
    splits = {
        "release": dialogues,
        "ours": split_conversations(dialogues, seed=SEED),
        "ours, articles not kept together": split_conversations(dialogues, together=(), seed=SEED),
        "at random": at_random(dialogues, rng),
    }
    paths = sorted((given.data / "topical_chat").rglob("*.json.gz"))
    content = {
        "command": "python experiments/collection/release.py --data DATA --out docs/results/collection.json",
        "run": record_run(
            "collection",
            seed=SEED,
            config={"planted": N_PLANTED, "side": SIDE},
            data={str(path.relative_to(given.data)): sha256_of(path) for path in paths},
            packages=("palaver", "numpy"),
        ).model_dump(mode="json"),
        "hardware": f"{platform.machine()}, {os.cpu_count()} cores",
        "sizes": count_conversations(dialogues).sizes,
        "splits": {name: describe_split(parted).rows for name, parted in splits.items()},
        "conversations": quality.counts,
        "sides": verdicts(dialogues),
        "checks": quality.checks,
        "planted": {
            "unchanged": verdicts(usable, SIDE),
            **{name: verdicts([plant(d, fault) for d in usable], SIDE) for name, fault in FAULTS.items()},
        },
    }
    content["seconds"] = round(time.monotonic() - begun)
    given.out.write_text(json.dumps(plain(content), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
