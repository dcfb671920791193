"""Simulations with known truth: how often do the intervals and decisions of `palaver trust` go wrong?

Every grid is a list of rows; `run.py` writes them to docs/results/trust.json. Each study draws from a
stream of its own, (seed, grid, cell), so a cell can be computed alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palaver.statistics.clusters import clustered_difference, clustered_mean
from palaver.statistics.power import wilson_interval

Row = dict[str, Any]
Generator = np.random.Generator

Z = 1.959963984540054


def stream(seed: int, *names: object) -> Generator:
    """Random numbers that depend on the seed and on what they are for."""
    return np.random.default_rng([seed, *(byte for name in names for byte in str(name).encode())])


def rate(hits: float, n: int) -> Row:
    """A share of the studies with its 95% interval."""
    low, high = wilson_interval(hits, n)
    return {"rate": hits / n, "low": low, "high": high, "studies": n}


# Intervals clustered by dialogue and rater ------------------------------------------------------------

DESIGNS = (
    {"dialogues": 20, "raters": 6, "each": 6},
    {"dialogues": 100, "raters": 20, "each": 20},
    {"dialogues": 100, "raters": 20, "each": 3},
    {"dialogues": 30, "raters": 3, "each": 3},
)
"""`each`: how many of the raters judge a dialogue, drawn at random."""
DEVIATIONS = (
    {"dialogue": 0.5, "rater": 0.3, "rest": 0.8},
    {"dialogue": 0.3, "rater": 0.5, "rest": 0.8},
    {"dialogue": 0.0, "rater": 0.0, "rest": 1.0},
)


def interval_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of 95% intervals of means and of differences, beside what simpler intervals cover."""
    for design in DESIGNS:
        for deviations in DEVIATIONS:
            for what in ("mean", "difference"):
                rng = stream(seed, "interval", design, deviations, what)
                covered = {"two-way": 0, "plain two-way": 0, "dialogues only": 0, "rows": 0}
                for _ in range(n_studies):
                    for name, hit in _covers(design, deviations, what, rng).items():
                        covered[name] += hit
                rates = {name: rate(hits, n_studies) for name, hits in covered.items()}
                yield {**design, "deviations": deviations, "of": what, "coverage": rates}


def _covers(design: Row, deviations: Row, what: str, rng: Generator) -> dict[str, bool]:
    n_dialogues, n_raters, each = design["dialogues"], design["raters"], design["each"]
    dialogue = np.repeat(np.arange(n_dialogues), each)
    rater = np.argsort(rng.random((n_dialogues, n_raters)), axis=1)[:, :each].ravel()

    def ratings() -> np.ndarray:
        own = deviations["dialogue"] * rng.standard_normal(n_dialogues)[dialogue]
        own += deviations["rater"] * rng.standard_normal(n_raters)[rater]
        return own + deviations["rest"] * rng.standard_normal(dialogue.size)

    if what == "mean":
        value = ratings()
        ours = clustered_mean(value, dialogue, rater)
        alone = clustered_mean(value, dialogue)
        influence = (value - value.mean()) / value.size
    else:  # of two systems, each with its own effects, beside levels of dialogues and raters that both share
        level = rng.standard_normal(n_dialogues)[dialogue] + rng.standard_normal(n_raters)[rater]
        first, second = ratings() + level, ratings() + level
        both = np.r_[first, second]
        is_first = np.r_[np.ones(first.size, bool), np.zeros(first.size, bool)]
        ours = clustered_difference(both, is_first, np.r_[dialogue, dialogue], np.r_[rater, rater])
        alone = clustered_difference(both, is_first, np.r_[dialogue, dialogue])
        influence = (first - second - (first - second).mean()) / first.size
    squares = [np.sum(np.bincount(codes, influence) ** 2) for codes in (dialogue, rater)]
    plain = max(0.0, squares[0] + squares[1] - float(influence @ influence))
    return {
        "two-way": ours.low <= 0 <= ours.high,
        "plain two-way": abs(ours.value) <= Z * plain**0.5,
        "dialogues only": alone.low <= 0 <= alone.high,
        "rows": abs(ours.value) <= Z * ours.se_rows,
    }
