"""Examples as token ids in memory-mapped files: made once, as a stream, and read by any number of runs.

A folder holds for each column the values (uint16, or uint32 for a large vocabulary) and where each example
begins (int64). The folder takes its name, a signature of data, vocabulary and settings, when it is complete.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import platform
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

import numpy as np

from palaver.errors import DataError, UserError
from palaver.models.turns import encode_knowledge, encode_turns, join_turns
from palaver.text.spelling import Spelling
from palaver.text.vocabulary import EOS, SEP, Vocabulary
from palaver.text.words import count_words
from palaver.training.examples import Episode

FORMAT = 2
COLUMNS = ("context", "response", "knowledge")
_PART = ".part-"
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
            Ragged(folder, name, self.meta["dtype"], self.n) for name in COLUMNS
        )
        self.speaker = _mapped(folder / "speaker", "int32")
        self.n_words = _mapped(folder / "n_words", "int32")
        self.spelling = _mapped(folder / "spelling", "float32")
        """What the unknown words of a response cost on top (`palaver.text.spelling`)."""
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


class _Writer:
    """Columns that grow block by block in a temporary folder."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self.folder = folder
        self.dtype = dtype
        self.n = 0
        self._ends = dict.fromkeys(COLUMNS, 0)
        names = [f"{c}.{part}" for c in COLUMNS for part in ("values", "offsets")]
        names += ["speaker", "n_words", "spelling"]
        self._files: dict[str, IO[bytes]] = {name: open(folder / name, "wb") for name in names}  # noqa: SIM115
        for column in COLUMNS:
            self._put(f"{column}.offsets", np.zeros(1, np.int64))

    def __enter__(self) -> _Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def _put(self, name: str, values: np.ndarray) -> None:
        self._files[name].write(np.ascontiguousarray(values).tobytes())

    def column(self, name: str, pieces: Sequence[Sequence[int]]) -> None:
        ends = self._ends[name] + np.cumsum([len(p) for p in pieces], dtype=np.int64)
        self._put(
            f"{name}.values",
            np.fromiter(chain.from_iterable(pieces), self.dtype, ends[-1] - self._ends[name]),
        )
        self._put(f"{name}.offsets", ends)
        self._ends[name] = int(ends[-1])

    def block(self, rows: list[Row]) -> None:
        if rows:
            for name in COLUMNS:
                self.column(name, [getattr(row, name) for row in rows])
            self._put("speaker", np.array([row.speaker for row in rows], np.int32))
            self._put("n_words", np.array([row.n_words for row in rows], np.int32))
            self._put("spelling", np.array([row.spelling for row in rows], np.float32))
            self.n += len(rows)

    def finish(self, meta: dict[str, Any]) -> None:
        self._files["meta"] = open(self.folder / "meta.json", "wb")  # noqa: SIM115
        self._files["meta"].write(json.dumps(meta, indent=1).encode())
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())


def write_store(
    folder: Path,
    episodes: Iterable[Episode],
    vocabulary: Vocabulary,
    limits: Limits,
    *,
    window: int = 0,
    max_examples: int | None = None,
    skipped: Counter[str] | None = None,
    tell: Callable[[int], None] | None = None,
) -> Store:
    """Encode `episodes` into `folder`; nothing is left behind when it does not come to its end.

    With `window` the task is language modelling: the text of each dialogue is cut into windows of so many
    tokens, and each is the context of the next. `skipped` is read at the end, when the stream has filled it.
    """
    skipped = Counter() if skipped is None else skipped
    cut: Counter[str] = Counter()
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clear_leftovers(folder.parent)
    part = Path(tempfile.mkdtemp(prefix=f"{_PART}{platform.node()}-{os.getpid()}-", dir=folder.parent))
    dtype = "uint16" if len(vocabulary) <= 1 << 16 else "uint32"
    spelling = Spelling(vocabulary)
    try:
        with _Writer(part, dtype) as writer:
            for block in _blocks(episodes):
                if window:
                    rows = _windows(block, vocabulary, window)
                else:
                    rows = _rows(block, vocabulary, spelling, limits, cut)
                room = None if max_examples is None else max_examples - writer.n
                writer.block(rows[:room])
                if tell is not None:
                    tell(writer.n)
                if room is not None and len(rows) >= room:
                    break
            if not writer.n:
                raise DataError(
                    "no examples came of the data",
                    problems=[f"{n:,} left out: {why}" for why, n in skipped.items()],
                )
            meta = {"n": writer.n, "dtype": dtype, "skipped": dict(skipped), "cut": dict(cut)}
            writer.finish(meta)
        _take_name(part, folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}", "is the disk full?") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Store(folder)


def _clear_leftovers(parent: Path) -> None:
    """What preparations left behind that were killed on this machine."""
    ours = f"{_PART}{platform.node()}-"
    for part in parent.glob(f"{glob.escape(ours)}*"):
        try:
            os.kill(int(part.name.removeprefix(ours).split("-")[0]), 0)
        except (ProcessLookupError, ValueError):
            shutil.rmtree(part, ignore_errors=True)
        except PermissionError:
            continue  # somebody else's, and alive


def _take_name(part: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):  # another run made the same store meanwhile
        part.rename(folder)
    if not folder.is_dir():
        raise UserError(f"cannot write {folder}", "choose another place with data.prepared")


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
            context = join_turns(turns[begin:i], limits.context)
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
