"""Other classifiers than the SVM: those that Xing & Fernández (2018, footnote 7) tried and do not show.

A multi-layer perceptron, and two kinds of clustering. Clusters are made of the training side without looking
at its labels; each is then given the character that makes the assignment as a whole fit best, and a test
sample has the character of the nearest cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from palaver.errors import require
from palaver.personality.samples import Floats, Rows

Predict = Callable[[Floats, Rows, Floats, int], Rows]
"""Vectors and labels of the training side, vectors of the test side, a seed -> labels of the test side."""


def predict_by_mlp(train: Floats, label: Rows, test: Floats, seed: int) -> Rows:
    """scikit-learn's perceptron with its defaults: one layer of 100 units, Adam, 200 epochs at most."""
    network = require("sklearn.neural_network", "models").MLPClassifier(random_state=seed)
    return np.asarray(network.fit(train, label).predict(test))


def predict_by_k_means(train: Floats, label: Rows, test: Floats, seed: int) -> Rows:
    cluster = require("sklearn.cluster", "models")
    n = int(label.max()) + 1
    clusters = cluster.KMeans(n_clusters=n, n_init=10, random_state=seed).fit_predict(train)
    return _nearest(train, label, np.asarray(clusters), test)


def predict_by_agglomeration(train: Floats, label: Rows, test: Floats, seed: int) -> Rows:
    """Ward's method; nothing in it is random."""
    cluster = require("sklearn.cluster", "models")
    clusters = cluster.AgglomerativeClustering(n_clusters=int(label.max()) + 1).fit_predict(train)
    return _nearest(train, label, np.asarray(clusters), test)


def _nearest(train: Floats, label: Rows, cluster: Rows, test: Floats) -> Rows:
    """The character of the cluster whose centre is nearest."""
    from scipy.optimize import linear_sum_assignment

    n = int(label.max()) + 1
    together = np.zeros((n, n), dtype=np.int64)  # (clusters, characters)
    np.add.at(together, (cluster, label), 1)
    character = linear_sum_assignment(together, maximize=True)[1]
    centres = np.stack([train[cluster == k].mean(axis=0) for k in range(n)])
    distance = ((test[:, None, :] - centres) ** 2).sum(axis=2)
    return np.asarray(character[distance.argmin(axis=1)])


SVM = "svm"
OTHERS: Mapping[str, Predict] = {
    "mlp": predict_by_mlp,
    "k-means": predict_by_k_means,
    "agglomerative": predict_by_agglomeration,
}
NAMES: tuple[str, ...] = (SVM, *OTHERS)
