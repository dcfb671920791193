"""May a judge stand in for a person? The alternative annotator test on people's ratings and a judge's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from palaver.errors import UserError
from palaver.statistics.alternative_annotator import Alignment, alternative_annotator
from palaver.statistics.bootstrap import Floats
from palaver.studies.judgements import Ints
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import (
    People,
    TrustReport,
    Verdicts,
    criteria_of_people,
    make_report,
    people_of,
    shared_criteria,
    verdicts_of,
)

Closeness = Literal["auto", "values", "ranks"]
CLOSENESS: tuple[Closeness, ...] = ("auto", "values", "ranks")


@dataclass(frozen=True, slots=True, kw_only=True)
class AltTestRow:
    """Judge against people on one criterion, or on all of them together."""

    criterion: str
    judge: str
    compared: str
    """What is compared: values, ranks within a dialogue, or choices."""
    passes: bool
    winning_rate: float
    """Share of people against whom the judge is not significantly worse by epsilon."""
    low: float
    high: float
    advantage: float
    """Mean share of judgements in which the judge is at least as close to the others as the person."""
    epsilon: float
    n_people: int
    n_dialogues: int
    n_left_out: int
    confidence: float
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """One criterion as the test takes it; dialogues and raters by name."""

    value: Floats
    judge: Floats
    unit: Ints
    rater: list[str]
    dialogue: list[str]
    alignment: Alignment
    compared: str


def trust_alt_test(
    people_table: RatingTable,
    judge_table: RatingTable,
    *,
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    closeness: Closeness = "auto",
    epsilon: float = 0.1,
    confidence: float = 0.95,
    n_replicates: int = 1000,
    seed: int = 0,
) -> TrustReport:
    """Every criterion that people and the judge have in common, and all of them together."""
    if not 0 <= epsilon < 1:
        raise UserError(f"epsilon: expected a number from 0 to below 1, found {epsilon}")
    names = [criterion] if criterion is not None else criteria_of_people(people_table)[:1]
    if criterion is None and judge_criterion is None:
        names = shared_criteria(people_table, judge_table) or names
    parts: dict[str, _Rows] = {}
    for name in names:
        people = people_of(people_table, name)
        verdicts = verdicts_of(judge_table, people, judge=judge, criterion=judge_criterion)
        parts[name] = _rows(people, verdicts, closeness, judge_table)
        judge = verdicts.judge
    rows = [_test(name, judge or "", [part], epsilon, confidence, n_replicates, seed)
            for name, part in parts.items()]  # fmt: skip
    if len(parts) > 1 and len({part.alignment for part in parts.values()}) == 1:
        together = list(parts.values())
        rows.append(_test("all", judge or "", together, epsilon, confidence, n_replicates, seed))
    config = {
        "criteria": names,
        "judge": judge,
        "epsilon": epsilon,
        "closeness": closeness,
        "confidence": confidence,
        "replicates": n_replicates,
    }
    words = [_describe(row) for row in rows]
    tables = [people_table, judge_table]
    return make_report("alt-test", rows, AltTestRow, tables, config, words=words, seed=seed)


def _describe(row: AltTestRow) -> str:
    if row.reason:
        return f"{row.criterion}: no answer ({row.reason})"
    beaten = round(row.winning_rate * row.n_people)
    may = "may stand in for a person" if row.passes else "may not stand in for a person"
    return (
        f"{row.criterion}: {row.judge} {may}. It holds against {beaten} of {row.n_people} people "
        f"(winning rate {row.winning_rate:.2f}, {row.confidence:.0%} of redrawn studies {row.low:.2f} to "
        f"{row.high:.2f}; 0.50 is needed), and is at least as close to the others as the person left out in "
        f"{row.advantage:.0%} of judgements"
    )


def _rows(people: People, verdicts: Verdicts, closeness: Closeness, judges: RatingTable) -> _Rows:
    judged = people.judged
    score = verdicts.of_people(people)
    value = judged.score
    dialogue = [people.dialogues[code] for code in people.dialogue]
    rater = [judged.raters[code] for code in judged.rater]
    unit = judged.unit.astype(np.int64)
    if people.is_pair:
        return _Rows(value, score, unit, rater, dialogue, "match", "choices")
    if closeness == "auto":
        on_scale = _on_scale(people, score) and judges.kinds[verdicts.criterion] not in ("metric", "model")
        closeness = "values" if on_scale and judged.normalisation == "raw" else "ranks"
    if closeness == "values":
        return _Rows(judged.value, score, unit, rater, dialogue, "distance", "values")
    screen = people.dialogue * len(judged.raters) + judged.rater
    return _Rows(
        _ranks(value, screen), _ranks(score, screen), unit, rater, dialogue, "distance", "ranks in a dialogue"
    )


def _on_scale(people: People, score: Floats) -> bool:
    known = people.judged.value[np.isfinite(people.judged.value)]
    scores = score[np.isfinite(score)]
    return bool(known.size and scores.size and scores.min() >= known.min() and scores.max() <= known.max())


def _ranks(score: Floats, screen: Ints) -> Floats:
    """Rank of each score among those of its screen, ties sharing the mean rank; nan where it stands alone."""
    ranks = np.full(score.size, np.nan)
    order = np.lexsort((score, screen))
    known = order[np.isfinite(score[order])]
    starts = np.flatnonzero(np.r_[True, np.diff(screen[known]) != 0]) if known.size else np.array([], int)
    for begin, end in zip(starts, np.r_[starts[1:], known.size], strict=True):
        if end - begin < 2:
            continue
        values = score[known[begin:end]]
        below = np.searchsorted(values, values, side="left")
        upto = np.searchsorted(values, values, side="right")
        ranks[known[begin:end]] = (below + upto + 1) / 2
    return ranks


def _test(
    criterion: str,
    judge: str,
    parts: list[_Rows],
    epsilon: float,
    confidence: float,
    n_replicates: int,
    seed: int,
) -> AltTestRow:
    offsets = np.cumsum([0, *(int(part.unit.max()) + 1 for part in parts[:-1])])
    unit = np.concatenate([part.unit + offset for part, offset in zip(parts, offsets, strict=True)])
    _, rater = np.unique([name for part in parts for name in part.rater], return_inverse=True)
    _, dialogue = np.unique([name for part in parts for name in part.dialogue], return_inverse=True)
    outcome = alternative_annotator(
        np.concatenate([part.value for part in parts]),
        unit,
        rater,
        dialogue,
        np.concatenate([part.judge for part in parts]),
        alignment=parts[0].alignment,
        epsilon=epsilon,
        confidence=confidence,
        n_replicates=n_replicates,
        rng=np.random.default_rng([seed, *criterion.encode()]),
    )
    reason = outcome.reason
    if not reason and all(np.ptp(part.value[np.isfinite(part.value)]) == 0 for part in parts):
        reason = "people gave the same rating to everything"
    return AltTestRow(
        criterion=criterion,
        judge=judge,
        compared=parts[0].compared,
        passes=outcome.passes and not reason,
        winning_rate=outcome.winning_rate,
        low=outcome.interval.low,
        high=outcome.interval.high,
        advantage=outcome.advantage,
        epsilon=epsilon,
        n_people=len(outcome.people),
        n_dialogues=outcome.n_dialogues,
        n_left_out=outcome.n_left_out,
        confidence=confidence,
        reason=reason,
        notes=tuple(f"{criterion}: {note}" for note in outcome.notes),
    )
