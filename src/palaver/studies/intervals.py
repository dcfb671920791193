"""Means and differences of systems with intervals that are clustered by dialogue and by rater."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from palaver.schema.judge import Direction
from palaver.statistics.clusters import (
    FEWEST_RATERS,
    ClusterInterval,
    clustered_difference,
    clustered_mean,
)
from palaver.statistics.significance import holm
from palaver.studies.judgements import Codes, Floats, Ints, Judgements
from palaver.studies.ratings import ASKED, RatingTable
from palaver.studies.results import IntervalRow

MOST_RATINGS = 50_000
"""Of one criterion; with more, an analysis leaves these intervals to `palaver trust interval`."""


def raters_cross_dialogues(dialogue: Ints, rater: Codes) -> bool:
    """Whether raters judged several dialogues each, and dialogues have several raters."""
    if not dialogue.size:
        return False
    n_raters = int(rater.max()) + 1
    cells = np.unique(dialogue.astype(np.int64) * n_raters + rater)
    n_dialogues = np.unique(dialogue).size
    return (
        np.unique(rater).size >= FEWEST_RATERS
        and cells.size > n_dialogues
        and cells.size > np.unique(rater).size
    )


def crossed_intervals(
    table: RatingTable, judged: Judgements, confidence: float, better: Mapping[str, Direction]
) -> tuple[IntervalRow, ...]:
    """Intervals for an analysis: of people's ratings, where raters cross dialogues; none otherwise.

    Where items were drawn with unequal probabilities they are always there: nothing else is corrected.
    """
    direction = better[judged.criterion]
    if (
        table.kinds[judged.criterion] not in ASKED
        or judged.score.size > MOST_RATINGS
        or direction == "neither"
    ):
        return ()
    dialogue = judged.dialogue.astype(np.int64)
    if judged.sampling is None and not raters_cross_dialogues(dialogue, judged.rater):
        return ()
    return clustered_intervals(judged, dialogue, confidence, -1.0 if direction == "lower" else 1.0)


def clustered_intervals(
    judged: Judgements, dialogue: Ints, confidence: float = 0.95, sign: float = 1.0
) -> tuple[IntervalRow, ...]:
    """Every system's mean, then every two systems; boxes have none.

    `sign` is -1 where lower is better: differences are then those of the turned scores.
    """
    if judged.treatment.kind == "pair":
        return _with_holm(list(_win_rates(judged, dialogue, confidence)))
    if judged.treatment.kind != "number":
        return ()
    rater = judged.rater.astype(np.int64)
    means, differences = [], []
    for i, system in enumerate(judged.systems):
        own = judged.system == i
        interval = clustered_mean(
            judged.score[own], dialogue[own], rater[own], weight=_counts(judged, own), confidence=confidence
        )
        means.append(_row(judged.criterion, system, "", interval, is_mean=True))
    for i, j in combinations(range(len(judged.systems)), 2):
        both = (judged.system == i) | (judged.system == j)
        interval = clustered_difference(
            sign * judged.score[both], judged.system[both] == i, dialogue[both], rater[both],
            weight=_counts(judged, both), confidence=confidence,
        )  # fmt: skip
        differences.append(_row(judged.criterion, judged.systems[i], judged.systems[j], interval))
    return (*means, *_with_holm(differences))


def _win_rates(judged: Judgements, dialogue: Ints, confidence: float) -> Iterator[IntervalRow]:
    rater = judged.rater.astype(np.int64)
    first, second = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
    for i, j in combinations(range(len(judged.systems)), 2):
        own = (first == i) & (second == j)
        if not own.any():
            continue
        interval = clustered_mean(
            judged.score[own] - 0.5, dialogue[own], rater[own], weight=_counts(judged, own),
            confidence=confidence,
        )  # fmt: skip
        shifted = replace(
            interval, value=interval.value + 0.5, low=interval.low + 0.5, high=interval.high + 0.5
        )
        row = _row(judged.criterion, judged.systems[i], judged.systems[j], shifted)
        low, high = np.clip([row.low, row.high], 0.0, 1.0).tolist()
        yield replace(row, low=low, high=high, is_share=True)


def _counts(judged: Judgements, rows: NDArray[np.bool_]) -> Floats | None:
    """For how many each rating counts: 1 / the probability with which its item was drawn."""
    return None if judged.sampling is None else 1 / judged.sampling[rows]


def _row(
    criterion: str, system: str, against: str, interval: ClusterInterval, *, is_mean: bool = False
) -> IntervalRow:
    return IntervalRow(
        criterion=criterion,
        system=system,
        against=against,
        value=interval.value,
        low=interval.low,
        high=interval.high,
        p=np.nan if is_mean else interval.p,
        adjusted_p=np.nan,
        se=interval.se,
        df=interval.df,
        n=interval.n,
        n_dialogues=interval.n_dialogues,
        n_raters=interval.n_raters,
        se_rows=interval.se_rows,
        dialogue_share=interval.dialogue_share,
        rater_share=interval.rater_share,
        confidence=interval.confidence,
        reason=interval.reason,
        notes=interval.notes,
    )


def _with_holm(rows: Sequence[IntervalRow]) -> tuple[IntervalRow, ...]:
    if not rows:
        return ()
    adjusted = holm([row.p for row in rows]).adjusted
    return tuple(replace(row, adjusted_p=float(p)) for row, p in zip(rows, adjusted, strict=True))
