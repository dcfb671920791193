"""Simulations with known truth: how often do the intervals and decisions of `palaver trust` go wrong?

Every grid is a list of rows; `run.py` writes them to docs/results/trust.json. Each study draws from a
stream of its own, (seed, grid, cell), so a cell can be computed alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palaver.statistics.alternative_annotator import alternative_annotator
from palaver.statistics.clusters import clustered_difference, clustered_mean
from palaver.statistics.power import wilson_interval
from palaver.statistics.prediction_powered import prediction_powered_mean
from palaver.statistics.prediction_powered_pairs import Comparisons, Verdicts, prediction_powered_strengths
from palaver.statistics.sequences import FIRST_LOOK, betting_sequence, clustered_look

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


# Prediction-powered inference ----------------------------------------------------------------------------

PPI_DESIGNS = tuple(
    {"dialogues": n, "raters": raters, "each": 3, "unrated": 500, "correlation": rho}
    for n, raters in ((20, 6), (50, 10), (200, 20))
    for rho in (0.2, 0.6, 0.85)
)


def ppi_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of means by people and judge together, beside plain PPI++ (normal quantiles, no clusters)."""
    for design in PPI_DESIGNS:
        rng = stream(seed, "ppi", design)
        covered = {"clustered t": 0, "plain z": 0, "people alone": 0}
        used, shorter = 0, []
        for _ in range(n_studies):
            found, plain = _judged_study(design, rng)
            covered["clustered t"] += found.together.low <= 0 <= found.together.high
            covered["people alone"] += found.people.low <= 0 <= found.people.high
            covered["plain z"] += plain
            used += found.weight > 0
            shorter.append(found.together.se / found.people.se)
        yield {
            **design,
            "coverage": {name: rate(hits, n_studies) for name, hits in covered.items()},
            "judge_used": used / n_studies,
            "length": float(np.mean(shorter)),
        }


def _judged_study(design: Row, rng: Generator) -> tuple[Any, bool]:
    """A study whose true mean is 0, and whether the plain interval covers it."""
    n, n_raters, each = design["dialogues"], design["raters"], design["each"]
    total = n + design["unrated"]
    quality = rng.standard_normal(total)
    rho = design["correlation"]
    judge = rho * quality + (1 - rho**2) ** 0.5 * rng.standard_normal(total)
    dialogue = np.repeat(np.arange(n), each)
    rater = np.argsort(rng.random((n, n_raters)), axis=1)[:, :each].ravel()
    value = quality[dialogue] + 0.3 * rng.standard_normal(n_raters)[rater]
    value += 0.7 * rng.standard_normal(dialogue.size)
    found = prediction_powered_mean(value, judge[dialogue], dialogue, rater, judge[n:])
    means, rated, unrated = value.reshape(n, each).mean(axis=1), judge[:n], judge[n:]
    ratio = 1 + n / unrated.size
    weight = float(np.clip(np.cov(means, rated)[0, 1] / (judge.var() * ratio), 0, 1))
    estimate = weight * unrated.mean() + (means - weight * rated).mean()
    variance = weight**2 * unrated.var() / unrated.size + (means - weight * rated).var() / n
    return found, bool(abs(estimate) <= Z * variance**0.5)


STRENGTHS = np.array([0.6, 0.0, -0.4])


def strength_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Coverage of differences of Bradley-Terry strengths, with ties, positions and a judge."""
    truth = _true_differences(stream(seed, "strength truth"))
    for n in (30, 100):
        rng = stream(seed, "strength", n)
        covered = {"clustered t": 0, "people alone": 0}
        false_alarms = total = 0
        for _ in range(n_studies):
            rows, verdicts = _compared(n, 400, rng)
            found = prediction_powered_strengths(rows, verdicts, ["a", "b", "c"])
            if found.reason:
                continue
            total += len(found.pairs)
            for pair, expected in zip(found.pairs, truth, strict=True):
                covered["clustered t"] += pair.interval.low <= expected <= pair.interval.high
                covered["people alone"] += pair.people.low <= expected <= pair.people.high
                false_alarms += pair.adjusted_p < 0.05 and pair.interval.value * expected < 0
        rates = {name: rate(hits, total) for name, hits in covered.items()}
        yield {
            "dialogues": n, "raters": 8, "each": 2, "unrated": 400, "coverage": rates,
            "wrong_direction": false_alarms / total,
        }  # fmt: skip


def _true_differences(rng: Generator) -> list[float]:
    """What the model's strengths are in a very large study: dialogues differ, so not those put in."""
    rows, verdicts = _compared(60_000, 2, rng)
    found = prediction_powered_strengths(rows, verdicts, ["a", "b", "c"], weight=0.0)
    return [pair.interval.value for pair in found.pairs]


