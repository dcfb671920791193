"""Figure 2 against a KNN regressor written out."""

from __future__ import annotations

import numpy as np
import pytest

from palaver.comparator.cmade.removal import figure2
from palaver.comparator.cmade.shapley import pair_values
from palaver.comparator.training_data import Pairs


def plain_accuracy(train, y, dev, pairs, k) -> float:
    def rate(q):
        order = np.argsort(((train - dev[q]) ** 2).sum(axis=1), kind="stable")[:k]
        return y[order].sum() / min(k, len(y))

    right = 0.0
    for p, q, label in zip(pairs.first, pairs.second, pairs.label, strict=True):
        gap = label * (rate(p) - rate(q))
        right += 0.5 if abs(gap) < 1e-9 else float(gap > 0)
    return right / len(pairs.label)


@pytest.fixture
def scene():
    rng = np.random.default_rng(5)
    train = rng.integers(-5, 6, (60, 3)).astype(np.float32)
    dev = rng.integers(-5, 6, (12, 3)).astype(np.float32)
    y = np.clip(np.round(3 + train[:, 0] / 2 + rng.normal(size=60) * 2), 1, 5)
    first = rng.integers(0, 12, 40)
    second = (first + rng.integers(1, 12, 40)) % 12
    label = np.where(dev[first, 0] >= dev[second, 0], 1, -1).astype(np.int8)
    return train, y, dev, Pairs(first, second, label)


def test_every_cell_is_that_of_a_regressor_on_what_is_left(scene) -> None:
    train, y, dev, pairs = scene
    values = pair_values(train, y, dev, pairs, k=5)
    curves = figure2(train, y, values, dev, pairs, ks=[1, 4, 100], removed=[0, 10, 57], n_random=2, block=5)
    assert curves.by_value.shape == (3, 3)
    assert curves.at_random.shape == (2, 3, 3)
    order = np.argsort(values, kind="stable")
    for s, gone in enumerate([0, 10, 57]):
        kept = np.sort(order[gone:])
        for c, k in enumerate([1, 4, 100]):
            assert curves.by_value[s, c] == pytest.approx(plain_accuracy(train[kept], y[kept], dev, pairs, k))
    assert np.array_equal(curves.at_random[:, 0], np.stack([curves.by_value[0]] * 2))


def test_removing_by_value_beats_removing_at_random(scene) -> None:
    train, y, dev, pairs = scene
    values = pair_values(train, y, dev, pairs, k=5)
    curves = figure2(train, y, values, dev, pairs, ks=range(1, 21), removed=[0, 20, 30], n_random=20)
    assert curves.by_value[1:].mean() > curves.at_random[:, 1:].mean() + 0.05
    same = figure2(train, y, values, dev, pairs, ks=range(1, 21), removed=[0, 20, 30], n_random=20)
    assert np.array_equal(curves.at_random, same.at_random)


def test_steps_and_bad_input(scene) -> None:
    train, y, dev, pairs = scene
    curves = figure2(train, y, y, dev, pairs, ks=[3], n_random=0)
    assert curves.removed[[0, 10, 20, -1]].tolist() == [0, 14, 28, 57]
    for options, text in [
        ({"removed": [60]}, "at least one point must stay"),
        ({"removed": []}, "at least one point must stay"),
        ({"ks": [0]}, "k must be 1 or more"),
        ({"ks": []}, "ks is empty"),
    ]:
        with pytest.raises(ValueError, match=text):
            figure2(train, y, y, dev, pairs, **options)
