"""Recovering the character of a sample: an RBF SVM, C tuned inside the training side.

Xing & Fernández (2018, section 4, footnote 7). The classifier is scikit-learn's. It gets the kernel
ready-made: a fold's distances are computed once for all values of C, which makes a fit 2 to 10 times as fast
and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from palaver.errors import require
from palaver.personality.classifiers import OTHERS, SVM
from palaver.personality.samples import Floats, Rows

HELD_OUT = 3
"""One in so many training samples chooses C. Of 1,200 that are 400, enough to tell three values apart."""


@dataclass(frozen=True)
class Side:
    """Vectors and whose they are."""

    vectors: Floats
    label: Rows


@dataclass(frozen=True)
class Fold:
    """What to learn from and be tested on. Without `tune`, C is chosen by a part of `train`."""

    train: Side
    test: Side
    tune: tuple[Side, Side] | None = None
    """To fit on and to choose by: for splits by group, which no division of `train` would respect."""


@dataclass(frozen=True)
class Outcome:
    """What became of a repetition: true x predicted counts, and the C of each fold."""

    confusion: Rows
    chosen: tuple[float, ...]


def run_folds(
    folds: Sequence[Fold],
    n_classes: int,
    grid: Sequence[float],
    *,
    scaled: bool = True,
    seed: int = 0,
    classifier: str = SVM,
) -> Outcome:
    """Train and test on every fold; the predictions of all folds are counted together.

    `grid` are the values of C to choose among. `scaled` brings each column to mean 0 and variance 1 of the
    training side. A `classifier` other than the SVM has no C.
    """
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    rng = np.random.default_rng(seed)
    chosen = []
    for fold in folds:
        if classifier != SVM:
            a, b = _sides(fold.train, fold.test, scaled)
            predicted = OTHERS[classifier](a, fold.train.label, b, seed)
            np.add.at(confusion, (fold.test.label, predicted), 1)
            continue
        kernels = _kernels(fold.train, fold.test, scaled)
        c = choose_c(fold, kernels[0], grid, rng, scaled=scaled)
        predicted = _predict(kernels, fold.train.label, c)
        np.add.at(confusion, (fold.test.label, predicted), 1)
        chosen.append(c)
    return Outcome(confusion, tuple(chosen))


def choose_c(
    fold: Fold, own: Floats, grid: Sequence[float], rng: np.random.Generator, *, scaled: bool = True
) -> float:
    """The C with most right answers on held-out training samples; of equals the smallest.

    `own` is the kernel of the training side with itself, scaled as a whole.
    """
    if len(grid) == 1:
        return grid[0]
    if fold.tune is not None:
        fit, held = fold.tune
        kernels = _kernels(fit, held, scaled)
        fit_label, held_label = fit.label, held.label
    else:
        held_rows = next(stratified(fold.train.label, HELD_OUT, rng))
        fit_rows = np.delete(np.arange(fold.train.label.size), held_rows)
        kernels = (own[np.ix_(fit_rows, fit_rows)], own[np.ix_(held_rows, fit_rows)])
        fit_label, held_label = fold.train.label[fit_rows], fold.train.label[held_rows]
    right = [(_predict(kernels, fit_label, c) == held_label).sum() for c in grid]
    return grid[int(np.argmax(right))]


def stratified(label: Rows, n_folds: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Rows of each fold; every class is spread evenly over the folds."""
    fold = np.empty(label.size, dtype=np.int64)
    for which in np.unique(label):
        rows = rng.permutation(np.flatnonzero(label == which))
        fold[rows] = np.arange(rows.size) % n_folds
    for k in range(n_folds):
        yield np.flatnonzero(fold == k)


def cross_folds(side: Side, n_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Stratified cross-validation of all samples, as the paper has it."""
    folds = []
    for test in stratified(side.label, n_folds, rng):
        train = np.delete(np.arange(side.label.size), test)
        a, b = (Side(side.vectors[rows], side.label[rows]) for rows in (train, test))
        folds.append(Fold(a, b))
    return folds


Kernels = tuple[Floats, Floats]
"""Of the training side with itself, (n, n), and of the test side with the training side, (m, n)."""


def _kernels(train: Side, test: Side, scaled: bool) -> Kernels:
    a, b = _sides(train, test, scaled)
    gamma = 1 / a.shape[1]  # scikit-learn's default of 2018, and for scaled columns today's as well
    return _rbf(a, a, gamma), _rbf(b, a, gamma)


def _sides(train: Side, test: Side, scaled: bool) -> tuple[Floats, Floats]:
    """The vectors of both sides, by the mean and the deviation of the training side where they are scaled."""
    a, b = train.vectors, test.vectors
    if not scaled:
        return a, b
    middle, spread = a.mean(axis=0), a.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return (a - middle) / spread, (b - middle) / spread


def _rbf(a: Floats, b: Floats, gamma: float) -> Floats:
    distance = a @ b.T
    distance *= -2
    distance += (a * a).sum(axis=1)[:, None]
    distance += (b * b).sum(axis=1)
    np.maximum(distance, 0, out=distance)
    distance *= -gamma
    return np.exp(distance, out=distance)


def _predict(kernels: Kernels, label: Rows, c: float) -> Rows:
    own, other = kernels
    return np.asarray(
        require("sklearn.svm", "models").SVC(C=c, kernel="precomputed").fit(own, label).predict(other)
    )
