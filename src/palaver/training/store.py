"""Examples as token ids in memory-mapped files: made once, as a stream, and read by any number of runs.

A folder holds for each column the values (uint16, or uint32 for a large vocabulary) and where each example
begins (int64). The folder takes its name, a signature of data, vocabulary and settings, when it is complete.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from palaver.artefacts import write_folder
from palaver.errors import DataError, UserError
from palaver.models.turns import Frame, encode_knowledge, encode_turns, join_turns
from palaver.progress import Progress, no_progress
from palaver.text.spelling import Spelling
from palaver.text.vocabulary import EOS, SEP, Vocabulary
from palaver.text.words import count_words
from palaver.training.examples import Episode

FORMAT = 2
SEQUENCES = ("context", "response", "knowledge")
NUMBERS = {"speaker": "int32", "n_words": "int32", "spelling": "float32"}
_BLOCK = 20_000
"""Turns that are encoded together; what is in memory at a time."""
CUT_CONTEXT = "contexts that lost their beginning"
CUT_RESPONSE = "responses that lost their end"
CUT_KNOWLEDGE = "knowledge sentences that lost their end"


@dataclass(frozen=True)
class Limits:
    """The longest context (its last tokens are kept), response and knowledge sentence (their first)."""

    context: int
    response: int
    knowledge: int
    frame: Frame | None = None
    """What stands around the turns, for a model that does not join them by `<sep>`."""


class Ragged:
    """Sequences of different lengths, one after the other, on disk."""

    def __init__(self, folder: Path, name: str, dtype: str, n: int) -> None:
        self.values = _mapped(folder / f"{name}.values", dtype)
        self.offsets = _mapped(folder / f"{name}.offsets", "int64")
        if len(self.offsets) != n + 1 or self.offsets[-1] != len(self.values):
            raise DataError(f"{folder} is damaged", "delete that folder; it will be made again")

    def lengths(self, ids: np.ndarray | None = None) -> np.ndarray:
        """Of the examples `ids`, or of all."""
        if ids is None:
            return np.diff(self.offsets)
        return self.offsets[ids + 1] - self.offsets[ids]

    def __getitem__(self, i: int) -> np.ndarray:
        return self.values[self.offsets[i] : self.offsets[i + 1]]


def _mapped(path: Path, dtype: str) -> np.ndarray:
    try:
        return np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{path} cannot be used: {error}", "delete its folder; it will be made again"
        ) from None


class Store:
    """The examples of one folder."""

    def __init__(self, folder: Path) -> None:
        try:
            self.meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{folder} holds no prepared examples: {error}") from None
        self.folder = folder
        self.n: int = self.meta["n"]
        self.context, self.response, self.knowledge = (
            Ragged(folder, name, self.meta["dtype"], self.n) for name in SEQUENCES
        )
        self.speaker, self.n_words, self.spelling = (
            _mapped(folder / name, dtype) for name, dtype in NUMBERS.items()
        )
        if {len(self.speaker), len(self.n_words), len(self.spelling)} != {self.n}:
            raise DataError(f"{folder} is damaged", "delete that folder; it will be made again")

    def __len__(self) -> int:
        return self.n

    @property
    def skipped(self) -> dict[str, int]:
        """What was left out, by reason."""
        return self.meta["skipped"]

    @property
    def cut(self) -> dict[str, int]:
        """What was shortened to the model's limits, by kind."""
        return self.meta["cut"]


class Row(NamedTuple):
    """An example on its way to the disk; a column of the store for each field."""

    context: Sequence[int]
    response: Sequence[int]
    knowledge: Sequence[int]
    speaker: int
    n_words: int
    spelling: float
    """What the unknown words of the response cost on top (`palaver.text.spelling`)."""


