"""People and a judge together: means, differences, win rates and strengths (prediction-powered inference)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from palaver.statistics.clusters import ClusterInterval
from palaver.statistics.prediction_powered import PredictionPowered, prediction_powered_mean
from palaver.statistics.prediction_powered_pairs import Comparisons, prediction_powered_strengths
from palaver.statistics.prediction_powered_pairs import Verdicts as PairVerdicts
from palaver.statistics.significance import holm
from palaver.studies.judgements import Floats
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import People, TrustReport, Verdicts, make_report, people_of, verdicts_of
from palaver.tabular import show_fixed, show_interval, show_signed


@dataclass(frozen=True, slots=True, kw_only=True)
class PpiRow:
    """What people and a judge say together, beside what people say alone."""

    criterion: str
    what: str
    """"mean", "difference", "win rate" or "strength" (log odds of a win)."""
    system: str
    against: str
    value: float
    low: float
    high: float
    p: float
    """That there is no difference; nan for a mean."""
    adjusted_p: float
    """The same, corrected for all pairs (Holm)."""
    people_value: float
    people_low: float
    people_high: float
    weight: float
    """How far the judge is believed; 0: not at all."""
    correlation: float
    n_rated: int
    n_unrated: int
    worth_dialogues: float
    """As many more rated dialogues would have made people alone as certain."""
    ceiling: float
    """No number of verdicts of this judge can be worth more than so many times the rated dialogues."""
    confidence: float
    reason: str = ""
    """Why there is no interval, or why the judge was left out."""
    notes: tuple[str, ...] = ()


def trust_ppi(
    people_table: RatingTable,
    judge_table: RatingTable,
    *,
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    confidence: float = 0.95,
) -> TrustReport:
    """Every system and every pair of systems, by people and one judge together."""
    people = people_of(people_table, criterion, judges=judge_table, judge_criterion=judge_criterion)
    verdicts = verdicts_of(judge_table, people, judge=judge, criterion=judge_criterion)
    prediction = verdicts.of_people(people)
    rows: list[PpiRow] = []
    if people.is_pair:
        rows += _with_holm(list(_win_rates(people, verdicts, prediction, confidence)))
        rows += _strengths(people_table, people, verdicts, prediction, confidence)
    else:
        rows += _means(people, verdicts, prediction, confidence)
        rows += _with_holm(list(_differences(people, verdicts, prediction, confidence)))
    n_missing = int((~np.isfinite(prediction)).sum())
    names = dict.fromkeys((verdicts.judge, verdicts.criterion))  # a metric is called what it measures
    notes = [f"the judge is {', '.join(names)}"]
    if n_missing:
        notes.append(
            f"{n_missing} of {prediction.size} ratings are of outputs that the judge did not rate: left out"
        )
    config = {
        "criterion": people.judged.criterion,
        "judge": verdicts.judge,
        "judge_criterion": verdicts.criterion,
        "judge_signature": verdicts.signature,
        "confidence": confidence,
    }
    words = [sentence for row in rows for sentence in describe_worth(row, verdicts.judge)]
    tables = [people_table, judge_table]
    return make_report("ppi", rows, PpiRow, tables, config, words=words, notes=notes)


def describe_worth(row: PpiRow, judge: str) -> Iterator[str]:
    """What the judge's verdicts are worth for one figure, in plain words."""
    name = row.system if not row.against else f"{row.system} against {row.against}"
    if math.isnan(row.low):
        yield f"{row.criterion}, {row.what} of {name}: no interval ({row.reason})"
        return
    said = (
        f"{row.criterion}, {row.what} of {name}: {show_fixed(row.value)} {show_interval(row.low, row.high)}"
    )
    if not row.weight:
        yield f"{said}, from people alone: {row.reason}"
        return
    alone = show_interval(row.people_low, row.people_high)
    if row.what == "strength":
        yield f"{said}; people alone: {alone}"
        return
    worth = f"your {row.n_unrated:,} further verdicts of {judge} are worth {row.worth_dialogues:.0f} more "
    worth += f"dialogues rated by people (there are {row.n_rated}); more verdicts can at most make "
    worth += f"{row.n_rated} count as {row.n_rated * row.ceiling:.0f}"
    if row.high - row.low >= row.people_high - row.people_low:
        worth += "; yet the interval is not shorter, as people or dialogues are few"
    yield f"{said}; people alone: {alone}. {worth}"


def _means(people: People, verdicts: Verdicts, prediction: Floats, confidence: float) -> Iterator[PpiRow]:
    judged = people.judged
    for i, system in enumerate(judged.systems):
        own = judged.system == i
        unrated = list(verdicts.unrated(people, system).values())
        powered = prediction_powered_mean(
            judged.score[own], prediction[own], people.dialogue[own], judged.rater[own], unrated,
            sampling=people.sampling(own), confidence=confidence,
        )  # fmt: skip
        yield replace(_row(judged.criterion, "mean", system, "", powered), p=math.nan)


def _differences(
    people: People, verdicts: Verdicts, prediction: Floats, confidence: float
) -> Iterator[PpiRow]:
    judged = people.judged
    for i, j in combinations(range(len(judged.systems)), 2):
        first, second = judged.systems[i], judged.systems[j]
        of_first, of_second = verdicts.unrated(people, first), verdicts.unrated(people, second)
        unrated = [score - of_second[name] for name, score in of_first.items() if name in of_second]
        rows = (judged.system == i) | (judged.system == j)
        powered = prediction_powered_mean(
            judged.score[rows], prediction[rows], people.dialogue[rows], judged.rater[rows], unrated,
            is_second=judged.system[rows] == j, sampling=people.sampling(rows), confidence=confidence,
        )  # fmt: skip
        yield _row(judged.criterion, "difference", first, second, powered)


