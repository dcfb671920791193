"""DailyDialog (Li et al. 2017) as its authors pack it: a line is a dialogue, utterances end in `__eou__`.

`dialogues_text.txt` holds all of them, `train/dialogues_train.txt` and its like one split each. Beside them
stand files with as many lines: a number per utterance for the act and the emotion, one per dialogue for the
topic (only of the whole).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from palaver.corpora.reading import (
    alternate,
    build,
    in_split,
    named,
    normal_split,
    split_labels,
    text_lines,
)
from palaver.errors import DataError
from palaver.readers.shapes import Tally
from palaver.schema import Dialogue

END = "__eou__"
ACTS = ("", "inform", "question", "directive", "commissive")
EMOTIONS = ("no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise")
TOPICS = (
    "",
    "Ordinary Life",
    "School Life",
    "Culture & Education",
    "Attitude & Emotion",
    "Relationship",
    "Tourism",
    "Health",
    "Work",
    "Politics",
    "Finance",
)
SPEAKERS = ("user", "system")
"""As in the copies that are passed around; the authors name nobody."""


def read_splits(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """The three splits, from `…/train/dialogues_train.txt`."""
    folder = path.parent.parent
    for name in ("train", "validation", "test"):
        file = named(folder / name, f"dialogues_{name}.txt")
        if file is None:
            tally[f"split files that are missing ({name})"] += 1
        elif in_split(normal_split(name), split):
            yield from _read(file, name, tally)


def read_whole(path: Path, split: str | None, tally: Tally) -> Iterator[Dialogue]:
    """All dialogues of `dialogues_text.txt`, which knows no splits."""
    yield from _read(path, "", tally)


def _read(path: Path, name: str, tally: Tally) -> Iterator[Dialogue]:
    prefix, suffix = ("dialogues_", f"_{name}.txt") if name else ("dialogues_", ".txt")
    beside = {kind: named(path.parent, f"{prefix}{kind}{suffix}") for kind in ("act", "emotion", "topic")}
    files = {kind: text_lines(file, tally) for kind, file in beside.items() if file is not None}
    for row in zip_longest(text_lines(path, tally), *files.values()):
        if None in row:
            raise DataError(f"{path}: the files beside it have another number of lines", "is one cut short?")
        (number, line), *others = row
        place = f"{path}, line {number}"
        codes = {
            kind: _numbers(text, f"{beside[kind]}, line {number}")
            for kind, (_, text) in zip(files, others, strict=True)
        }
        texts = _utterances(line, place, tally)
        turns = alternate(texts, SPEAKERS)
        _label(turns, codes, place, tally)
        labels: dict[str, Any] = split_labels(name) if name else {}
        if "topic" in codes:
            labels["topic"] = _word(TOPICS, codes["topic"][0] if codes["topic"] else 0, place)
        id = f"dailydialog-{name}-{number - 1}" if name else f"dailydialog-{number - 1}"
        yield build(id, turns, labels, place)


def _utterances(line: str, place: str, tally: Tally) -> list[str]:
    *texts, rest = line.split(END)
    if rest.strip() or not texts:
        raise DataError(f"{place}: expected utterances that end in {END}, found {line[-60:]!r}")
    said = [text.strip() for text in texts]
    tally["utterances without a text, left out"] += said.count("")
    return [text for text in said if text]


def _label(turns: list[dict[str, Any]], codes: dict[str, list[int]], place: str, tally: Tally) -> None:
    for kind, words in (("act", ACTS), ("emotion", EMOTIONS)):
        if kind not in codes:
            continue
        if len(codes[kind]) != len(turns):
            tally[f"dialogues with another number of {kind} labels than of turns, left without"] += 1
            continue
        for turn, code in zip(turns, codes[kind], strict=True):
            turn.setdefault("labels", {})[kind] = _word(words, code, place)


def _numbers(text: str, place: str) -> list[int]:
    try:
        return [int(word) for word in text.split()]
    except ValueError:
        raise DataError(f"{place}: expected numbers, found {text[:60]!r}") from None


def _word(words: tuple[str, ...], code: int, place: str) -> str:
    if not 0 <= code < len(words) or not words[code]:
        raise DataError(f"{place}: {code} is none of the labels 1 to {len(words) - 1}")
    return words[code]
