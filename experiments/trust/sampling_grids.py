"""Dialogues drawn with unequal probabilities: do corrected intervals cover, and what does it save?

Each study has a pilot of 60 dialogues. Where people and judge differ in it is fitted to how unsure the judge
is, the probabilities follow from that, and the study's dialogues are drawn with them. The judge finds what it
is unsure of better than people do, so that a study that forgets the probabilities is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from grids import Generator, Row, rate, stream

from palaver.statistics.clusters import clustered_mean
from palaver.statistics.prediction_powered import prediction_powered_mean
from palaver.statistics.prediction_powered_pairs import Comparisons, Verdicts, prediction_powered_strengths
from palaver.statistics.sampling import draw_sample, fit_residuals, sampling_probabilities
from palaver.statistics.sequences import FIRST_LOOK, clustered_look

PILOT = 60
AVAILABLE = 500
DESIGNS = tuple(
    {"dialogues": n, "raters": raters, "each": 3, "available": AVAILABLE, "uneven": uneven}
    for n, raters in ((40, 8), (120, 12))
    for uneven in (0.0, 1.0, 3.0)
)
"""`uneven`: by how much the deviation of the judge's error rises to where it is least sure, from 0.3 on."""


def sampling_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of the mean, corrected and not, beside dialogues that are drawn alike."""
    for design in DESIGNS:
        rng = stream(seed, "sampling", design)
        covered = {"corrected": 0, "people alone, corrected": 0, "not corrected": 0, "drawn alike": 0}
        lengths: list[float] = []
        n_uneven = 0
        for _ in range(n_studies):
            hits, is_uneven = _study(design, rng, lengths)
            n_uneven += is_uneven
            for name, hit in hits.items():
                covered[name] += hit
        yield {
            **design,
            "coverage": {name: rate(hits, n_studies) for name, hits in covered.items()},
            "drawn_unequally": n_uneven / n_studies,
            "length": float(np.mean(lengths)),
        }


def _population(n: int, uneven: float, rng: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quality with mean 0, the judge's score, and how unsure it is."""
    unsure = rng.random(n) ** 3  # it is sure of most
    judge = rng.standard_normal(n)
    error = uneven * (0.25 - unsure) + (0.3 + uneven * unsure) * rng.standard_normal(n)
    return judge + error, judge, unsure


def _rate(quality: np.ndarray, n_raters: int, each: int, level: np.ndarray, rng: Generator) -> tuple:
    n = quality.size
    dialogue = np.repeat(np.arange(n), each)
    rater = np.argsort(rng.random((n, n_raters)), axis=1)[:, :each].ravel()
    value = quality[dialogue] + level[rater] + 0.5 * rng.standard_normal(dialogue.size)
    return value, dialogue, rater


def _study(design: Row, rng: Generator, lengths: list[float]) -> tuple[dict[str, bool], bool]:
    n, n_raters, each = design["dialogues"], design["raters"], design["each"]
    pilot, judge, unsure = _population(PILOT, design["uneven"], rng)
    value, dialogue, _ = _rate(pilot, n_raters, each, 0.1 * rng.standard_normal(n_raters), rng)
    means = np.bincount(dialogue, value) / each
    slope = np.cov(means, judge)[0, 1] / judge.var(ddof=1)
    model = fit_residuals(means - slope * judge, unsure)
    quality, judge, unsure = _population(design["available"], design["uneven"], rng)
    chances = sampling_probabilities(model.variance(unsure), n)
    level = 0.1 * rng.standard_normal(n_raters)

    def estimate(drawn: np.ndarray, corrected: bool) -> tuple:
        value, dialogue, rater = _rate(quality[drawn], n_raters, each, level, rng)
        sampling = chances[drawn][dialogue] if corrected else None
        others = np.delete(judge, drawn)
        found = prediction_powered_mean(
            value, judge[drawn][dialogue], dialogue, rater, others, sampling=sampling
        )
        weight = None if sampling is None else 1 / sampling
        return found.together, clustered_mean(value, dialogue, rater, weight=weight)

    drawn = draw_sample(chances, rng)
    corrected, alone = estimate(drawn, True)
    naive, _ = estimate(drawn, False)
    alike, _ = estimate(rng.choice(quality.size, n, replace=False), False)
    lengths.append(corrected.se / alike.se)
    intervals = {
        "corrected": corrected, "people alone, corrected": alone, "not corrected": naive, "drawn alike": alike
    }  # fmt: skip
    return {name: one.low <= 0 <= one.high for name, one in intervals.items()}, not model.reason


STRENGTHS = np.array([0.6, 0.0, -0.4])


