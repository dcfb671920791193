"""The classifiers that the paper tried beside the SVM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.personality.conftest import make_pools

from palaver.errors import UserError
from palaver.personality.classifiers import NAMES, OTHERS
from palaver.personality.plan import Settings
from palaver.personality.protocol import run_protocol


@pytest.mark.parametrize("name", list(OTHERS))
def test_each_finds_clouds_that_lie_apart(name: str) -> None:
    rng = np.random.default_rng(0)
    centres = np.eye(3) * 10
    label = np.repeat(np.arange(3), 20)
    train, test = (centres[label] + rng.normal(size=(60, 3)) for _ in range(2))
    order = rng.permutation(60)
    predicted = OTHERS[name](train[order], label[order], test, 0)
    assert (predicted == label).mean() > 0.95


def test_the_protocol_runs_with_them() -> None:
    options = {"samples": 20, "size": 30, "repetitions": 2, "replicates": 0, "engine": "local"}
    settings = Settings(**options, classifier="agglomerative")
    pools = replace(make_pools([0, 1, 2], strength=0.6), words={})
    result = run_protocol(pools, settings)
    characters, shuffled = result.condition("characters"), result.condition("shuffled labels")
    assert result.classifier == "agglomerative"
    assert characters is not None
    assert shuffled is not None
    assert characters.f1 > 0.8 > 0.5 > shuffled.f1
    assert characters.chosen_c == {}


def test_an_unknown_one_is_refused() -> None:
    with pytest.raises(UserError, match="classifier: expected svm") as caught:
        Settings(classifier="forest")
    assert all(name in str(caught.value) for name in NAMES)
