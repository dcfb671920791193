"""A dialogue as numbers: surface features, the flow of its turns' meanings, and mean vectors.

Turns are encoded one by one by any function from texts to vectors; the one that comes ready is MiniLM.
Equal texts are encoded once, texts of like length together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.features import FEATURES, ReadTurn, read_turn, surface_of
from palaver.comparator.flow import FLOW, VECTORS, flows
from palaver.errors import DataError, UserError
from palaver.models.encoders import Places, open_encoder
from palaver.schema import Dialogue

Floats = NDArray[np.float32]
Encode = Callable[[list[str]], Any]
Tell = Callable[[str, int, int], None]

NAMES: tuple[str, ...] = (*FEATURES, *FLOW)
LAYOUT: tuple[str, ...] = (*NAMES, *(f"vector {name}" for name in VECTORS))
"""All that a comparator was trained on; with another layout it cannot be used."""
_TEXTS = 8192


@dataclass(frozen=True)
class Represented:
    """N dialogues: `features` (N, len(NAMES)) and `vectors` (N, 4d), see `flow`."""

    features: Floats
    vectors: Floats

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: NDArray[Any]) -> Represented:
        return Represented(self.features[rows], self.vectors[rows])


@dataclass(frozen=True)
class Turns:
    """One dialogue, read and encoded, from which any of its turns can be left out."""

    read: list[ReadTurn]
    vectors: Floats  # (T, d)

    def without(self, i: int) -> Turns:
        return Turns([*self.read[:i], *self.read[i + 1 :]], np.delete(self.vectors, i, axis=0))


def turn_encoder(name: str | Path | None = None, *, device: str = "cpu") -> Encode:
    """Any encoder by name, see `palaver.models.encoders`; without one MiniLM."""
    batch_size = 64 if device == "cpu" else 256
    places = Places(device=device, batch_size=batch_size, max_tokens=128, keep_end=True)
    return open_encoder(name, places).encode


def read_dialogues(dialogues: Sequence[Dialogue], encode: Encode, *, tell: Tell | None = None) -> list[Turns]:
    """Every dialogue read and encoded."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(t.text, len(numbers)) for t in d.turns] for d in dialogues]
    vectors = _encoded(list(numbers), encode, tell)
    read: dict[tuple[bool, int], ReadTurn] = {}
    found = []
    for dialogue, row in zip(dialogues, rows, strict=True):
        if not row:
            raise DataError(f"the dialogue {dialogue.id!r} has no turns")
        turns = []
        for turn, number in zip(dialogue.turns, row, strict=True):
            key = (turn.speaker == "user", number)
            if key not in read:
                read[key] = read_turn(key[0], turn.text)
            turns.append(read[key])
        found.append(Turns(turns, vectors[row]))
    return found


def represent_turns(turns: Sequence[Turns]) -> Represented:
    """The numbers of dialogues that have been read."""
    told, means = flows(
        [one.vectors for one in turns], [np.array([t.is_user for t in one.read]) for one in turns]
    )
    return Represented(np.hstack([surface_of([one.read for one in turns]), told]), means)


def represent(dialogues: Sequence[Dialogue], encode: Encode, *, tell: Tell | None = None) -> Represented:
    """The numbers of each dialogue."""
    if not dialogues:
        raise DataError("there are no dialogues")
    return represent_turns(read_dialogues(dialogues, encode, tell=tell))


def _encoded(texts: list[str], encode: Encode, tell: Tell | None) -> Floats:
    """(n, d) vectors of length 1. Sorted by length over all, so that little of a batch is padding."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    parts = []
    for begin in range(0, len(order), _TEXTS):
        part = [texts[i] for i in order[begin : begin + _TEXTS]]
        found = np.asarray(encode(part), dtype=np.float32)
        if found.ndim != 2 or len(found) != len(part):
            raise UserError(
                f"the encoder must give one vector per text: {len(part)} texts gave an array of shape "
                f"{found.shape}"
            )
        parts.append(found)
        if tell is not None:
            tell("encoding turns", begin + len(part), len(order))
    vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
    vectors[order] = np.concatenate(parts)
    if not np.isfinite(vectors).all():
        raise UserError("the encoder gave numbers that are not finite")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)