def sampled_strength_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of Bradley-Terry strengths; dialogues on which systems differ more are drawn more often."""
    truth = [pair.people.value for pair in _strengths(40_000, 40_000, stream(seed, "truth"), False).pairs]
    for n in (40, 120):
        rng = stream(seed, "sampled strengths", n)
        covered = {"corrected": 0, "people alone, corrected": 0, "not corrected": 0}
        total = 0
        for _ in range(n_studies):
            right, naive = (_strengths(n, AVAILABLE, rng, corrected) for corrected in (True, False))
            if right.reason or naive.reason:
                continue
            total += len(truth)
            for pair, plain, expected in zip(right.pairs, naive.pairs, truth, strict=True):
                covered["corrected"] += pair.interval.low <= expected <= pair.interval.high
                covered["people alone, corrected"] += pair.people.low <= expected <= pair.people.high
                covered["not corrected"] += plain.interval.low <= expected <= plain.interval.high
        rates = {name: rate(hits, total) for name, hits in covered.items()}
        yield {"dialogues": n, "raters": 8, "each": 2, "available": AVAILABLE, "coverage": rates}


def _strengths(n: int, available: int, rng: Generator, corrected: bool):
    unsure = rng.random(available)
    chances = sampling_probabilities((0.2 + 2 * unsure) ** 2, n)
    drawn = np.arange(n) if n == available else draw_sample(chances, rng)
    first, second = np.tile([0, 0, 1], available), np.tile([1, 2, 2], available)
    dialogue = np.repeat(np.arange(available), 3)
    gap = (STRENGTHS[first] - STRENGTHS[second]) * 2 * unsure[dialogue]  # where unsure, systems differ more
    gap += 0.6 * rng.standard_normal(gap.size)
    judge = np.round(0.5 + 0.5 * np.tanh(gap + (0.2 + unsure[dialogue]) * rng.standard_normal(gap.size)), 1)
    rows = np.repeat(np.flatnonzero(np.isin(dialogue, drawn)), 2)
    raters = np.argsort(rng.random((available, 8)), axis=1)[:, :2]
    rater = raters[dialogue[rows], np.tile([0, 1], rows.size // 2)]
    position = rng.choice([-1.0, 1.0], rows.size)
    heard = gap[rows] + 0.2 * position + 0.2 * rng.standard_normal(8)[rater] + rng.logistic(size=rows.size)
    won = np.where(np.abs(heard) < 0.3, 0.5, (heard > 0).astype(float))
    sampling = chances[dialogue[rows]] if corrected else None
    given = np.ones(dialogue.size, bool) if corrected else ~np.isin(dialogue, drawn)
    return prediction_powered_strengths(
        Comparisons(first[rows], second[rows], won, judge[rows], dialogue[rows], rater, position, sampling),
        Verdicts(first[given], second[given], judge[given], dialogue[given]),
        ["a", "b", "c"],
    )


SEQUENCES = (
    {"difference": 0.0, "uneven": 0.0},
    {"difference": 0.0, "uneven": 2.0},
    {"difference": 0.5, "uneven": 2.0},
)


def sampled_sequence_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """A served study with a judge: 60 of 300 dialogues drawn unequally, watched after every dialogue."""
    for design in SEQUENCES:
        rng = stream(seed, "sampled sequence", design)
        found = {"corrected": 0, "people alone": 0}
        stopped: dict[str, list[int]] = {name: [] for name in found}
        for _ in range(n_studies):
            for name, at in _watched(design, rng).items():
                found[name] += at is not None
                stopped[name].append(60 if at is None else at)
        yield {
            **design, "dialogues": 60, "available": 300, "raters": 10, "each": 3,
            "any_difference": {name: rate(hits, n_studies) for name, hits in found.items()},
            "mean_dialogues": {name: float(np.mean(at)) for name, at in stopped.items()},
        }  # fmt: skip


def _watched(design: Row, rng: Generator) -> dict[str, int | None]:
    """After how many dialogues some difference was found, with and without the judge; None: never."""
    difference, judge, unsure = _population(300, design["uneven"], rng)
    difference = difference + design["difference"]
    chances = sampling_probabilities((0.3 + design["uneven"] * unsure) ** 2, 60)
    drawn = rng.permutation(draw_sample(chances, rng))
    value, dialogue, rater = _rate(difference[drawn], 10, 3, 0.1 * rng.standard_normal(10), rng)
    sampling, scores = chances[drawn][dialogue], judge[drawn][dialogue]
    others = np.delete(judge, drawn)
    at: dict[str, int | None] = {"corrected": None, "people alone": None}
    for t in range(FIRST_LOOK, 61):
        upto = slice(0, 3 * t)
        rows = (value[upto], None, dialogue[upto], rater[upto])
        for name in [name for name, when in at.items() if when is None]:
            with_judge = name == "corrected"
            look = clustered_look(
                *rows, planned=60, sampling=sampling[upto],
                prediction=scores[upto] if with_judge else None,
                unrated=np.r_[others, judge[drawn[t:]]] if with_judge else (),
            )  # fmt: skip
            if look.decision != "go on":
                at[name] = t
    return at
