"""Files of dialogues scored in shards: the memory of a few thousand dialogues, whatever the file's size.

Workers encode and score a shard. What stays is a row number, an id and three numbers a dialogue, so that the
worst can stand first; and the worst dialogues themselves, whose costliest turns are found at the end.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from palaver.comparator.coherence import MOST_TURNS
from palaver.comparator.reading import NOT_ENGLISH, WORDY, RatedReader
from palaver.comparator.scorer import Scorer, WorstTurn, is_english, load_scorer
from palaver.comparator.training_data import RatedDialogue
from palaver.engine import Engine, Recipe, map_shards
from palaver.errors import DataError
from palaver.files import write_atomically
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue

Shard = list[tuple[int, RatedDialogue]]
Place = tuple[int, str]
"""A row and an id: battles have two dialogues in a row."""
_DIGITS = 4
"""Of a score in the file."""
LONG = f"dialogues of more than {MOST_TURNS:,} turns: the meaning of the last {MOST_TURNS:,} is looked at"


@dataclass(frozen=True)
class DialogueScore:
    """The score of the dialogue in row `number` of a file."""

    number: int
    id: str
    score: float
    low: float
    high: float
    system: str | None = None
    group: str | None = None
    worst_turn: WorstTurn | None = None
    english: bool = True
    """False where the text does not look English, which a comparator may not know."""
    wordy: bool = False
    """Whether the system says far more at a time than those that the comparator has learnt from."""

    @property
    def place(self) -> Place:
        return self.number, self.id

    def to_json(self) -> dict[str, Any]:
        """`{id, score, low, high}`; system, sitting (`group`) and costliest turn where they are known.

        `english` is there where it is false, `wordy` where it is true.
        """
        plain: dict[str, Any] = {"id": self.id}
        plain |= {name: _plain(getattr(self, name)) for name in ("score", "low", "high")}
        plain |= {
            name: getattr(self, name) for name in ("system", "group") if getattr(self, name) is not None
        }
        if self.worst_turn is not None:
            plain["worst_turn"] = dataclasses.asdict(self.worst_turn) | {"gain": _plain(self.worst_turn.gain)}
        if not self.english:
            plain["english"] = False
        if self.wordy:
            plain["wordy"] = True
        return plain


@dataclass(frozen=True)
class Summary:
    """What was scored, how fast, and what was not and why."""

    n: int
    dropped: dict[str, int]
    notes: dict[str, int]
    seconds: float
    lowest: tuple[DialogueScore, ...]
    mean: float
    sd: float
    n_systems: int = 0
    """That are named."""

    @property
    def per_second(self) -> float:
        return self.n / self.seconds if self.seconds > 0 else math.nan


class _ShardScorer:
    """Sent to a worker once; the comparator is loaded there at the first shard."""

    def __init__(self, comparator: str, device: str, every_turn: bool) -> None:
        self.every_turn = every_turn
        self._recipe = Recipe(partial(_open_scorer, comparator, device))

    @property
    def scorer(self) -> Scorer:
        return self._recipe.model

    def __call__(self, shard: Shard) -> list[DialogueScore]:
        dialogues = [row.dialogue for _, row in shard]
        scores = self.scorer.score(dialogues)
        worst: list[WorstTurn | None] = [None] * len(shard)
        if self.every_turn:
            worst = self.scorer.worst_turns(dialogues)
        values = zip(scores.score.tolist(), scores.low.tolist(), scores.high.tolist(), strict=True)
        return [
            DialogueScore(
                number,
                row.dialogue.id,
                *value,
                row.system,
                row.group,
                turn,
                english=is_english(row.dialogue),
                wordy=self.scorer.is_wordy(row.dialogue),
            )
            for (number, row), value, turn in zip(shard, values, worst, strict=True)
        ]


def _open_scorer(comparator: str, device: str) -> Scorer:
    """On the device of the machine that it runs on, which may be a worker's."""
    from palaver.models.devices import choose_device  # opens torch

    return load_scorer(comparator, device=str(choose_device(device)))


