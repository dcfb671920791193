from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from palaver.comparator.trees import fit_trees


def test_trees_predict_as_scikit_learn_does() -> None:
    from sklearn.ensemble import GradientBoostingRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 8)).astype(np.float32)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2]
    w = rng.random(300)
    ours = fit_trees(x, y, w, n_trees=15, seed=3).predict(x)
    theirs = GradientBoostingRegressor(
        n_estimators=15, learning_rate=0.06, max_depth=3, max_features=0.15, subsample=0.6,
        min_samples_leaf=15, random_state=3,
    ).fit(x, y, sample_weight=w).predict(x)  # fmt: skip
    assert np.allclose(ours, theirs)
