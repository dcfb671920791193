"""`--method palaver` from rated dialogues to a comparator in a folder.

`represented.npz` holds the numbers of every dialogue, which take longest and are not computed twice.
`comparator/` is the fitted model, which `palaver compare score --comparator` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from palaver.artefacts import can_go_on, digest, make_record, write_artefact
from palaver.comparator.method import Fit, MethodSettings, fit
from palaver.comparator.model import save_model
from palaver.comparator.representation import (
    LAYOUT,
    Representation,
    encoder_digest,
    represent,
    turn_encoder,
)
from palaver.comparator.training_data import RatedDialogues, TrainingData, load_arrays
from palaver.files import check_writable, write_atomically
from palaver.models.encoders.encoder import Encode
from palaver.progress import Progress, no_progress
from palaver.text.normalisation import normalise

Say = Callable[[str], None]


@dataclass(frozen=True)
class TrainingResult:
    """A fitted comparator, where it lies, and what it was fitted on."""

    fitted: Fit
    folder: Path
    x: Representation
    pairs_x: Representation | None


def train_palaver(
    data: TrainingData,
    out: str | Path,
    *,
    settings: MethodSettings | None = None,
    encoder: str = "minilm",
    encode: Encode | None = None,
    device: str = "cpu",
    fresh: bool = False,
    progress: Progress = no_progress,
    say: Say = lambda text: None,
) -> TrainingResult:
    """Fit the method on rated dialogues; compared pairs fix the scores' unit."""
    target, ratings = Path(out), data.ratings
    check_writable(target)
    mark = encoder_digest(encoder) if encode is None else "a function"
    encode = encode or turn_encoder(encoder, device=device)

    x = _represent_once(ratings, target / "represented.npz", encode, mark, fresh, progress, say)
    pairs, pairs_x = data.pairs, None
    if data.dev is not None and pairs is not None:
        pairs_x = _represent_once(
            data.dev, target / "represented-dev.npz", encode, mark, fresh, progress, say
        )
    fitted = fit(ratings, x, pairs=pairs, pairs_x=pairs_x, settings=settings, progress=progress)
    folder = save_model(
        fitted.model,
        target / "comparator",
        encoder=encoder,
        data={
            "ratings": ratings.digest,
            "trained_on": ratings.dialogue_digests,
            "seed": fitted.settings.seed,
            "settings": asdict(fitted.settings),
        },
        **fitted.describe(),
    )
    with write_atomically(target / "held_out.jsonl") as file:
        for name, score, weight in zip(ratings.ids, fitted.held_out, fitted.weights, strict=True):
            row = {"id": name, "score": round(float(score), 4), "weight": round(float(weight), 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return TrainingResult(fitted, folder, x, pairs_x)


def _represent_once(
    ratings: RatedDialogues,
    path: Path,
    encode: Encode,
    mark: str,
    fresh: bool,
    progress: Progress,
    say: Say,
) -> Representation:
    """The numbers of the dialogues, read from `path` if they are there already."""
    turns = [[(t.speaker, normalise(t.text)) for t in d.turns] for d in ratings.dialogues]  # as they are read
    record = make_record(
        "palaver compare train",
        {"features": digest(LAYOUT)},
        data={"dialogues": digest(turns), "encoder": mark},
    )
    if can_go_on(path, record, force=fresh):
        say(f"{path.name}: done already")
        return Representation(**load_arrays(path))
    x = represent(ratings.dialogues, encode, progress=progress)
    with write_artefact(path, record) as file:
        np.savez(file, features=x.features, vectors=x.vectors)
    return x
