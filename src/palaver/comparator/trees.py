"""Boosted regression trees as plain arrays: learnt by scikit-learn, applied by NumPy alone.

Every tree is a full binary tree of the same depth: a node that was not split sends everything to its left,
and its leaves hold the same value. So all trees are applied to all rows in `depth` steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palaver.errors import require

Floats = NDArray[np.float64]
_ROWS = 256


@dataclass(frozen=True)
class Trees:
    """`feature` and `threshold` (T, 2^depth - 1), `leaf` (T, 2^depth); trees add up."""

    feature: NDArray[np.int32]
    threshold: Floats
    leaf: Floats
    start: float = 0.0

    @property
    def depth(self) -> int:
        return int(np.log2(self.leaf.shape[1]))

    def predict(self, x: NDArray[np.float32]) -> Floats:
        """(N,) predictions for (N, F) features."""
        predictions = np.empty(len(x))
        tree = np.arange(len(self.feature))  # (T,)
        inner = self.feature.shape[1]
        for begin in range(0, len(x), _ROWS):
            part = x[begin : begin + _ROWS]
            row = np.arange(len(part))[:, None]  # (n, 1)
            node = np.zeros((len(part), len(tree)), np.int64)  # (n, T)
            for _ in range(self.depth):
                goes_right = part[row, self.feature[tree, node]] > self.threshold[tree, node]
                node = 2 * node + 1 + goes_right
            predictions[begin : begin + _ROWS] = self.leaf[tree, node - inner].sum(1) + self.start
        return predictions


def fit_trees(
    x: NDArray[np.float32],
    y: Floats,
    weights: Floats,
    *,
    n_trees: int = 150,
    rate: float = 0.06,
    depth: int = 3,
    seed: int = 0,
) -> Trees:
    """Gradient boosting of squared error (Friedman 2001), each tree on a part of rows and features."""
    ensemble = require("sklearn.ensemble", "models")
    model = ensemble.GradientBoostingRegressor(
        n_estimators=n_trees,
        learning_rate=rate,
        max_depth=depth,
        max_features=0.15,
        subsample=0.6,
        min_samples_leaf=min(20, max(1, len(y) // 20)),
        random_state=seed,
    ).fit(x, y, sample_weight=weights)
    parts = [_full(stage[0].tree_, depth, rate) for stage in model.estimators_]
    feature, threshold, leaf = (np.stack(column) for column in zip(*parts, strict=True))
    return Trees(feature, threshold, leaf, float(np.ravel(model.init_.constant_)[0]))


def _full(tree: Any, depth: int, rate: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    inner = 2**depth - 1
    feature, threshold = np.zeros(inner, np.int32), np.full(inner, np.inf)
    leaf = np.zeros(inner + 1)

    def walk(node: int, place: int) -> None:
        is_leaf = tree.children_left[node] < 0
        if place >= inner:
            leaf[place - inner] = rate * tree.value[node, 0, 0]
            return
        if not is_leaf:
            feature[place], threshold[place] = tree.feature[node], tree.threshold[node]
        walk(node if is_leaf else tree.children_left[node], 2 * place + 1)
        walk(node if is_leaf else tree.children_right[node], 2 * place + 2)

    walk(0, 0)
    return feature, threshold, leaf