def _compared(n: int, n_unrated: int, rng: Generator) -> tuple[Comparisons, Verdicts]:
    total = n + n_unrated
    first, second = np.tile([0, 0, 1], total), np.tile([1, 2, 2], total)
    dialogue = np.repeat(np.arange(total), 3)
    gap = STRENGTHS[first] - STRENGTHS[second] + 0.8 * rng.standard_normal(dialogue.size)
    judge = np.round(0.5 + 0.5 * np.tanh(gap + 0.7 * rng.standard_normal(gap.size)), 1)
    each = 2
    rows = np.repeat(np.flatnonzero(dialogue < n), each)
    raters = np.argsort(rng.random((n, 8)), axis=1)[:, :each]
    rater = raters[dialogue[rows], np.tile(np.arange(each), rows.size // each)]
    position = rng.choice([-1.0, 1.0], rows.size)
    heard = gap[rows] + 0.2 * position + 0.3 * rng.standard_normal(8)[rater]
    heard += rng.logistic(size=rows.size)
    won = np.where(np.abs(heard) < 0.3, 0.5, (heard > 0).astype(float))
    others = dialogue >= n
    return (
        Comparisons(first[rows], second[rows], won, judge[rows], dialogue[rows], rater, position),
        Verdicts(first[others], second[others], judge[others], dialogue[others]),
    )


# Alternative annotator test -------------------------------------------------------------------------------

EPSILON = 0.1


def alternative_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """How often a judge passes that is worse than people by exactly epsilon."""
    for n_criteria in (1, 6):
        noise = _noise_at_epsilon(n_criteria, seed)
        for n in (40, 120):
            rng = stream(seed, "alternative", n_criteria, n)
            passes = {"clustered": 0, "rows": 0}
            single = {"clustered": 0.0, "rows": 0.0}
            for _ in range(n_studies):
                value, unit, rater, dialogue, judge = _scored_study(n, n_criteria, noise, rng)
                found = alternative_annotator(
                    value, unit, rater, dialogue, judge, epsilon=EPSILON, n_replicates=1, rng=0
                )
                own = alternative_annotator(
                    value, unit, rater, unit, judge, epsilon=EPSILON, n_replicates=1, rng=0
                )
                for name, result in (("clustered", found), ("rows", own)):
                    passes[name] += result.passes
                    single[name] += float(np.mean([test.p < 0.05 for test in result.people]))
            yield {
                "dialogues": n,
                "criteria": n_criteria,
                "people": 3,
                "epsilon": EPSILON,
                "false_pass": {name: rate(hits, n_studies) for name, hits in passes.items()},
                "false_win": {name: hits / n_studies for name, hits in single.items()},
            }


def _scored_study(n: int, n_criteria: int, noise: float, rng: Generator) -> tuple[np.ndarray, ...]:
    """Steps of 1 to 5; people and judge misread whole dialogues as well as single criteria."""
    shape = (n, n_criteria, 3)
    quality = 0.7 * rng.standard_normal((n, 1)) + rng.standard_normal((n, n_criteria))
    people = quality[..., None] + 0.4 * rng.standard_normal((n, 1, 3)) + 0.8 * rng.standard_normal(shape)
    judge = quality + noise * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, n_criteria))
    steps = [np.clip(np.round(3 + scores), 1, 5) for scores in (people, judge)]
    dialogue, criterion, rater = np.indices(shape).reshape(3, -1)
    unit = dialogue * n_criteria + criterion
    return steps[0].ravel(), unit, rater, dialogue, steps[1].ravel()[unit]


