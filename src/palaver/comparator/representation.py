"""A dialogue as numbers: surface features, the coherence of its turns' meanings, and mean vectors.

Turns are encoded one by one by any function from texts to vectors; the one that comes ready is MiniLM.
Equal texts are encoded once, texts of like length together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.comparator.coherence import FLOW, MOST_TURNS, VECTORS, flow
from palaver.comparator.surface import FEATURES, TurnSurface, read_turn, surface_features
from palaver.errors import DataError, UserError
from palaver.models.encoders import Places, open_encoder
from palaver.models.encoders.encoder import Encode
from palaver.progress import Progress, no_progress
from palaver.schema import Dialogue
from palaver.text.normalisation import normalise

Floats = NDArray[np.float32]

NAMES: tuple[str, ...] = (*FEATURES, *FLOW)
LAYOUT: tuple[str, ...] = (*NAMES, *(f"vector {name}" for name in VECTORS))
"""All that a comparator was trained on; with another layout it cannot be used."""
_TEXTS = 8192


@dataclass(frozen=True)
class Representation:
    """N dialogues: `features` (N, len(NAMES)) and `vectors` (N, 4d), see `coherence.flow`."""

    features: Floats
    vectors: Floats

    def __len__(self) -> int:
        return len(self.features)

    def take(self, rows: NDArray[Any]) -> Representation:
        return Representation(self.features[rows], self.vectors[rows])


@dataclass(frozen=True)
class EncodedDialogue:
    """One dialogue, its turns taken apart and encoded; any of them can be left out."""

    turns: list[TurnSurface]
    vectors: Floats
    """(T, d); of a dialogue longer than `flow` looks at, the last ones, and one more for a turn left out."""

    def without(self, i: int) -> EncodedDialogue:
        place = i - (len(self.turns) - len(self.vectors))
        vectors = np.delete(self.vectors, place, axis=0) if place >= 0 else self.vectors
        return EncodedDialogue([*self.turns[:i], *self.turns[i + 1 :]], vectors)


def turn_encoder(name: str | Path | None = None, *, device: str = "cpu") -> Encode:
    """Any encoder by name, see `palaver.models.encoders`; without one MiniLM. It is loaded at first use."""
    batch_size = 64 if device == "cpu" else 256
    places = Places(device=device, batch_size=batch_size, max_tokens=128, keep_end=True, half=True)
    return open_encoder(name, places).encode


def encoder_digest(name: str) -> str:
    """Names the encoder by its content."""
    return open_encoder(name, Places(keep_end=True)).signature  # nothing is loaded for it


def encode_dialogues(
    dialogues: Sequence[Dialogue], encode: Encode, *, progress: Progress = no_progress
) -> list[EncodedDialogue]:
    """Normalise every turn and take it apart; encode those that `flow` looks at. Equal turns once."""
    numbers: dict[str, int] = {}
    normalised = {text: normalise(text) for text in dict.fromkeys(t.text for d in dialogues for t in d.turns)}
    rows = [[numbers.setdefault(normalised[t.text], len(numbers)) for t in d.turns] for d in dialogues]
    texts = list(numbers)
    looked_at = sorted({number for row in rows for number in row[-MOST_TURNS - 1 :]})
    places = np.full(len(texts), -1)
    places[looked_at] = np.arange(len(looked_at))
    vectors = _encode_texts([texts[number] for number in looked_at], encode, progress)
    known: dict[tuple[bool, int], TurnSurface] = {}
    encoded = []
    for dialogue, row in zip(dialogues, rows, strict=True):
        if not row:
            raise DataError(f"the dialogue {dialogue.id!r} has no turns")
        turns = []
        for turn, number in zip(dialogue.turns, row, strict=True):
            key = (turn.speaker == "user", number)
            if key not in known:
                known[key] = read_turn(key[0], texts[number])
            turns.append(known[key])
        encoded.append(EncodedDialogue(turns, vectors[places[row[-MOST_TURNS - 1 :]]]))
    return encoded


def represent_encoded(dialogues: Sequence[EncodedDialogue]) -> Representation:
    """The numbers of dialogues that have been encoded."""
    flows = [
        flow(d.vectors, np.array([turn.is_user for turn in d.turns[-len(d.vectors) :]])) for d in dialogues
    ]
    surface = surface_features([d.turns for d in dialogues])
    features = np.hstack([surface, np.stack([of_flow for of_flow, _ in flows])])
    return Representation(features, np.stack([means for _, means in flows]))


def represent(
    dialogues: Sequence[Dialogue], encode: Encode, *, progress: Progress = no_progress
) -> Representation:
    """The numbers of each dialogue."""
    if not dialogues:
        raise DataError("there are no dialogues")
    return represent_encoded(encode_dialogues(dialogues, encode, progress=progress))


def _encode_texts(texts: list[str], encode: Encode, progress: Progress) -> Floats:
    """(n, d) vectors of length 1. Sorted by length over all, so that little of a batch is padding."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    parts = []
    for begin in range(0, len(order), _TEXTS):
        texts_of_part = [texts[i] for i in order[begin : begin + _TEXTS]]
        part = np.asarray(encode(texts_of_part), dtype=np.float32)
        if part.ndim != 2 or len(part) != len(texts_of_part):
            raise UserError(
                f"the encoder must give one vector per text: {len(texts_of_part)} texts gave an array of "
                f"shape {part.shape}"
            )
        parts.append(part)
        progress("encoding turns", begin + len(part), len(order))
    vectors = np.empty((len(texts), parts[0].shape[1]), np.float32)
    vectors[order] = np.concatenate(parts)
    if not np.isfinite(vectors).all():
        raise UserError("the encoder gave numbers that are not finite")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)
