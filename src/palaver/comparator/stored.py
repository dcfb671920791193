"""A fitted model of the method `palaver` as a folder: `comparator.json` and `arrays.npz`, about 200 kB."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from palaver import __version__
from palaver.comparator.method import Fitted, Head, Model, describe
from palaver.comparator.represent import LAYOUT
from palaver.comparator.trees import Trees
from palaver.errors import UserError
from palaver.files import check_writable, write_atomically

RECORD, ARRAYS = "comparator.json", "arrays.npz"
FORMAT = 1
KIND = "palaver"


def save_model(found: Fitted, folder: str | Path, *, encoder: str = "minilm", **about: Any) -> Path:
    """Write the model, and beside it what it was measured to do; `about` is kept as it is."""
    target = Path(folder)
    check_writable(target)
    model, heads = found.model, found.model.heads
    arrays: dict[str, Any] = {
        "centre": model.centre,
        "scale": model.scale,
        "weights": np.stack([h.weights for h in heads]).astype(np.float32),
        "intercept": np.array([h.intercept for h in heads]),
    }
    trees = [h.trees for h in heads if h.trees is not None]
    if trees:
        arrays |= {
            "feature": np.stack([t.feature for t in trees]).astype(np.int16),
            "threshold": np.stack([t.threshold for t in trees]),  # whole: a rounded one may change sides
            "leaf": np.stack([t.leaf for t in trees]).astype(np.float32),
            "start": np.array([t.start for t in trees]),
        }
    record = {
        "format": FORMAT,
        "kind": KIND,
        "palaver": __version__,
        "encoder": encoder,
        "unit": model.unit,
        "features": list(LAYOUT),
        **about,
        **{key: value for key, value in describe(found).items() if key != "unit"},
        "notes": list(found.notes),
    }
    with write_atomically(target / ARRAYS, "wb") as file:
        np.savez_compressed(file, **arrays)
    with write_atomically(target / RECORD) as file:
        json.dump(record, file, indent=1)
    return target


def load_model(folder: str | Path) -> tuple[Model, dict[str, Any]]:
    """The model and its record; what is damaged or of another version is named."""
    source = Path(folder)
    try:
        record = json.loads((source / RECORD).read_text(encoding="utf-8"))
        if not isinstance(record, dict) or record.get("kind") != KIND:
            raise ValueError("it is not the record of a comparator")
        if record.get("format") != FORMAT:
            raise UserError(
                f"{source} has format {record.get('format')!r}; this version of palaver reads {FORMAT}",
                "train it anew, or use the version of palaver that wrote it",
            )
        if record["features"] != list(LAYOUT):
            raise UserError(
                f"{source} was trained on other features than this version of palaver computes",
                "train it anew",
            )
        with np.load(source / ARRAYS, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _model(arrays, float(record["unit"])), record
    except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise UserError(f"{source} cannot be read as a comparator: {error}", "is the folder whole?") from None


def _model(arrays: dict[str, Any], unit: float) -> Model:
    heads = []
    for h, (weights, intercept) in enumerate(zip(arrays["weights"], arrays["intercept"], strict=True)):
        trees = None
        if "feature" in arrays:
            trees = Trees(
                arrays["feature"][h].astype(np.int32),
                arrays["threshold"][h],
                arrays["leaf"][h].astype(np.float64),
                float(arrays["start"][h]),
            )
        heads.append(Head(weights.astype(np.float64), float(intercept), trees))
    return Model(arrays["centre"], arrays["scale"], tuple(heads), unit)
