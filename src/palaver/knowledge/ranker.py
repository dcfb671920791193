"""A selector that has learnt from conversations which sentence comes next, history alone.

Features of each candidate (`palaver.knowledge.features`) go through small networks whose scores are averaged;
a softmax of the scores was fitted to the oracle's choices (`experiments/topical_chat/selector.py`). It needs
scikit-learn for the term weights, and neither torch nor a sentence encoder. The weights that come with
Palaver were learnt from the training part of Topical-Chat (CDLA-Sharing 1.0).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from palaver.errors import DataError
from palaver.knowledge.features import FEATURES, FeatureTable, Priors
from palaver.knowledge.selector import Group, Selector

Floats = NDArray[np.float32]
_LIMIT = 5.0
"""Features are cut at so many standard deviations."""


@dataclass(frozen=True)
class Ranker:
    """The weights of a trained selector: what it has counted, and networks of two hidden layers."""

    priors: Priors
    mean: Floats
    deviation: Floats
    """Of each feature. (F,)"""
    weights: tuple[Floats, Floats, Floats]
    """(N, F, H), (N, H, h), (N, h, 1), of N networks."""
    biases: tuple[Floats, Floats, Floats]
    card: Mapping[str, Any]
    """The data, its licence, the command and the seed."""

    def normalise(self, features: Floats) -> Floats:
        """Features as the networks read them."""
        units = (features - self.mean) / self.deviation
        return np.asarray(np.clip(units, -_LIMIT, _LIMIT), np.float32)

    def scores(self, features: Floats) -> Floats:
        """One score for each row of `features`; differences are ln odds. (rows,)"""
        x = self.normalise(features)[None]  # (1, rows, F)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = x @ weight + bias[:, None]  # (N, rows, H)
            x = x / (1 + np.exp(-x))
        scores: Floats = (x @ self.weights[-1] + self.biases[-1][:, None])[..., 0].mean(axis=0)
        return scores

    def save(self, path: Path) -> None:
        """Write the weights in half precision."""
        p = self.priors
        half = {
            "popularity": p.popularity, "term_odds": p.term_odds, "mean_reply": p.mean_reply,
            "mean": self.mean, "deviation": self.deviation,
            **{f"weight_{i}": weight for i, weight in enumerate(self.weights)},
            **{f"bias_{i}": bias for i, bias in enumerate(self.biases)},
        }  # fmt: skip
        small = {name: _quantise(part) for name, part in (("said", p.said), ("replied", p.replied))}
        arrays: dict[str, Any] = {name: array.astype(np.float16) for name, array in half.items()}
        for name, (values, scale) in small.items():
            arrays |= {name: values, f"{name}_scale": scale}
        arrays |= {"sentences": p.sentences, "terms": _bytes("\n".join(p.terms))}
        np.savez_compressed(path, **arrays, card=_bytes(json.dumps(dict(self.card))))


def load_ranker(source: Path | IO[bytes], n_features: int = len(FEATURES)) -> Ranker:
    """Read what `Ranker.save` wrote."""
    try:
        with np.load(source, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        numbers = {
            n: a.astype(np.float32) for n, a in arrays.items() if n not in ("sentences", "terms", "card")
        }
        priors = Priors(
            sentences=arrays["sentences"],
            popularity=numbers["popularity"],
            terms=tuple(arrays["terms"].tobytes().decode().split("\n")),
            term_odds=numbers["term_odds"],
            mean_reply=numbers["mean_reply"],
            said=numbers["said"] * numbers["said_scale"],
            replied=numbers["replied"] * numbers["replied_scale"],
        )
        ranker = Ranker(
            priors=priors,
            mean=numbers["mean"],
            deviation=numbers["deviation"],
            weights=(numbers["weight_0"], numbers["weight_1"], numbers["weight_2"]),
            biases=(numbers["bias_0"], numbers["bias_1"], numbers["bias_2"]),
            card=json.loads(arrays["card"].tobytes()),
        )
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise DataError(f"{source} does not hold a trained selector: {error}") from error
    if ranker.mean.shape != (n_features,):
        raise DataError(f"{source} is of a version with other features")
    return ranker


@cache
def shipped_ranker(name: str = "selector.npz", n_features: int = len(FEATURES)) -> Ranker:
    """The weights in a file that comes with Palaver."""
    with (files("palaver.knowledge") / name).open("rb") as file:
        return load_ranker(file, n_features)


class TrainedSelector(Selector):
    """Scores candidates as the people of the training conversations would have chosen."""

    name = "trained"

    def __init__(self, sentences: Sequence[str], *, ranker: Ranker | None = None) -> None:
        self.ranker = ranker or shipped_ranker()
        self._table = FeatureTable(sentences, self.ranker.priors)

    def features(self, groups: Sequence[Group]) -> Iterator[list[Floats]]:
        """For each group, and each of its queries, a table (candidates, F)."""
        return self._table.of_groups(groups)

    def scores(self, groups: Sequence[Group]) -> list[NDArray[np.float64] | None]:
        choosing = [group for group in groups if group.queries and group.candidates]
        tables = self.features(choosing)
        return [
            self._scores(next(tables)) if group.queries and group.candidates
            else np.zeros((len(group.queries), len(group.candidates)))
            for group in groups
        ]  # fmt: skip

    def _scores(self, features: list[Floats]) -> NDArray[np.float64]:
        """Scores (queries, candidates) from a table of features for each query."""
        rows = self.ranker.scores(np.concatenate(features))
        return rows.reshape(len(features), -1).astype(np.float64)


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _quantise(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Whole numbers from -127 to 127, and what each column is to be multiplied with."""
    scale = np.maximum(np.abs(table).max(axis=0), 1e-9) / 127
    return np.round(table / scale).astype(np.int8), scale.astype(np.float32)
