"""Fit a recogniser: ridge regression from open features to trait scores, with nested cross-validation.

The strength of the penalty is chosen inside the training part; correlations are of texts that neither the
weights nor the penalty have seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaver.corpora.personalities import TRAITS, trait_values
from palaver.corpora.reading import csv_rows
from palaver.errors import DataError
from palaver.personality.counts import Counter
from palaver.personality.features import Standard
from palaver.personality.recogniser import HIGHEST, LOWEST, LinearRecogniser
from palaver.readers.rows import Problems
from palaver.readers.shapes import Tally

PENALTIES = tuple(float(p) for p in np.logspace(0.5, 4, 15))
MIN_TEXTS = 50


@dataclass(frozen=True)
class RecogniserFit:
    """A recogniser and how well it does on texts it was not fitted on."""

    recogniser: LinearRecogniser
    n_texts: int
    n_folds: int
    correlations: tuple[float, ...]
    """Held out, in the order of OCEAN."""
    mean_errors: tuple[float, ...]
    """Mean absolute error, held out."""
    slopes: tuple[float, ...]
    """Of the true scores on the held-out predictions; 1 is a calibrated recogniser."""
    penalties: tuple[float, ...]
    predicted: np.ndarray
    """(n, 5) held-out predictions."""


def read_scored_texts(path: Path) -> tuple[list[str], np.ndarray]:
    """A CSV file with `text` and five columns of scores from 1 to 7, by the trait's name or its first
    letter."""
    texts: list[str] = []
    scores: list[list[float]] = []
    problems = Problems()
    columns: list[str] = []
    for number, row in csv_rows(path, ["text"], Tally()):
        if not columns:
            columns = trait_values({name: name for name in row})
            missing = [trait for trait, name in zip(TRAITS, columns, strict=True) if name is None]
            if missing:
                raise DataError(
                    f"{path}: there is no column {' and none '.join(missing)}",
                    f"expected text, {', '.join(TRAITS)} (or their first letters); found {', '.join(row)}",
                )
        values = [_score(row[column]) for column in columns]
        for column, value in zip(columns, values, strict=True):
            if value is None:
                problems.add(number, f"{column} should be a number from 1 to 7, found {row[column]!r}")
        if not any(c.isalnum() for c in row["text"]):
            problems.add(number, "the text has no words")
        texts.append(row["text"])
        scores.append([value or 0.0 for value in values])
    if problems:
        raise problems.error(path, "text with its scores", "row")
    if not texts:
        raise DataError(f"{path} holds no texts", f"expected text, {', '.join(TRAITS)}")
    return texts, np.array(scores).reshape(-1, 5)


def _score(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if LOWEST <= value <= HIGHEST else None


def fit(
    texts: Sequence[str],
    scores: np.ndarray,
    counter: Counter,
    *,
    name: str,
    n_folds: int = 10,
    prior: float = 50.0,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> RecogniserFit:
    """Fit on all texts; the correlations come from `n_folds` folds. `scores` (n, 5) from 1 to 7."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape != (len(texts), 5):
        raise ValueError(f"expected ({len(texts)}, 5) scores, found {scores.shape}")
    if len(texts) < MIN_TEXTS:
        raise DataError(f"a recogniser needs at least {MIN_TEXTS} texts with scores, found {len(texts)}")
    totals = counter.complete(counter.count(texts).toarray())
    flat = [trait for t, trait in enumerate(TRAITS) if scores[:, t].std() < 1e-9]
    if flat:
        raise DataError(f"all texts have the same score for {', '.join(flat)}")
    rng = np.random.default_rng(seed)
    folds = rng.permutation(len(texts)) % n_folds
    predicted = np.empty_like(scores)
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        standard = Standard.learn(totals[train], counter.columns, prior=prior)
        weights, intercepts, _ = choose_ridge(standard.features(totals[train]), scores[train], rng)
        predicted[test] = standard.features(totals[test]) @ weights + intercepts
    standard = Standard.learn(totals, counter.columns, prior=prior)
    weights, intercepts, penalties = choose_ridge(standard.features(totals), scores, rng)
    correlations = tuple(float(np.corrcoef(predicted[:, t], scores[:, t])[0, 1]) for t in range(5))
    facts = {
        **(provenance or {}),
        "texts": len(texts),
        "folds": n_folds,
        "seed": seed,
        "penalties": [round(p, 3) for p in penalties],
        "held_out_correlations": [round(r, 4) for r in correlations],
    }
    return RecogniserFit(
        recogniser=LinearRecogniser(name, counter, standard, weights, intercepts, facts),
        n_texts=len(texts),
        n_folds=n_folds,
        correlations=correlations,
        mean_errors=tuple(float(v) for v in np.abs(predicted - scores).mean(axis=0)),
        slopes=tuple(float(np.polyfit(predicted[:, t], scores[:, t], 1)[0]) for t in range(5)),
        penalties=penalties,
        predicted=predicted,
    )


def choose_ridge(
    x: np.ndarray, y: np.ndarray, rng: np.random.Generator, n_folds: int = 5
) -> tuple[np.ndarray, np.ndarray, tuple[float, ...]]:
    """Weights (p, 5), intercepts (5,) and the penalty of each trait with the least error in inner folds."""
    folds = rng.permutation(len(x)) % n_folds
    errors = np.zeros((len(PENALTIES), y.shape[1]))
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        path, intercepts = ridge_path(x[train], y[train], PENALTIES)
        for i in range(len(PENALTIES)):
            errors[i] += ((x[test] @ path[i] + intercepts[i] - y[test]) ** 2).sum(axis=0)
    best = errors.argmin(axis=0)
    path, intercepts = ridge_path(x, y, PENALTIES)
    traits = range(y.shape[1])
    weights = np.stack([path[best[t], :, t] for t in traits], axis=1)
    chosen = np.array([intercepts[best[t], t] for t in traits])
    return weights, chosen, tuple(PENALTIES[b] for b in best)


def ridge_path(x: np.ndarray, y: np.ndarray, penalties: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Ridge for every penalty from one eigendecomposition: weights (penalties, p, t), intercepts (penalties,
    t)."""
    x_mean, y_mean = x.mean(axis=0), y.mean(axis=0)
    centred, target = x - x_mean, y - y_mean
    if len(x) < x.shape[1]:  # fewer texts than features: the same weights by way of the texts
        values, vectors = np.linalg.eigh(centred @ centred.T)
        left, right = centred.T @ vectors, vectors.T @ target
    else:
        values, vectors = np.linalg.eigh(centred.T @ centred)
        left, right = vectors, vectors.T @ (centred.T @ target)
    weights = np.stack([left @ (right / (values + p)[:, None]) for p in penalties])
    return weights, y_mean - np.einsum("j,ijt->it", x_mean, weights)
