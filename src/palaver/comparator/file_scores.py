"""Files of dialogues scored in shards: the memory of a few thousand dialogues, whatever the file's size.

A shard is a part of the file's lines; workers parse, encode and score it. What stays is a line number, an id
and three numbers a dialogue, so that the worst can stand first. The costliest turns of the worst dialogues
are found in a second reading of just those lines.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.comparator.reading import RatedFile, first_of, these_lines
from palaver.comparator.scorer import Scorer, WorstTurn, load_scorer
from palaver.comparator.training_data import RatedDialogue
from palaver.engine import map_shards
from palaver.errors import DataError
from palaver.files import TextStream, json_object, write_atomically
from palaver.progress import Progress

Lines = list[tuple[int, bytes]]
Row = tuple[int, str, float, float, float, "str | None", "WorstTurn | None"]
_SHARD = 1000


@dataclass(frozen=True)
class Summary:
    """What was scored, how fast, and what was not and why."""

    n: int
    dropped: dict[str, int]
    notes: dict[str, int]
    seconds: float
    lowest: tuple[dict[str, Any], ...]
    mean: float
    sd: float

    @property
    def per_second(self) -> float:
        return self.n / self.seconds if self.seconds > 0 else math.nan


@dataclass
class _Shard:
    rows: list[Row]
    problems: list[str]
    dropped: Counter[str]
    notes: Counter[str]


class _ScoreShard:
    """Sent to a worker once; the comparator is loaded there at the first shard."""

    def __init__(
        self, comparator: str, path: Path, device: str, min_turns: int, every_turn: bool, threads: int
    ) -> None:
        self.comparator, self.path, self.device = comparator, path, device
        self.min_turns, self.every_turn, self.threads = min_turns, every_turn, threads
        self._scorer: Scorer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scorer": None}

    def __call__(self, lines: Lines) -> _Shard:
        rated, numbers, shard = parse(lines, self.path, self.min_turns)
        if rated and not shard.problems:
            if self._scorer is None:
                self._scorer = load_scorer(self.comparator, device=self.device)
                if self.threads:
                    import torch

                    torch.set_num_threads(self.threads)
            dialogues = [row.dialogue for row in rated]
            found = self._scorer.score(dialogues)
            worst = self._scorer.worst_turns(dialogues) if self.every_turn else [None] * len(rated)
            columns = (found.score.tolist(), found.low.tolist(), found.high.tolist())
            shard.rows = [
                (number, row.dialogue.id, s, low, high, row.system, turn)
                for number, row, s, low, high, turn in zip(numbers, rated, *columns, worst, strict=True)
            ]
        return shard


def parse(lines: Lines, path: Path, min_turns: int) -> tuple[list[RatedDialogue], list[int], _Shard]:
    """The usable dialogues of these lines, their numbers, and what is wrong with the others."""
    shard = _Shard([], [], Counter(), Counter())
    reader = RatedFile(path, None, min_turns, False, {}, shard.dropped, shard.notes)
    rated, numbers = [], []
    for number, line in lines:
        try:
            row = reader.parse(number, json_object(line))
        except ValueError as error:
            reader.problems.append(f"line {number}: {error}")
            continue
        if row is not None:
            rated.append(row)
            numbers.append(number)
    shard.problems = reader.problems
    return rated, numbers, shard


def read_shards(path: Path, size: int = _SHARD) -> Iterator[Lines]:
    """The file's lines, `size` at a time, with their numbers."""
    with TextStream(path) as stream:
        lines: Lines = []
        for number, line in enumerate(stream, start=1):
            if line.strip():
                lines.append((number, line))
                if len(lines) == size:
                    yield lines
                    lines = []
        if lines:
            yield lines


def score_file(
    path: str | Path,
    out: str | Path,
    *,
    comparator: str = "default",
    device: str = "cpu",
    workers: int = 1,
    turns: int | None = 100,
    min_turns: int = 2,
    shard_size: int = _SHARD,
    progress: Progress | None = None,
) -> Summary:
    """Score every dialogue of a file into JSON lines, worst first.

    The costliest turn is found for the `turns` worst dialogues, for all with None.
    """
    source, target = Path(path), Path(out)
    began = time.perf_counter()
    work = _ScoreShard(comparator, source, device, min_turns, turns is None, 1 if workers != 1 else 0)
    rows: list[Row] = []
    problems: list[str] = []
    dropped: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    done = 0
    for shard in map_shards(work, read_shards(source, shard_size), workers=workers):
        rows += shard.rows
        problems += shard.problems
        dropped += shard.dropped
        notes += shard.notes
        done += len(shard.rows)
        if progress is not None:
            progress(done, 0)
    rows = _distinct(rows, problems, dropped)
    if problems:
        raise DataError(f"{source}: {these_lines(len(problems))}", problems=first_of(problems))
    if not rows:
        reasons = [f"{count} {reason}" for reason, count in dropped.items()]
        raise DataError(f"{source}: no dialogue can be scored", f"each needs {min_turns} turns", reasons)
    rows.sort(key=lambda row: (row[2], row[1]))
    if turns:
        rows[:turns] = _with_turns(rows[:turns], source, min_turns, work)
    with write_atomically(target) as file:
        for row in rows:
            file.write(json.dumps(as_json(row), ensure_ascii=False) + "\n")
    values = np.array([row[2] for row in rows])
    return Summary(
        len(rows),
        dict(dropped),
        dict(notes),
        time.perf_counter() - began,
        tuple(as_json(row) for row in rows[:10]),
        float(values.mean()),
        float(values.std()),
    )


def as_json(row: Row) -> dict[str, Any]:
    """`{id, score, low, high}`, the system where it is known, the costliest turn where it was looked for."""
    _, name, score, low, high, system, worst = row
    found: dict[str, Any] = {"id": name, "score": _plain(score), "low": _plain(low), "high": _plain(high)}
    if system is not None:
        found["system"] = system
    if worst is not None:
        found["worst_turn"] = {**asdict(worst), "gain": _plain(worst.gain)}
    return found


def _plain(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None


def _distinct(rows: list[Row], problems: list[str], dropped: Counter[str]) -> list[Row]:
    """Ids are unique in a shard; over all shards the same row again is dropped, another is an error."""
    seen: dict[str, Row] = {}
    for row in rows:
        earlier = seen.setdefault(row[1], row)
        if earlier is not row:
            if earlier[2:5] == row[2:5]:
                dropped["the same row again"] += 1
            else:
                problems.append(f"line {row[0]}: the id {row[1]!r} is already that of line {earlier[0]}")
    return list(seen.values())


def _with_turns(rows: list[Row], path: Path, min_turns: int, work: _ScoreShard) -> list[Row]:
    wanted = {row[0] for row in rows}
    lines = [pair for shard in read_shards(path) for pair in shard if pair[0] in wanted]
    rated, numbers, _ = parse(lines, path, min_turns)
    scorer = work._scorer or load_scorer(work.comparator, device=work.device)
    worst = dict(zip(numbers, scorer.worst_turns([row.dialogue for row in rated]), strict=True))
    return [(*row[:6], worst[row[0]]) for row in rows]