def _noise_at_epsilon(n_criteria: int, seed: int) -> float:
    """The judge's noise at which people are ahead by epsilon, by halving."""
    low, high = 0.2, 4.0
    for _ in range(18):
        middle = (low + high) / 2
        value, unit, rater, dialogue, judge = _scored_study(
            60_000 // n_criteria, n_criteria, middle, stream(seed, "noise")
        )
        found = alternative_annotator(
            value, unit, rater, dialogue, judge, epsilon=EPSILON, n_replicates=1, rng=0
        )
        ahead = np.mean([test.person_ahead - test.judge_ahead for test in found.people])
        low, high = (middle, high) if ahead < EPSILON else (low, middle)
    return (low + high) / 2


# Confidence sequences -------------------------------------------------------------------------------------

SEQUENCES = (
    {"difference": 0.0, "raters": 10, "rater": 0.0, "judge": False},
    {"difference": 0.0, "raters": 10, "rater": 0.3, "judge": False},
    {"difference": 0.0, "raters": 10, "rater": 0.15, "judge": True},
    {"difference": 0.6, "raters": 10, "rater": 0.15, "judge": False},
    {"difference": 0.6, "raters": 10, "rater": 0.15, "judge": True},
)


def sequence_grid(n_studies: int, seed: int = 0) -> Iterator[Row]:
    """Studies of 60 dialogues by 3 of 10 raters, watched after every dialogue; two systems, paired."""
    for design in SEQUENCES:
        rng = stream(seed, "sequence", design)
        decided = {"better": 0, "worse": 0, "go on": 0}
        z_test, bets, stopped = 0, 0, []
        for _ in range(n_studies):
            study = _watched_study(design, rng)
            decision, at = _follow(study, design)
            decided[decision] += 1
            stopped.append(at)
            z_test += _peek(study["means"])
            bets += _bet(study["steps"])
        yield {
            **design,
            "dialogues": 60,
            "each": 3,
            "decided": {name: rate(hits, n_studies) for name, hits in decided.items()},
            "any_difference": rate(decided["better"] + decided["worse"], n_studies),
            "mean_dialogues": float(np.mean(stopped)),
            "z_test_30_looks": rate(z_test, n_studies),
            "betting": rate(bets, n_studies),
        }


def _watched_study(design: Row, rng: Generator) -> Row:
    n, each, n_raters = 60, 3, design["raters"]
    dialogue = np.repeat(np.arange(n), each)
    rater = np.argsort(rng.random((n, n_raters)), axis=1)[:, :each].ravel()
    quality = 0.6 * rng.standard_normal((n, 2)) + np.array([design["difference"], 0.0])
    level = design["rater"] * rng.standard_normal((n_raters, 2))
    value = quality[dialogue] + level[rater] + 0.7 * rng.standard_normal((dialogue.size, 2))
    judge = quality + 0.4 * rng.standard_normal((n, 2))
    means = (value[:, 0] - value[:, 1]).reshape(n, each).mean(axis=1)
    steps = np.clip(np.round(4 + value), 1, 7)
    return {
        "value": value.ravel(),
        "is_first": np.tile([True, False], dialogue.size),
        "dialogue": np.repeat(dialogue, 2),
        "rater": np.repeat(rater, 2),
        "judge": judge[dialogue].ravel(),
        "by_dialogue": judge[:, 0] - judge[:, 1],
        "means": means,
        "steps": (steps[:, 0] - steps[:, 1]).reshape(n, each).mean(axis=1),
    }


def _follow(study: Row, design: Row) -> tuple[str, int]:
    """The first decision, and after how many dialogues."""
    for t in range(FIRST_LOOK, 61):
        upto = 6 * t
        look = clustered_look(
            study["value"][:upto],
            study["is_first"][:upto],
            study["dialogue"][:upto],
            study["rater"][:upto],
            planned=60,
            prediction=study["judge"][:upto] if design["judge"] else None,
            unrated=study["by_dialogue"][t:],
        )
        if look.decision != "go on":
            return look.decision, t
    return "go on", 60


def _peek(means: np.ndarray) -> bool:
    """Whether a z-test over dialogues, looked at thirty times, ever finds a difference."""
    moments = np.unique(np.linspace(FIRST_LOOK, means.size, 30).astype(int))
    return any(abs(means[:t].mean()) > Z * means[:t].std(ddof=1) / t**0.5 for t in moments)


def _bet(differences: np.ndarray) -> bool:
    """Whether the betting sequence ever finds a difference."""
    low, high = betting_sequence(differences, lowest=-6, highest=6)
    return bool((low > 0).any() or (high < 0).any())
