"""A fitted model of the method `palaver`, and the folder it is kept in.

The folder holds `comparator.json` and `arrays.npz`, about 200 kB.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver import __version__
from palaver.comparator.representation import LAYOUT, Representation
from palaver.comparator.trees import Trees
from palaver.errors import UserError
from palaver.files import check_writable, write_atomically

Floats = NDArray[np.float64]

RECORD, ARRAYS = "comparator.json", "arrays.npz"
_FORMAT = 1
_KIND = "palaver"
_CLIP = 4.0
"""A dialogue unlike all others is far away in one direction at most this much."""


@dataclass(frozen=True)
class Head:
    """One fit: a row of weights, and trees."""

    weights: Floats  # (F + 4d,)
    intercept: float
    trees: Trees | None


@dataclass(frozen=True)
class Model:
    """What scores dialogues. `unit` makes differences of scores log-odds."""

    centre: Floats  # (F + 4d,)
    scale: Floats  # (F + 4d,), vectors already made smaller
    heads: tuple[Head, ...]
    unit: float = 1.0

    def raw(self, x: Representation) -> Floats:
        """(H, N) what each head says, before the unit."""
        z = standardise(x, self.centre, self.scale)
        linear = z @ np.stack([h.weights for h in self.heads]).T + [h.intercept for h in self.heads]  # (N, H)
        trees = [np.zeros(len(x)) if h.trees is None else h.trees.predict(x.features) for h in self.heads]
        return np.asarray(linear.T + np.stack(trees))

    def heads_of(self, x: Representation) -> Floats:
        """(H, N) scores of each head."""
        n_numbers = x.features.shape[1] + x.vectors.shape[1]
        if n_numbers != len(self.centre):
            raise UserError(
                f"this comparator was trained on {len(self.centre)} numbers a dialogue, found {n_numbers}: "
                "is it another encoder?"
            )
        return self.unit * self.raw(x)


def standardise(x: Representation, centre: Floats, scale: Floats) -> Floats:
    """(N, F + 4d) features and vectors on the scale of the training dialogues."""
    z = (np.hstack([x.features, x.vectors]) - centre) / scale
    features = z[:, : x.features.shape[1]]
    np.clip(features, -_CLIP, _CLIP, out=features)
    return np.asarray(z)


def save_model(model: Model, folder: str | Path, *, encoder: str = "minilm", **about: Any) -> Path:
    """Write the model; `about` is kept in its record as it is."""
    target = Path(folder)
    check_writable(target)
    arrays: dict[str, Any] = {
        "centre": model.centre,
        "scale": model.scale,
        "weights": np.stack([h.weights for h in model.heads]).astype(np.float32),
        "intercept": np.array([h.intercept for h in model.heads]),
    }
    trees = [h.trees for h in model.heads if h.trees is not None]
    if trees:
        arrays |= {
            "feature": np.stack([t.feature for t in trees]).astype(np.int16),
            "threshold": np.stack([t.threshold for t in trees]),  # whole: a rounded one may change sides
            "leaf": np.stack([t.leaf for t in trees]).astype(np.float32),
            "start": np.array([t.start for t in trees]),
        }
    record = {
        "format": _FORMAT,
        "kind": _KIND,
        "palaver": __version__,
        "encoder": encoder,
        "unit": model.unit,
        "features": list(LAYOUT),
        **about,
    }
    with write_atomically(target / ARRAYS, "wb") as file:
        np.savez_compressed(file, **arrays)
    with write_atomically(target / RECORD) as file:
        json.dump(record, file, indent=1)
    return target


def load_model(folder: str | Path) -> tuple[Model, dict[str, Any]]:
    """The model and its record. The error names what is damaged or of another version."""
    source = Path(folder)
    try:
        record = json.loads((source / RECORD).read_text(encoding="utf-8"))
        if not isinstance(record, dict) or record.get("kind") != _KIND:
            raise ValueError("it is not the record of a comparator")
        if record.get("format") != _FORMAT:
            raise UserError(
                f"{source} has format {record.get('format')!r}; this version of palaver reads {_FORMAT}",
                "train it anew, or use the version of palaver that wrote it",
            )
        if record["features"] != list(LAYOUT):
            raise UserError(
                f"{source} was trained on other features than this version of palaver computes",
                "train it anew",
            )
        with np.load(source / ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        heads = tuple(_head(arrays, h) for h in range(len(arrays["weights"])))
        return Model(arrays["centre"], arrays["scale"], heads, float(record["unit"])), record
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{source} cannot be read as a comparator: {error}", "is the folder whole?") from None


def _head(arrays: dict[str, Any], h: int) -> Head:
    trees = None
    if "feature" in arrays:
        trees = Trees(
            arrays["feature"][h].astype(np.int32),
            arrays["threshold"][h],
            arrays["leaf"][h].astype(np.float64),
            float(arrays["start"][h]),
        )
    return Head(arrays["weights"][h].astype(np.float64), float(arrays["intercept"][h]), trees)