class _Writer:
    """Columns that grow block by block."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder = folder
        self.dtype = dtype
        self.n = 0
        self._ends = dict.fromkeys(SEQUENCES, 0)
        for name in SEQUENCES:
            self._append(f"{name}.offsets", np.zeros(1, np.int64))

    def _append(self, name: str, values: np.ndarray) -> None:
        with open(self.folder / name, "ab") as file:
            file.write(values.tobytes())

    def block(self, rows: list[Row]) -> None:
        for name in SEQUENCES:
            pieces = [getattr(row, name) for row in rows]
            ends = self._ends[name] + np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
            self._append(f"{name}.values", np.fromiter(chain.from_iterable(pieces), self.dtype))
            self._append(f"{name}.offsets", ends)
            self._ends[name] = int(ends[-1]) if rows else self._ends[name]
        for name, dtype in NUMBERS.items():
            self._append(name, np.array([getattr(row, name) for row in rows], dtype))
        self.n += len(rows)


def write_store(
    folder: Path,
    episodes: Iterable[Episode],
    vocabulary: Vocabulary,
    limits: Limits,
    *,
    window: int = 0,
    max_examples: int | None = None,
    skipped: Counter[str] | None = None,
    progress: Progress = no_progress,
) -> Store:
    """Encode `episodes` into `folder`; nothing is left behind when it does not come to its end.

    With `window` the task is language modelling: the text of each dialogue is cut into windows of so many
    tokens, and each is the context of the next. `skipped` is read at the end, when the stream has filled it.
    """
    skipped = Counter() if skipped is None else skipped
    cut: Counter[str] = Counter()
    dtype = "uint16" if len(vocabulary) <= 1 << 16 else "uint32"
    spelling = Spelling(vocabulary)
    try:
        with write_folder(folder) as part:
            writer = _Writer(part, dtype)
            for block in _blocks(episodes):
                if window:
                    rows = _windows(block, vocabulary, window)
                else:
                    rows = _rows(block, vocabulary, spelling, limits, cut)
                room = None if max_examples is None else max_examples - writer.n
                writer.block(rows[:room])
                progress("examples", writer.n, 0)
                if room is not None and len(rows) >= room:
                    break
            if not writer.n:
                raise DataError(
                    "no examples came of the data",
                    problems=[f"{n:,} left out: {why}" for why, n in skipped.items()],
                )
            meta = {"n": writer.n, "dtype": dtype, "skipped": dict(skipped), "cut": dict(cut)}
            (part / "meta.json").write_text(json.dumps(meta, indent=1), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}", "is the disk full?") from error
    return Store(folder)


def _blocks(episodes: Iterable[Episode]) -> Iterator[list[Episode]]:
    block: list[Episode] = []
    size = 0
    for episode in episodes:
        block.append(episode)
        size += len(episode.turns)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _rows(
    block: list[Episode], vocabulary: Vocabulary, spelling: Spelling, limits: Limits, cut: Counter[str]
) -> list[Row]:
    """Every turn is encoded once, however many responses see it."""
    block = [episode for episode in block if episode.responses]
    encoded = iter(encode_turns(vocabulary, [text for episode in block for text in episode.turns]))
    sentences = [text for episode in block for text in episode.knowledge]
    facts = iter(encode_knowledge(vocabulary, sentences, limits.knowledge))
    rows: list[Row] = []
    for episode in block:
        turns = [next(encoded) for _ in episode.turns]
        for i, begin, speaker in zip(episode.responses, episode.begins, episode.speakers, strict=True):
            context = join_turns(turns[begin:i], limits.context, limits.frame)
            cut[CUT_CONTEXT] += context.is_cut
            response = [*turns[i], EOS]
            n_words = 1 + count_words(episode.turns[i])
            if len(response) > limits.response:  # its true end is not seen, so none is learned
                cut[CUT_RESPONSE] += 1
                response = response[: limits.response]
                n_words = _count_words(response, vocabulary)
            fact = next(facts)
            cut[CUT_KNOWLEDGE] += fact.is_cut and limits.knowledge > 0
            spelled = spelling.unknown(episode.turns[i], response)
            rows.append(Row(context.tokens, response, fact.tokens, speaker, n_words, spelled))
    return rows


def _windows(block: list[Episode], vocabulary: Vocabulary, window: int) -> list[Row]:
    """Gopalakrishnan et al. (2019), section 5: predict tokens from a window of tokens before them."""
    encoded = iter(encode_turns(vocabulary, [text for episode in block for text in episode.turns]))
    rows: list[Row] = []
    for episode in block:
        if not episode.turns:
            continue
        stream: list[int] = []
        for _ in episode.turns:
            stream += [*next(encoded), SEP]
        stream[-1] = EOS
        for start in range(window, len(stream), window):
            target = stream[start : start + window]
            n_words = _count_words(target, vocabulary)
            rows.append(Row(stream[start - window : start], target, (), -1, n_words, 0.0))
    return rows


def _count_words(ids: Sequence[int], vocabulary: Vocabulary) -> int:
    """Words of a part of a text; an end of a turn counts as one, and so does an unknown word."""
    if vocabulary.kind == "word":
        return len(ids)
    marks = sum(token in (SEP, EOS) for token in ids)
    return max(1, marks + count_words(vocabulary.decode(ids)))