def _win_rates(people: People, verdicts: Verdicts, prediction: Floats, confidence: float) -> Iterator[PpiRow]:
    judged = people.judged
    low, high = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
    for i, j in combinations(range(len(judged.systems)), 2):
        rows = (low == i) & (high == j)
        if not rows.any():
            continue
        unrated = np.array(list(verdicts.unrated(people, judged.systems[i], judged.systems[j]).values()))
        powered = prediction_powered_mean(
            judged.score[rows] - 0.5, prediction[rows] - 0.5, people.dialogue[rows], judged.rater[rows],
            unrated - 0.5, sampling=people.sampling(rows), confidence=confidence,
        )  # fmt: skip
        row = _row(judged.criterion, "win rate", judged.systems[i], judged.systems[j], powered)
        raised: dict[str, Any] = {
            name: float(np.clip(getattr(row, name) + 0.5, 0.0, 1.0))
            for name in ("value", "low", "high", "people_value", "people_low", "people_high")
        }
        yield replace(row, **raised)


def _strengths(
    table: RatingTable, people: People, verdicts: Verdicts, prediction: Floats, confidence: float
) -> Iterator[PpiRow]:
    judged = people.judged
    known = np.isfinite(prediction) & np.isfinite(judged.score)
    first, second = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
    rows = Comparisons(
        first=first[known].astype(np.int64),
        second=second[known].astype(np.int64),
        won=judged.score[known],
        prediction=prediction[known],
        dialogue=people.dialogue[known],
        rater=judged.rater[known].astype(np.int64),
        position=_positions(table, people)[known],
        sampling=people.sampling(known),
    )
    place = {name: i for i, name in enumerate(judged.systems)}
    scores = verdicts.scored if judged.sampling is not None else verdicts.unrated
    further = [
        (place[i], place[j], score, name)
        for i, j in combinations(judged.systems, 2)
        for name, score in scores(people, i, j).items()
    ]
    names = {name: n for n, name in enumerate(people.dialogues)}
    for *_, name in further:
        names.setdefault(name, len(names))
    unrated = PairVerdicts(
        first=np.array([i for i, *_ in further], dtype=np.int64),
        second=np.array([j for _, j, *_ in further], dtype=np.int64),
        prediction=np.array([score for *_, score, _ in further], dtype=np.float64),
        dialogue=np.array([names[name] for *_, name in further], dtype=np.int64),
    )
    strengths = prediction_powered_strengths(rows, unrated, judged.systems, confidence=confidence)
    note = (
        ()
        if math.isnan(strengths.position)
        else (f"shown first adds {show_signed(strengths.position)} log odds of a win",)
    )
    if strengths.reason:
        note = (f"strengths: {strengths.reason}",)
    for pair in strengths.pairs:
        interval, own = pair.interval, pair.people
        yield PpiRow(
            criterion=judged.criterion, what="strength", system=pair.first, against=pair.second,
            value=interval.value, low=interval.low, high=interval.high, p=interval.p,
            adjusted_p=pair.adjusted_p, people_value=own.value, people_low=own.low, people_high=own.high,
            weight=strengths.weight, correlation=strengths.correlation, n_rated=strengths.n_rated,
            n_unrated=strengths.n_unrated, worth_dialogues=math.nan, ceiling=math.nan,
            confidence=confidence, reason=interval.reason or strengths.reason_off,
            notes=(*interval.notes, *note),
        )  # fmt: skip


def _positions(table: RatingTable, people: People) -> Floats:
    """1 where the pair's first system was shown first, -1 where it was second, 0 where nobody knows."""
    judged = people.judged
    rows = table.of(judged.criterion)["shown_position"].cast(pl.Float64).to_numpy()
    if rows.size != judged.score.size:
        return np.zeros(judged.score.size)
    place = np.where(np.isfinite(rows), 1 - 2 * np.clip(np.nan_to_num(rows), 0, 1), 0.0)
    return np.asarray(np.where(judged.system < judged.against, place, -place))


def _row(criterion: str, what: str, system: str, against: str, powered: PredictionPowered) -> PpiRow:
    together: ClusterInterval = powered.together
    return PpiRow(
        criterion=criterion,
        what=what,
        system=system,
        against=against,
        value=together.value,
        low=together.low,
        high=together.high,
        p=together.p,
        adjusted_p=math.nan,
        people_value=powered.people.value,
        people_low=powered.people.low,
        people_high=powered.people.high,
        weight=powered.weight,
        correlation=powered.correlation,
        n_rated=powered.n_rated,
        n_unrated=powered.n_unrated,
        worth_dialogues=powered.worth_dialogues,
        ceiling=powered.ceiling,
        confidence=together.confidence,
        reason=together.reason or powered.reason_off,
        notes=together.notes,
    )


def _with_holm(rows: list[PpiRow]) -> list[PpiRow]:
    if not rows:
        return []
    adjusted = holm([row.p for row in rows]).adjusted
    return [replace(row, adjusted_p=float(p)) for row, p in zip(rows, adjusted, strict=True)]