def score_file(
    path: str | Path,
    out: str | Path,
    *,
    comparator: str = "default",
    device: str = "cpu",
    engine: Engine | str = "local",
    turns: int | None = 100,
    min_turns: int = 2,
    shard_size: int = 1000,
    columns: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> Summary:
    """Score every dialogue of a file into JSON lines, worst first.

    The costliest turn is found for the `turns` worst dialogues, for all with None. `columns` are field ->
    name in the file. Each worker of an `engine` has a comparator of its own.
    """
    source = Path(path)
    began = time.perf_counter()
    score_shard = _ShardScorer(comparator, device, every_turn=turns is None)
    reader = RatedReader(min_turns=min_turns, keep_empty=True, columns=columns)
    rows: list[DialogueScore] = []
    worst = _WorstDialogues(turns or 0)
    shards = worst.watch(_shards(reader.read(source), shard_size))
    for scored in map_shards(score_shard, shards, engine=engine, wants_gpu=device != "cpu"):
        rows += scored
        worst.add(scored)
        progress("scoring dialogues", len(rows), 0)
    if not rows:
        raise DataError(
            f"{source}: no dialogue can be scored",
            f"each needs at least {min_turns} turns, a user and a system",
            reader.reasons,
        )
    rows.sort(key=_badness)
    if turns:
        rows[:turns] = worst.with_turns(rows[:turns], score_shard.scorer)
    with write_atomically(Path(out)) as file:
        for row in rows:
            file.write(json.dumps(row.to_json(), ensure_ascii=False) + "\n")
    doubted = {NOT_ENGLISH: sum(not row.english for row in rows), WORDY: sum(row.wordy for row in rows)}
    reader.notes.update({note: n for note, n in {**doubted, LONG: worst.n_long}.items() if n})
    for note in score_shard.scorer.notes:
        reader.notes[note] += 0  # it has no number
    values = np.array([row.score for row in rows])
    return Summary(
        n=len(rows),
        dropped=dict(reader.dropped),
        notes=dict(reader.notes),
        seconds=time.perf_counter() - began,
        lowest=tuple(rows[:10]),
        mean=float(values.mean()),
        sd=float(values.std()),
        n_systems=len({row.system for row in rows if row.system is not None}),
    )


def _shards(rows: Iterator[tuple[int, RatedDialogue]], size: int) -> Iterator[Shard]:
    while shard := list(islice(rows, size)):
        yield shard


class _WorstDialogues:
    """The texts of the `n` worst dialogues so far, so that the file is read once."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.n_long = 0
        """Dialogues that are not read whole."""
        self._unscored: dict[Place, Dialogue] = {}
        self._worst: dict[Place, tuple[DialogueScore, Dialogue]] = {}

    def watch(self, shards: Iterator[Shard]) -> Iterator[Shard]:
        """The same shards; their dialogues are kept until they have scores."""
        for shard in shards:
            self.n_long += sum(len(row.dialogue.turns) > MOST_TURNS for _, row in shard)
            if self.n:
                self._unscored.update(((number, row.dialogue.id), row.dialogue) for number, row in shard)
            yield shard

    def add(self, scored: list[DialogueScore]) -> None:
        if not self.n:
            return
        self._worst.update((row.place, (row, self._unscored.pop(row.place))) for row in scored)
        kept = sorted(self._worst.values(), key=lambda pair: _badness(pair[0]))[: self.n]
        self._worst = {row.place: (row, dialogue) for row, dialogue in kept}

    def with_turns(self, rows: list[DialogueScore], scorer: Scorer) -> list[DialogueScore]:
        """The rows with the costliest turn of each."""
        dialogues = [self._worst[row.place][1] for row in rows]
        turns = scorer.worst_turns(dialogues)
        return [dataclasses.replace(row, worst_turn=turn) for row, turn in zip(rows, turns, strict=True)]


def _badness(row: DialogueScore) -> tuple[float, str]:
    return round(row.score, _DIGITS), row.id  # as written: the order does not hang on the last bits


def _plain(value: float) -> float | None:
    return round(value, _DIGITS) if math.isfinite(value) else None
