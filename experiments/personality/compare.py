"""What the card of the recogniser compares: other regressions, fewer features, and the binary labels.

    python experiments/personality/compare.py ../shared/data/personality

Five outer folds by essay; whatever is chosen is chosen inside the training part. Takes a few minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from fit import FILE, essays, recogniser_scores  # type: ignore[import-not-found]
from sklearn.cross_decomposition import PLSRegression
from sklearn.svm import LinearSVR

from palaver.corpora.personalities import TRAITS
from palaver.personality.counts import KNOWN, MARKS, SURFACE, Counter
from palaver.personality.features import Standard, feature_names
from palaver.personality.fit import choose_ridge
from palaver.personality.lexicon import open_lexicon

N_FOLDS = 5
LABELS = ("cOPN", "cCON", "cEXT", "cAGR", "cNEU")
Predict = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""(features and targets of training, features of the test) -> predictions."""


def ridge(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    weights, intercepts, _ = choose_ridge(x, y, np.random.default_rng(0))
    return new @ weights + intercepts


def chosen(settings: tuple[float, ...], make: Callable[[float], Predict]) -> Predict:
    """The best setting of each trait by the error in three inner folds."""

    def predict(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        inner = np.random.default_rng(0).permutation(len(x)) % 3
        errors = np.zeros((len(settings), 5))
        for i, setting in enumerate(settings):
            for fold in range(3):
                train, test = inner != fold, inner == fold
                errors[i] += ((make(setting)(x[train], y[train], x[test]) - y[test]) ** 2).sum(axis=0)
        best = errors.argmin(axis=0)
        found = {i: make(settings[i])(x, y, new) for i in set(best.tolist())}
        return np.stack([found[b][:, t] for t, b in enumerate(best)], axis=1)

    return predict


def pls(components: float) -> Predict:
    return lambda x, y, new: PLSRegression(int(components), scale=False).fit(x, y).predict(new)


def svr(c: float) -> Predict:
    def predict(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        models = [
            LinearSVR(C=c, epsilon=0.05, max_iter=3000, random_state=0).fit(x, column) for column in y.T
        ]
        return np.stack([model.predict(new) for model in models], axis=1)

    return predict


def held_out(
    totals: np.ndarray, y: np.ndarray, columns: tuple[str, ...], used: np.ndarray, by: Predict
) -> np.ndarray:
    folds = np.random.default_rng(0).permutation(len(y)) % N_FOLDS
    predicted = np.empty(y.shape)
    for fold in range(N_FOLDS):
        train, test = folds != fold, folds == fold
        standard = Standard.learn(totals[train], columns)
        x, new = (standard.features(totals[rows])[:, used] for rows in (train, test))
        predicted[test] = by(x, y[train], new)
    return predicted


def main(data: Path) -> None:
    rows = essays(data / FILE)
    counter = Counter(open_lexicon())
    totals = counter.complete(counter.count([row["text"] for row in rows]).toarray())
    scores = recogniser_scores(rows)
    names = feature_names(counter.columns)
    single = np.array([":" in name for name in names])
    surface = np.array([name in (*SURFACE, *MARKS, KNOWN, "words_per_sentence") for name in names])
    everything = np.ones(len(names), dtype=bool)
    print(f"{len(rows):,} essays, {N_FOLDS} folds, {len(names)} features\n")
    print(f"{'correlation, held out':<34}" + "".join(f"{trait[:5]:>8}" for trait in TRAITS))
    cases: list[tuple[str, np.ndarray, Predict]] = [
        ("ridge, everything", everything, ridge),
        ("ridge, without single words", ~single, ridge),
        ("ridge, only single words", single, ridge),
        ("ridge, only surface features", surface, ridge),
        ("PLS, everything", everything, chosen((10, 20, 40, 80), pls)),
        ("linear SVR, everything", everything, chosen((0.003, 0.01, 0.03), svr)),
    ]
    by_scores = np.empty(0)
    for label, used, by in cases:
        predicted = held_out(totals, scores, counter.columns, used, by)
        by_scores = predicted if label == "ridge, everything" else by_scores
        cells = [np.corrcoef(predicted[:, t], scores[:, t])[0, 1] for t in range(5)]
        print(f"{label:<34}" + "".join(f"{cell:8.3f}" for cell in cells), flush=True)

    labels = np.array([[float(row[label]) for label in LABELS] for row in rows])
    print(f"\n{'accuracy on the binary labels':<34}" + "".join(f"{trait[:5]:>8}" for trait in TRAITS))
    trained = held_out(totals, labels, counter.columns, everything, ridge)
    for label, high in [
        ("the more frequent label", np.broadcast_to(labels.mean(axis=0) > 0.5, labels.shape)),
        ("ridge on the labels", trained > 0.5),
        ("our scores above their median", by_scores > np.median(by_scores, axis=0)),
        ("published scores above the median", scores > np.median(scores, axis=0)),
    ]:
        print(
            f"{label:<34}" + "".join(f"{a:8.3f}" for a in (high == (labels > 0.5)).mean(axis=0)), flush=True
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
