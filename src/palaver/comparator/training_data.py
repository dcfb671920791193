"""What a comparator learns from: rated dialogues, and pairs of dialogues of which one is better."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.artefacts import digest
from palaver.errors import DataError
from palaver.schema import Dialogue

USER, SYSTEM = "user", "system"


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file that an earlier run wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read: {error}", "begin anew with --force") from None


@dataclass(frozen=True)
class RatedDialogue:
    """A dialogue, what its chatter thought of it, and who, in which sitting and with which system."""

    dialogue: Dialogue
    rating: float | None = None
    rater: str | None = None
    group: str | None = None
    system: str | None = None


@dataclass(frozen=True)
class RatedDialogues:
    """All dialogues that can be used; `dropped` says how many cannot and why, `notes` what was changed."""

    rows: tuple[RatedDialogue, ...]
    scale: tuple[float, float]
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def dialogues(self) -> tuple[Dialogue, ...]:
        return tuple(row.dialogue for row in self.rows)

    def labelled(self) -> list[Dialogue]:
        """The dialogues with rating, rater, sitting and system among their labels, as they are written."""
        dialogues = []
        for row in self.rows:
            known = {name: getattr(row, name) for name in ("rating", "rater", "group", "system")}
            labels = {**row.dialogue.labels, **{k: v for k, v in known.items() if v is not None}}
            dialogues.append(row.dialogue.model_copy(update={"labels": labels}))
        return dialogues

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(row.dialogue.id for row in self.rows)

    @cached_property
    def index(self) -> dict[str, int]:
        """id -> row, and ID@SYSTEM -> row; an id that several dialogues have names none of them."""
        counts = Counter(self.ids)
        rows = {f"{row.dialogue.id}@{row.system}": i for i, row in enumerate(self.rows) if row.system}
        return rows | {name: i for i, name in enumerate(self.ids) if counts[name] == 1}

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """(N,) ratings, nan where there is none."""
        return np.array([math.nan if row.rating is None else row.rating for row in self.rows], np.float64)

    def codes(self, what: str) -> NDArray[np.int64]:
        """(N,) `rater`, `group` or `system` as numbers in order of appearance, -1 where it is not known."""
        names = [getattr(row, what) for row in self.rows]
        known = {name: i for i, name in enumerate(dict.fromkeys(n for n in names if n is not None))}
        return np.array([known.get(name, -1) for name in names], np.int64)

    @cached_property
    def digest(self) -> str:
        """A hash of what is learnt from: turns, ratings and who gave them; labels do not count."""
        rows = []
        for row in self.rows:
            turns = [(turn.speaker, turn.text) for turn in row.dialogue.turns]
            rows.append([row.dialogue.id, turns, row.rating, row.rater, row.group, row.system])
        return digest(rows)

    @property
    def dialogue_digests(self) -> list[str]:
        """The dialogues that are learnt from, each once."""
        return sorted({dialogue_digest(row.dialogue) for row in self.rows})

    def take(self, keep: Sequence[int] | NDArray[np.int64]) -> RatedDialogues:
        """The rows with these numbers."""
        return RatedDialogues(tuple(self.rows[int(i)] for i in keep), self.scale, self.dropped, self.notes)


def dialogue_digest(dialogue: Dialogue) -> str:
    """Names a dialogue by what is said in it, to know again what a comparator has learnt from."""
    return digest([turn.text.strip() for turn in dialogue.turns if turn.text.strip()])[:12]


@dataclass(frozen=True)
class Pairs:
    """Compared dialogues by row: +1 where `first` is better, -1 where `second` is."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    label: NDArray[np.int8]
    dropped: dict[str, int] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """Ids that pairs name and no dialogue has."""
    raters: tuple[str | None, ...] = ()
    """Who compared each pair; empty where nobody asked for it."""

    def __len__(self) -> int:
        return len(self.label)

    @property
    def digest(self) -> str:
        return digest([self.first.tolist(), self.second.tolist(), self.label.tolist()])

    def take(self, keep: NDArray[np.bool_]) -> Pairs:
        """The pairs that are marked."""
        raters = (
            tuple(rater for rater, kept in zip(self.raters, keep, strict=True) if kept) if self.raters else ()
        )
        return replace(
            self, first=self.first[keep], second=self.second[keep], label=self.label[keep], raters=raters
        )

    @property
    def used(self) -> NDArray[np.int64]:
        """Rows that at least one pair names."""
        return np.unique(np.concatenate([self.first, self.second]))

    @property
    def better(self) -> NDArray[np.int64]:
        return np.where(self.label > 0, self.first, self.second)

    @property
    def worse(self) -> NDArray[np.int64]:
        return np.where(self.label > 0, self.second, self.first)


@dataclass(frozen=True)
class TrainingData:
    """What a comparator is trained on. `pairs` may be used in training, `test` only measures."""

    ratings: RatedDialogues
    dev: RatedDialogues | None = None
    """The dialogues that pairs compare."""
    pairs: Pairs | None = None
    test: Pairs | None = None
    flow: RatedDialogues | None = None
    """More dialogues for stage 1 of the paper, rated or not."""
    notes: tuple[str, ...] = ()

    @classmethod
    def gather(
        cls,
        ratings: RatedDialogues,
        *,
        dev: RatedDialogues | None = None,
        pairs: Pairs | None = None,
        test: Pairs | None = None,
        flow: RatedDialogues | None = None,
    ) -> TrainingData:
        """Take the development dialogues out of what is trained on.

        Pairs without development dialogues compare rated ones, which are held out.
        """
        if dev is None and pairs is not None:
            used = pairs.used
            dev = ratings.take(used)
            first, second = (np.searchsorted(used, rows) for rows in (pairs.first, pairs.second))
            pairs = replace(pairs, first=first, second=second)
        held_out = set(dev.ids) if dev is not None else set()
        keep = [i for i, name in enumerate(ratings.ids) if name not in held_out]
        n_lost = len(ratings) - len(keep)
        if not keep:
            raise DataError(
                "every rated dialogue is also one of the development set: none is left to train on"
            )
        notes: tuple[str, ...] = ()
        if n_lost:
            notes = (f"{n_lost} rated dialogues are in the development set and not trained on",)
            ratings = ratings.take(keep)
        return cls(ratings, dev, pairs, test, flow, notes)
