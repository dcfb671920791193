"""What the shipped Speaker and Personality models learn from: corpora whose licence allows passing them on.

Self-dialogue has no named people. For the Speaker model a character is everybody who talked about one thing:
the film fan, the music fan and so on; the barista is Taskmaster's assistant, the well-read friend the Turkers
of Topical-Chat. For the Personality model the two sides of every dialogue are sorted into 48 voices of
similar estimated OCEAN scores. The estimate is a stand-in (ridge regression from frequent words to the scores
that a published recogniser gave to essays), and of 80 words a noisy one: enough to show a range, no more.

    python experiments/responders/characters.py --data DATA --out FOLDER
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_predict

from palaver.corpora.catalogue import read_corpus
from palaver.readers import write_dialogues
from palaver.schema import Dialogue, Turn
from palaver.text.words import words

FANS = {
    "film fan": (
        "movies",
        "thriller",
        "action",
        "comedy",
        "horror",
        "superhero",
        "fast_furious",
        "harry_potter",
    ),
    "music fan": ("music", "beatles", "pop", "rap_hiphop", "rock", "lady_gaga"),
    "football fan": ("nfl_football",),
    "sports fan": ("baseball", "basketball", "icehockey"),
    "disney fan": ("disney",),
    "star wars fan": ("star_wars",),
}
N_VOICES = 48
TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
COLUMNS = ("mair_O", "mair_C", "mair_E", "mair_A", "mair_ES")
"""The last is called stability, but rises with anxious words and labels of neuroticism: it is that."""


def renamed(dialogue: Dialogue, names: dict[str, str]) -> Dialogue:
    turns = tuple(Turn(speaker=names[turn.speaker], text=turn.text) for turn in dialogue.turns)
    return Dialogue(id=dialogue.id, turns=turns, source=dialogue.source)


def dialogues(data: Path) -> Iterator[Dialogue]:
    """Every dialogue with its speakers renamed to characters."""
    by_topic = {topic: fan for fan, topics in FANS.items() for topic in topics}
    for dialogue in read_corpus("self-dialogue", root=data):
        fan = by_topic.get(str(dialogue.labels.get("topic")))
        if fan:
            yield renamed(dialogue, dict.fromkeys(dialogue.speakers, fan))
    for dialogue in read_corpus("taskmaster4", root=data):
        yield renamed(dialogue, {"user": "customer", "assistant": "barista"})
    for dialogue in read_corpus("topical-chat", root=data, split="train"):
        yield renamed(dialogue, dict.fromkeys(dialogue.speakers, "well-read friend"))


def shares(texts: list[str], vocabulary: list[str]) -> np.ndarray:
    """How often each word is used: one row for all texts together."""
    counts = Counter(word for text in texts for word in words(text))
    total = max(1, sum(counts.values()))
    return np.array([counts[word] / total for word in vocabulary])


def stand_in(essays: Path) -> tuple[RidgeCV, list[str], np.ndarray, np.ndarray]:
    """Ridge from the 400 most frequent words to the recogniser's scores; prints how well it does held out."""
    with gzip.open(essays, "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["match_ok"] == "True"]
    counts = Counter(word for row in rows for word in words(row["text"]))
    vocabulary = [word for word, _ in counts.most_common(400)]
    x = np.array([shares([row["text"]], vocabulary) for row in rows])
    y = np.array([[float(row[column]) for column in COLUMNS] for row in rows])
    mean, spread = x.mean(0), x.std(0) + 1e-9
    model = RidgeCV(alphas=np.logspace(1, 4, 10))
    held_out = cross_val_predict(model, (x - mean) / spread, y, cv=10)
    correlations = [f"{t} {np.corrcoef(held_out[:, i], y[:, i])[0, 1]:.2f}" for i, t in enumerate(TRAITS)]
    print(f"stand-in recogniser, {len(rows)} essays, correlations held out: {', '.join(correlations)}")
    return model.fit((x - mean) / spread, y), vocabulary, mean, spread


def voices(talks: list[Dialogue], essays: Path) -> tuple[list[Dialogue], dict[str, np.ndarray]]:
    """The dialogues with each side renamed to its voice, and the voices' mean scores."""
    model, vocabulary, mean, spread = stand_in(essays)
    sides = [(d, s) for d in talks for s in d.speakers]
    x = np.array([shares([t.text for t in d.turns if t.speaker == s], vocabulary) for d, s in sides])
    scores = np.clip(model.predict((x - mean) / spread), 1, 7)
    groups = KMeans(N_VOICES, random_state=1, n_init=3).fit_predict(scores)
    names = {(d.id, s): f"voice {group + 1:02}" for (d, s), group in zip(sides, groups, strict=True)}
    table = {f"voice {g + 1:02}": scores[groups == g].mean(0) for g in range(N_VOICES)}
    return [renamed(d, {s: names[d.id, s] for s in d.speakers}) for d in talks], table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    write_dialogues(dialogues(given.data), given.out / "characters.jsonl")
    essays = given.data / "personality/essays_with_mairesse_scores.csv.gz"
    renamed_to_voices, table = voices(list(read_corpus("self-dialogue", root=given.data)), essays)
    write_dialogues(renamed_to_voices, given.out / "voices.jsonl")
    with (given.out / "voices.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("speaker", *TRAITS))
        rows.writerows(
            (name, *(f"{score:.3f}" for score in scores)) for name, scores in sorted(table.items())
        )
    every = np.array(list(table.values()))
    for trait, low, high in zip(TRAITS, every.min(0), every.max(0), strict=True):
        print(f"{trait:<18} voices from {low:.2f} to {high:.2f}")


if __name__ == "__main__":
    main()
