"""A pilot study: how far differences of systems vary, and what a judge foretells of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from palaver.errors import DataError
from palaver.statistics.budget import DifferenceVariances
from palaver.statistics.clusters import FEWEST_RATERS, cluster_variance
from palaver.statistics.prediction_powered import prediction_powered_mean
from palaver.statistics.sampling import ResidualModel, fit_residuals
from palaver.studies.judgements import Floats, Ints
from palaver.studies.trust import People, Verdicts

Pair = tuple[int, int]
Signal = Literal["doubt", "closeness", "level"]
"""Where a judge may be wrong: by its own doubt, where it finds two systems alike, or by how well it rates."""


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """The first system minus the second (of pairs: the share of wins minus a half), one entry per person
    and dialogue."""

    value: Floats
    dialogue: Ints
    rater: Ints

    def by_dialogue(self) -> tuple[Ints, Floats]:
        """The dialogues, and the mean difference of each."""
        codes, at = np.unique(self.dialogue, return_inverse=True)
        return codes, np.bincount(at, self.value) / np.bincount(at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What the judge knows of a dialogue's difference."""

    variance: float
    correlation: float
    residuals: ResidualModel
    signal: Signal
    """What the residuals are foretold by."""


def pairs_of(people: People) -> list[Pair]:
    """Every two systems that can be compared."""
    pairs = list(combinations(range(len(people.judged.systems)), 2))
    if people.is_pair:
        pairs = [pair for pair in pairs if _rows_of_pair(people, pair).any()]
    if not pairs:
        raise DataError("a plan compares systems, and there is only one")
    return pairs


def variances_of(people: People, pair: Pair) -> DifferenceVariances:
    """Components of the difference of two systems, from the people and dialogues that have both."""
    differences = differences_of(people, people.judged.score, pair)
    n, n_dialogues = differences.value.size, np.unique(differences.dialogue).size
    if n < 4 or n_dialogues < 3:
        names = " and ".join(people.judged.systems[k] for k in pair)
        raise DataError(
            f"the pilot has too few dialogues in which one person rated both {names}",
            f"at least 3 dialogues and 4 such judgements are needed, found {n_dialogues} and {n}",
        )
    share = np.full(n, 1 / n)
    centred = share * (differences.value - differences.value.mean())
    parts = cluster_variance(centred, share, np.zeros(n, np.int64), differences.dialogue, differences.rater)
    if parts.reason:
        raise DataError(f"the pilot tells no variances: {parts.reason}")
    return DifferenceVariances(
        dialogue=parts.dialogue * parts.n_dialogues,
        people=parts.rater * np.unique(differences.rater).size,
        cell=parts.rest * n,
    )


def people_unknown(people: People) -> list[str]:
    """Why the pilot does not say how far people differ, if it does not."""
    n = len(people.judged.raters)
    if n < FEWEST_RATERS:
        few = "one rater" if n == 1 else f"{n} raters"
        return [f"{few} in the pilot: how far people differ is not known, and counts as nothing"]
    cells = np.unique(people.dialogue * n + people.judged.rater).size
    if cells == np.unique(people.dialogue).size:
        return ["one rater for each dialogue in the pilot: how far people differ is hardly known"]
    return []


def differences_of(people: People, score: Floats, pair: Pair) -> Differences:
    """What each person found in each dialogue; `score` has an entry per judgement."""
    judged = people.judged
    if people.is_pair:
        rows = _rows_of_pair(people, pair) & np.isfinite(score)
        return Differences(score[rows] - 0.5, people.dialogue[rows], judged.rater[rows].astype(np.int64))
    n_raters = len(judged.raters)
    key = people.dialogue * n_raters + judged.rater
    sides = []
    for system in pair:
        own = (judged.system == system) & np.isfinite(score)
        cells, at = np.unique(key[own], return_inverse=True)
        sides.append((cells, np.bincount(at, score[own]) / np.maximum(1, np.bincount(at))))
    both, first, second = np.intersect1d(sides[0][0], sides[1][0], return_indices=True)
    return Differences(sides[0][1][first] - sides[1][1][second], both // n_raters, both % n_raters)


def _rows_of_pair(people: People, pair: Pair) -> np.ndarray:
    judged = people.judged
    first, second = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
    return np.asarray((first == pair[0]) & (second == pair[1]))


def foretold_by(people: People, verdicts: Verdicts, pair: Pair) -> Foretold:
    """How much of the difference the judge knows, and where it is likely to be wrong."""
    judged, predictions = people.judged, verdicts.of_people(people)
    residuals, signal = _residuals(people, verdicts, predictions, pair)
    shift = 0.5 if people.is_pair else 0.0
    rows = (
        _rows_of_pair(people, pair)
        if people.is_pair
        else (judged.system == pair[0]) | (judged.system == pair[1])
    )
    prediction = prediction_powered_mean(
        judged.score[rows] - shift, predictions[rows] - shift, people.dialogue[rows], None, [0.0, 1.0],
        is_second=None if people.is_pair else judged.system[rows] == pair[1],
    )  # fmt: skip
    if prediction.reason_off or math.isnan(prediction.correlation):
        return Foretold(variance=0.0, correlation=0.0, residuals=residuals, signal=signal)
    spread = prediction.people.se**2 * prediction.n_rated
    return Foretold(
        variance=prediction.correlation**2 * spread, correlation=prediction.correlation, residuals=residuals,
        signal=signal,
    )  # fmt: skip


def _residuals(
    people: People, verdicts: Verdicts, predictions: Floats, pair: Pair
) -> tuple[ResidualModel, Signal]:
    """What foretells best where people and the judge differ."""
    dialogues, means = differences_of(people, people.judged.score, pair).by_dialogue()
    judged_dialogues, scores = differences_of(people, predictions, pair).by_dialogue()
    _, ours, theirs = np.intersect1d(dialogues, judged_dialogues, return_indices=True)
    means, scores = means[ours], scores[theirs]
    spread = float(scores.var()) if scores.size else 0.0
    slope = float(np.cov(means, scores, ddof=0)[0, 1]) / spread if spread else 0.0
    names = [people.dialogues[code] for code in dialogues[ours]]
    systems = [people.judged.systems[k] for k in pair]
    signals: tuple[Signal, ...] = ("closeness",) if people.is_pair else ("closeness", "level")
    if verdicts.certainty:
        signals = ("doubt",)
    fits = []
    for signal in signals:
        values = signal_of(signal, verdicts, names, systems, people.is_pair)
        fits.append((fit_residuals(means - slope * scores, values, n_tried=len(signals)), signal))
    return max(fits, key=lambda fit: np.nan_to_num(abs(fit[0].correlation)))


def signal_of(
    signal: Signal, verdicts: Verdicts, dialogues: Sequence[str], systems: Sequence[str], is_pair: bool
) -> Floats:
    """The signal of each dialogue's difference; nan where the judge did not rate it."""
    known = verdicts.certainty if signal == "doubt" else verdicts.scores
    values = []
    for name in dialogues:
        keys = [(name, *sorted(systems))] if is_pair else [(name, system) for system in systems]
        scores = [known.get(key, math.nan) for key in keys]
        if signal == "doubt":
            values.append(1 - float(np.mean(scores)))
        elif signal == "closeness":
            values.append(-abs(scores[0] - (0.5 if is_pair else scores[1])))
        else:
            values.append(float(np.mean(scores)))
    return np.array(values)
