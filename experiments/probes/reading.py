"""What the sentence models are trained on: dialogue turns, pairs for inference, GloVe vectors.

Nothing here is a sentence of the probes: dialogues are other text, and of the inference pairs every one is
left out that shares a sentence, or the picture's caption a sentence was made from, with a triplet.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palaver.models.sentence.sentence_model import Words
from palaver.text.words import words

LABELS = {"entailment": 0, "neutral": 1, "contradiction": 2}


def opened(path: Path) -> io.TextIOBase:
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8", errors="replace")  # type: ignore[return-value]


@dataclass
class Text:
    """Turns of dialogues as rows of words: `turns[begin[i]:begin[i + 1]]` is dialogue i."""

    turns: list[list[str]] = field(default_factory=list)
    begin: list[int] = field(default_factory=lambda: [0])
    counts: Counter[str] = field(default_factory=Counter)

    def rows(self, vocabulary: Words, length: int) -> NDArray[np.int32]:
        """(turns, length) numbers of words, 0 after the end; a turn has at least one."""
        rows = np.zeros((len(self.turns), length), dtype=np.int32)
        numbers = vocabulary.numbers
        for row, turn in zip(rows, self.turns, strict=True):
            ids = [numbers.get(word, 1) for word in turn[:length]] or [1]
            row[: len(ids)] = ids
        return rows

    def middles(self) -> NDArray[np.int64]:
        """The numbers of the turns that have a turn before and after them in their dialogue."""
        return np.concatenate(
            [np.arange(a + 1, b - 1) for a, b in zip(self.begin, self.begin[1:], strict=False)]
            or [np.zeros(0)]
        ).astype(np.int64)


def _read_dialogues(job: tuple[Path, int]) -> list[list[str]]:
    path, limit = job
    dialogues = []
    with opened(path) as file:
        for line in file:
            if limit and len(dialogues) >= limit:
                break
            dialogues.append([" ".join(words(turn["t"])[:60]) for turn in json.loads(line)["turns"]])
    return dialogues


def read_text(folder: Path, limit: int = 0, workers: int = 1) -> Text:
    """All dialogues of `folder` (*.jsonl, *.jsonl.gz), at most `limit` of each file."""
    files = sorted(folder.glob("*.jsonl.gz")) + sorted(folder.glob("*.jsonl"))
    if not files:
        raise SystemExit(f"no dialogues (*.jsonl.gz) in {folder}")
    text = Text()
    jobs = [(path, limit) for path in files]
    with Pool(workers) as pool:
        for dialogues in pool.imap(_read_dialogues, jobs):
            for dialogue in dialogues:
                turns = [turn.split() for turn in dialogue]
                text.turns += turns
                text.begin.append(len(text.turns))
                for turn in turns:
                    text.counts.update(turn)
    return text


@dataclass
class Pairs:
    """Premise, hypothesis and label, and what was left out."""

    rows: list[tuple[str, str, int]] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def key(text: str) -> str:
    return " ".join(w for w in words(text) if any(c.isalnum() for c in w))


def read_pairs(folder: Path, triplets: Path | None) -> Pairs:
    """cad_nli_train and the training part of SICK, without whatever the triplets hold."""
    banned, captions = set(), set()
    if triplets is not None:
        with opened(triplets) as file:
            for line in file:
                row = json.loads(line)
                banned |= {key(row[name]) for name in ("original", "plus", "star", "source") if name in row}
    sick = list(_sick(folder))
    for a, b, _, caption_a, caption_b, _ in sick:
        captions |= {c for text, c in ((a, caption_a), (b, caption_b)) if key(text) in banned}
    pairs = Pairs()
    for a, b, label in _cad(folder):
        if key(a) in banned or key(b) in banned:
            pairs.left_out["cad_nli: a sentence of the triplets"] += 1
        else:
            pairs.rows.append((a, b, label))
            pairs.sources["cad_nli"] += 1
    for a, b, label, caption_a, caption_b, part in sick:
        if part != "TRAIN":
            pairs.left_out["SICK: not of the training part"] += 1
        elif key(a) in banned or key(b) in banned:
            pairs.left_out["SICK: a sentence of the triplets"] += 1
        elif caption_a in captions or caption_b in captions:
            pairs.left_out["SICK: made from a caption of the triplets"] += 1
        else:
            pairs.rows.append((a, b, label))
            pairs.sources["SICK"] += 1
    return pairs


def _cad(folder: Path) -> Iterator[tuple[str, str, int]]:
    for name in ("cad_nli_train.tsv.gz", "cad_nli_train.tsv"):
        if (folder / name).is_file():
            with opened(folder / name) as file:
                for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                    if row["gold_label"] in LABELS:
                        yield row["sentence1"], row["sentence2"], LABELS[row["gold_label"]]
            return


def _sick(folder: Path) -> Iterator[tuple[str, str, int, str, str, str]]:
    for name in ("SICK_full.txt.gz", "SICK_full.txt", "SICK.txt"):
        if (folder / name).is_file():
            with opened(folder / name) as file:
                for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                    a, b, label = (
                        row["sentence_A"],
                        row["sentence_B"],
                        LABELS[row["entailment_label"].lower()],
                    )
                    yield (
                        a,
                        b,
                        label,
                        row["sentence_A_original"],
                        row["sentence_B_original"],
                        row["SemEval_set"],
                    )
            return


def read_glove(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Words and vectors of an .npz with `words` and `vecs`."""
    with np.load(path) as file:
        return [str(word) for word in file["words"]], file["vecs"].astype(np.float32)


def glove_words(path: Path, counts: Counter[str], size: int) -> tuple[Words, NDArray[np.float32]]:
    """`size` words with a vector: those of the text by how frequent they are, then GloVe's most frequent."""
    known, vectors = read_glove(path)
    at = {word: n for n, word in enumerate(known)}
    frequent = [word for word, n in counts.most_common() if n >= 5 and word in at]
    chosen = list(dict.fromkeys([*frequent[: size - size // 4], *known]))[:size]
    table = np.concatenate(
        [np.zeros((2, vectors.shape[1]), np.float32), vectors[[at[word] for word in chosen]]]
    )
    table[1] = table[2:].mean(0)  # a word that is not known
    return Words(chosen), table


def shuffled(n: int, seed: int) -> list[int]:
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return order
