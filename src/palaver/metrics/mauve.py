"""MAUVE (Pillutla et al. 2021): how close all responses of a system together are to all references.

Both sets are encoded, brought to unit length and to the principal components that hold nine tenths of the
variance, and clustered together by k-means into a tenth as many clusters as the smaller set has texts. What
is compared are the two histograms P and Q of clusters: with R = w P + (1 - w) Q, the points (exp(-5 KL(Q |
R)), exp(-5 KL(P | R))) for w from 0 to 1 make a curve, and the area below it is the figure, 1 for equal
sets.

The clusters depend on chance. The figure is the mean over several seeds, and the lowest and the highest of
them stand beside it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from palaver.errors import require
from palaver.metrics.examples import Examples
from palaver.metrics.metric import Floats, Metric
from palaver.metrics.tokens import Ints
from palaver.models.encoders import Encoder, Places, open_encoder
from palaver.models.encoders.encoder import checked

SEEDS = (0, 1, 2, 3, 4)
SCALE = 5.0
VARIANCE = 0.9
N_WEIGHTS = 25
MAX_TOKENS = 512


def mauve_of_histograms(p: Floats, q: Floats) -> float:
    """The area below the curve of divergences of two distributions over the same clusters."""
    weights = np.linspace(1e-6, 1 - 1e-6, N_WEIGHTS)[:, None]
    mixtures = weights * p + (1 - weights) * q  # (W, K)
    x = np.exp(-SCALE * np.array([0.0, *_divergences(q, mixtures), np.inf]))  # falls from 1 to 0
    y = np.exp(-SCALE * np.array([np.inf, *_divergences(p, mixtures), 0.0]))  # rises from 0 to 1
    return float(np.trapezoid(x, y))


def _divergences(p: Floats, mixtures: Floats) -> Floats:
    """KL(p | r) for each row r of the mixtures, which have mass wherever p has."""
    some = p > 0
    divergences: Floats = (p[some] * np.log(p[some] / mixtures[:, some])).sum(axis=1)
    return np.maximum(divergences, 0)  # rounding may bring it below


def mauve_of_vectors(p: Floats, q: Floats, seed: int) -> float:
    """MAUVE of two sets of vectors, (n, d) and (m, d), with the clusters that `seed` leads to."""
    n_clusters = max(2, round(min(len(p), len(q)) / 10))
    labels = _clusters(np.vstack([q, p]), n_clusters, seed)
    return mauve_of_histograms(
        _histogram(labels[len(q) :], n_clusters), _histogram(labels[: len(q)], n_clusters)
    )


def _clusters(vectors: Floats, n_clusters: int, seed: int) -> Ints:
    decomposition, cluster = require("sklearn.decomposition", "models"), require("sklearn.cluster", "models")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1)
    pca = decomposition.PCA(random_state=seed).fit(units)
    shares = pca.explained_variance_ratio_.cumsum()
    n_kept = int(np.argmax(shares >= VARIANCE)) + 1 if shares[-1] >= VARIANCE else len(shares)
    points = pca.transform(units)[:, :n_kept]
    kmeans = cluster.KMeans(n_clusters, n_init=5, max_iter=500, random_state=seed)
    labels: Ints = kmeans.fit_predict(points)
    return labels


def _histogram(labels: Ints, n_clusters: int) -> Floats:
    return np.bincount(labels, minlength=n_clusters) / len(labels)


@lru_cache(maxsize=4)
def _encoder(name: str, device: str) -> Encoder:
    return open_encoder(name, Places(device=device, max_tokens=MAX_TOKENS))


def _runs(examples: Examples, encoder: Encoder) -> Floats:
    """A value for each seed; nan with fewer than two distinct texts in all."""
    assert examples.rows is not None
    said = [row.prediction for row in examples.rows if row.references]
    expected = [reference for row in examples.rows for reference in row.references]
    distinct = sorted({*said, *expected})
    if len(distinct) < 2 or not said:
        return np.array([1.0 if said and set(said) == set(expected) else np.nan])
    vectors = checked(encoder.encode(distinct), distinct, encoder.name).astype(np.float64)
    row_of = {text: row for row, text in enumerate(distinct)}
    p, q = (vectors[[row_of[text] for text in texts]] for texts in (said, expected))
    return np.array([mauve_of_vectors(p, q, seed) for seed in SEEDS])


_SETTINGS = (
    f"variance:{VARIANCE}|clusters:n/10|scale:{SCALE:g}|points:{N_WEIGHTS}|seeds:{len(SEEDS)}|references:all"
)


def _with_model(which: str, device: str) -> Metric:
    encoder = _encoder(which, device)
    return replace(
        MAUVE,
        settings=f"encoder:{encoder.name}@{encoder.signature[:8]}|{_SETTINGS}",
        runs=lambda examples: _runs(examples, encoder),
    )


MAUVE = Metric(
    name="mauve",
    title="MAUVE",
    better="higher",
    needs=("references",),
    settings=_SETTINGS,
    runs=lambda examples: _runs(examples, _encoder("minilm", "auto")),
    no_interval=f"the lowest and the highest of {len(SEEDS)} clusterings stand in place of an interval",
    of_texts=True,
    model="minilm",
    with_model=_with_model,
)
