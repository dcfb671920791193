"""`--method palaver` from files to a comparator: two stages, each kept in its folder and never done twice.

`represented.npz` holds the numbers of every dialogue, which take longest; `comparator/` is the fitted model,
which `palaver compare score --comparator` reads.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.comparator.data import Pairs, Ratings
from palaver.comparator.method import Fitted, MethodSettings, fit
from palaver.comparator.represent import LAYOUT, Encode, Represented, represent, turn_encoder
from palaver.comparator.signature import data_digest, encoder_digest, short_hash
from palaver.comparator.stored import save_model
from palaver.errors import DataError, UserError
from palaver.files import check_writable, write_atomically

Tell = Callable[[str, int, int], None]
Say = Callable[[str], None]
_ARRAYS, _MODEL, _HELD = "represented", "comparator", "held_out.jsonl"


@dataclass(frozen=True)
class MethodOutcome:
    """A fitted comparator, where it lies, and what it was fitted on."""

    fitted: Fitted
    folder: Path
    ratings: Ratings
    x: Represented
    pairs_x: Represented | None


def train_palaver(
    ratings: Ratings,
    out: str | Path,
    *,
    dev: Ratings | None = None,
    pairs: Pairs | None = None,
    settings: MethodSettings | None = None,
    encoder: str = "minilm",
    encode: Encode | None = None,
    device: str = "cpu",
    fresh: bool = False,
    tell: Tell | None = None,
    say: Say | None = None,
) -> MethodOutcome:
    """Fit the method on `ratings` without the dialogues of `dev`, whose `pairs` fix the scores' unit."""
    target, s, told = Path(out), settings or MethodSettings(), say or (lambda text: None)
    check_writable(target)
    held = set(dev.ids) if dev is not None else set()
    keep = [i for i, name in enumerate(ratings.ids) if name not in held]
    if not keep:
        raise DataError("every rated dialogue is also one of the development set: none is left to train on")
    if len(keep) < len(ratings):
        told(f"{len(ratings) - len(keep)} rated dialogues are in the development set and not trained on")
        ratings = ratings.take(keep)
    mark = encoder_digest(encoder) if encode is None else "a function"
    using = _Lazy(encoder, device, encode)
    x = _represented(ratings, target / f"{_ARRAYS}.npz", using, mark, fresh, tell, told)
    pairs_x = None
    if dev is not None and pairs is not None:
        pairs_x = _represented(dev, target / f"{_ARRAYS}-dev.npz", using, mark, fresh, tell, told)
    fitted = fit(
        ratings, x, pairs=pairs if pairs_x is not None else None, pairs_x=pairs_x, settings=s, tell=tell
    )
    folder = save_model(
        fitted,
        target / _MODEL,
        encoder=encoder,
        data={"ratings": data_digest(ratings), "seed": s.seed, "settings": asdict(s)},
    )
    with write_atomically(target / _HELD) as file:
        for name, score, weight in zip(ratings.ids, fitted.held_out, fitted.weights, strict=True):
            row = {"id": name, "score": round(float(score), 4), "weight": round(float(weight), 4)}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return MethodOutcome(fitted, folder, ratings, x, pairs_x)


class _Lazy:
    """The encoder is loaded only where something is not represented yet."""

    def __init__(self, name: str, device: str, encode: Encode | None) -> None:
        self.name, self.device, self._encode = name, device, encode

    def __call__(self, texts: list[str]) -> Any:
        if self._encode is None:
            self._encode = turn_encoder(self.name, device=self.device)
        return self._encode(texts)


def _represented(
    ratings: Ratings, path: Path, encode: Encode, mark: str, fresh: bool, tell: Tell | None, say: Say
) -> Represented:
    turns = [[(t.speaker, t.text) for t in d.turns] for d in ratings.dialogues]
    signature = short_hash([turns, mark, list(LAYOUT)])
    if path.is_file() and not fresh:
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["signature"]) == signature:
                    say(f"{path.name}: done already")
                    return Represented(file["features"], file["vectors"])
        except (OSError, ValueError, LookupError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} cannot be read: {error}", "begin anew with --fresh") from None
        raise UserError(
            f"{path} holds other dialogues, or those of another encoder",
            "choose another folder with --out, or begin anew with --fresh",
        )
    found = represent(ratings.dialogues, encode, tell=tell)
    with write_atomically(path, "wb") as file:
        np.savez(file, features=found.features, vectors=found.vectors, signature=np.array(signature))
    return found
