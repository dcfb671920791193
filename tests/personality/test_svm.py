"""The classifier beside scikit-learn's own way, and precision, recall and F1 beside counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import precision_recall_fscore_support
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from palaver.personality.results import prf
from palaver.personality.svm import Fold, Side, choose_c, cross_folds, run_folds, stratified
from palaver.personality.svm import _kernels as kernels


def blobs(n: int = 40, classes: int = 3, d: int = 5, apart: float = 1.0, seed: int = 0) -> Side:
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(classes), n)
    centre = rng.normal(size=(classes, d)) * apart
    return Side((centre[label] + rng.normal(size=(label.size, d))) * [1, 10, 100, 1, 1][:d] + 5, label)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_same_predictions_as_scikit_learn(scaled: bool) -> None:
    side = blobs()
    folds = cross_folds(side, 5, np.random.default_rng(1))
    ours = run_folds(folds, 3, (1.0,), scaled=scaled).confusion
    theirs = np.zeros((3, 3), dtype=int)
    for fold in folds:
        machine = SVC(C=1.0, gamma=1 / 5)
        model = make_pipeline(StandardScaler(), machine) if scaled else machine
        predicted = model.fit(fold.train.vectors, fold.train.label).predict(fold.test.vectors)
        np.add.at(theirs, (fold.test.label, predicted), 1)
    assert ours.tolist() == theirs.tolist()


def test_c_is_the_one_with_most_right_answers_on_held_out_samples() -> None:
    side = blobs(n=60, apart=0.7, seed=4)
    grid = (0.001, 1.0, 1000.0)
    whole = StandardScaler().fit_transform(side.vectors)
    held = next(stratified(side.label, 3, np.random.default_rng(9)))
    fit = np.setdiff1d(np.arange(side.label.size), held)
    right = [
        (
            SVC(C=c, gamma=1 / 5).fit(whole[fit], side.label[fit]).predict(whole[held]) == side.label[held]
        ).sum()
        for c in grid
    ]
    own, _ = kernels(side, side, True)
    chosen = choose_c(Fold(side, side), own, grid, np.random.default_rng(9))
    assert chosen == grid[int(np.argmax(right))]
    assert len(set(right)) == 3  # so that the choice means something


def test_c_is_tuned_on_what_is_given_for_it() -> None:
    train, test = blobs(seed=1), blobs(seed=1)
    wrong = Side(
        train.vectors, (train.label + 1) % 3
    )  # learnt from wrong labels, only a tiny C is ever right
    grid = (1e-6, 10.0)
    own, _ = kernels(train, train, True)
    rng = np.random.default_rng(0)
    assert choose_c(Fold(train, test, (train, test)), own, grid, rng) == 10.0
    assert choose_c(Fold(train, test, (wrong, test)), own, grid, rng) == 1e-6


def test_a_trait_that_never_varies() -> None:
    side = blobs(d=3)
    flat = Side(np.column_stack([side.vectors, np.full(side.label.size, 4.0)]), side.label)
    outcome = run_folds(cross_folds(flat, 5, np.random.default_rng(0)), 3, (0.1, 1.0, 10.0))
    assert outcome.confusion.sum() == side.label.size
    assert len(outcome.chosen) == 5


@given(st.integers(2, 40), st.integers(2, 5), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_folds_are_stratified(n: int, n_folds: int, seed: int) -> None:
    label = np.random.default_rng(seed).integers(3, size=n)
    folds = list(stratified(label, n_folds, np.random.default_rng(seed)))
    assert sorted(np.concatenate(folds).tolist()) == list(range(n))
    for which in np.unique(label):
        sizes = [int((label[rows] == which).sum()) for rows in folds]
        assert max(sizes) - min(sizes) <= 1


@given(arrays(np.int64, (4, 4), elements=st.integers(0, 6)))
@settings(max_examples=50, deadline=None)
def test_precision_recall_f1(confusion: Any) -> None:
    true = [i for i in range(4) for j in range(4) for _ in range(confusion[i, j])]
    predicted = [j for i in range(4) for j in range(4) for _ in range(confusion[i, j])]
    scores = prf(confusion)
    for k in range(4):  # by counting
        right = sum(t == p == k for t, p in zip(true, predicted, strict=True))
        said, is_k = predicted.count(k), true.count(k)
        precision, recall = right / said if said else 0, right / is_k if is_k else 0
        assert scores[0, k] == pytest.approx(precision)
        assert scores[1, k] == pytest.approx(recall)
        both = precision + recall
        assert scores[2, k] == pytest.approx(2 * precision * recall / both if both else 0)
    if true:
        theirs = precision_recall_fscore_support(true, predicted, labels=range(4), zero_division=0)
        assert np.allclose(scores, np.array(theirs[:3]))
