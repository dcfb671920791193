"""Is it enough? Every two systems, watched answer by answer with intervals that hold at all looks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from palaver.errors import DataError, UserError, count_of
from palaver.statistics.sequences import Decision, Look, betting_sequence, clustered_look, decide
from palaver.studies.judgements import Floats, Ints
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import (
    People,
    TrustReport,
    Verdicts,
    check_size,
    make_report,
    people_of,
    span_of,
    verdicts_of,
)
from palaver.tabular import show_fixed, show_interval

Sides = NDArray[np.bool_]
"""Which rows are of the first system."""

METHODS = ("asymptotic", "betting")
LONGEST_GAP = 12
"""Ratings between two looks, at most (in a large study a fortieth of all)."""
MOST_LOOKS = 400
"""With more dialogues than this, looks are taken at fewer moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Two systems, watched from the first answer on."""

    system: str
    against: str
    looks: tuple[Look, ...]
    decided: Look | None
    """The first look that decided; later ones change nothing."""
    n_ratings: int
    n_dialogues: int

    @property
    def decision(self) -> Decision:
        return self.decided.decision if self.decided else "go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceRow:
    """Where two systems stand, and after how many ratings that was clear."""

    criterion: str
    system: str
    against: str
    decision: str
    """"better", "worse", "equivalent" or "go on"."""
    value: float
    low: float
    high: float
    decided_after_ratings: int | None
    decided_after_dialogues: int | None
    n_ratings: int
    n_dialogues: int
    alpha: float
    reason: str = ""
    notes: tuple[str, ...] = ()


def trust_sequence(
    table: RatingTable,
    judge_table: RatingTable | None = None,
    *,
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    within: float | None = None,
    planned: int | None = None,
    method: str = "asymptotic",
    confidence: float = 0.95,
) -> TrustReport:
    """Every two systems of a criterion, in the order in which the ratings stand in the file."""
    people = people_of(table, criterion, judges=judge_table, judge_criterion=judge_criterion)
    check_size(people, within, "a margin")
    if len(people.judged.systems) < 2:
        raise DataError("a sequence compares systems, and there is only one")
    verdicts = None
    if judge_table is not None:
        verdicts = verdicts_of(judge_table, people, judge=judge, criterion=judge_criterion)
    if planned is not None and planned < len(people.dialogues):
        n_rated = count_of(len(people.dialogues), "dialogue")
        raise UserError(f"--planned: {n_rated} are rated already, found {planned}", "plan at least as many")
    notes = []
    if method == "betting":
        if verdicts is not None:
            raise UserError("betting takes no judge", "leave out the judge, or choose --method asymptotic")
        if people.judged.sampling is not None:
            raise UserError(
                "betting takes no items that were drawn with unequal probabilities",
                "choose --method asymptotic",
            )
        notes.append("betting takes dialogues for independent: it is about these raters")
    watches = watch(people, verdicts, within=within, planned=planned, method=method, alpha=1 - confidence)
    n_pairs = max(1, len(watches))
    rows = [_row(people.judged.criterion, watched, (1 - confidence) / n_pairs) for watched in watches]
    if n_pairs > 1:
        notes.append(f"{n_pairs} pairs share the error: each holds at {1 - (1 - confidence) / n_pairs:.1%}")
    config = {
        "criterion": people.judged.criterion,
        "within": within,
        "planned": planned,
        "method": method,
        "confidence": confidence,
        "judge": verdicts.judge if verdicts else None,
    }
    tables = [table] if judge_table is None else [table, judge_table]
    words = [describe_watch(row) for row in rows]
    return make_report("sequence", rows, SequenceRow, tables, config, words=words, notes=notes)


def describe_watch(row: SequenceRow) -> str:
    """Where two systems stand, in plain words."""
    figures = f"{show_fixed(row.value)} {show_interval(row.low, row.high)}"
    pair = f"{row.system} and {row.against}"
    if row.decision == "go on":
        why = row.reason or f"{figures} after {row.n_ratings} ratings"
        return f"{pair}: go on ({why})"
    after = f"clear after {row.decided_after_ratings} of {row.n_ratings} ratings"
    if row.decision == "worse":  # the figures stay those of the row, so they are said to be of this order
        told = f"{row.against} is better than {row.system} ({row.system} against {row.against}: {figures})"
        return f"{told}, {after}"
    verdict = {
        "better": f"{row.system} is better than {row.against}",
        "equivalent": f"{pair} differ by less than what matters",
    }[row.decision]
    return f"{verdict}: {figures}, {after}"


def watch(
    people: People,
    verdicts: Verdicts | None = None,
    *,
    within: float | None = None,
    planned: int | None = None,
    method: str = "asymptotic",
    alpha: float = 0.05,
) -> list[Watch]:
    """Every two systems, looked at after every dialogue that both have ratings of; pairs share the error."""
    judged = people.judged
    pairs = list(combinations(range(len(judged.systems)), 2))
    planned = planned or max(20, len(people.dialogues))
    predictions = verdicts.of_people(people) if verdicts is not None else None
    watches = []
    for i, j in pairs:
        rows, is_first = _rows_of(people, i, j)
        if not rows.size:
            continue
        share = alpha / len(pairs)
        system, against = judged.systems[i], judged.systems[j]
        if method == "betting":
            looks = [*_bets(people, rows, is_first, within, share)]
        else:
            unrated = _unrated(verdicts, people, system, against)
            looks = []
            for upto in _moments(people.dialogue[rows], is_first):
                part = rows[:upto]
                value = judged.score[part] - (0.5 if people.is_pair else 0.0)
                own = None if predictions is None else predictions[part] - (0.5 if people.is_pair else 0.0)
                later: list[float] = []
                if predictions is not None:
                    sides = None if is_first is None else is_first[upto:]
                    later = [*_later(people, predictions, rows[upto:], sides, part)]
                look = clustered_look(
                    value,
                    None if is_first is None else is_first[:upto],
                    people.dialogue[part],
                    judged.rater[part],
                    planned=planned,
                    prediction=own,
                    unrated=[*unrated, *later],
                    sampling=people.sampling(part),
                    within=within,
                    alpha=share,
                )
                looks.append(look)
                if look.decision != "go on":
                    break
        decided = next((look for look in looks if look.decision != "go on"), None)
        watches.append(
            Watch(
                system=system,
                against=against,
                looks=tuple(looks),
                decided=decided,
                n_ratings=rows.size,
                n_dialogues=np.unique(people.dialogue[rows]).size,
            )
        )
    return watches


def _rows_of(people: People, i: int, j: int) -> tuple[Ints, Sides | None]:
    """The rows of two systems in order; for pairs there is nothing to tell apart."""
    judged = people.judged
    if people.is_pair:
        low, high = np.minimum(judged.system, judged.against), np.maximum(judged.system, judged.against)
        return np.flatnonzero((low == i) & (high == j)), None
    rows = np.flatnonzero(((judged.system == i) | (judged.system == j)) & np.isfinite(judged.score))
    return rows, judged.system[rows] == i


def _moments(dialogue: Ints, is_first: Sides | None) -> list[int]:
    """After how many ratings another dialogue had ratings of both systems; and the end.

    Where people go on rating dialogues that were begun, it is looked at now and then.
    """
    seen: dict[int, set[bool]] = {}
    moments = []
    for place, code in enumerate(dialogue.tolist()):
        sides = seen.setdefault(code, set())
        side = True if is_first is None else bool(is_first[place])
        if side not in sides:
            sides.add(side)
            if is_first is None or len(sides) == 2:
                moments.append(place + 1)
    if not moments or moments[-1] != dialogue.size:
        moments.append(int(dialogue.size))
    longest = max(LONGEST_GAP, int(dialogue.size) // 40)
    between = [
        moment for before, after in pairwise(moments) for moment in range(before + longest, after, longest)
    ]
    moments = sorted([*moments, *between])
    step = -(-len(moments) // MOST_LOOKS)
    return [*moments[step - 1 : -1 : step], moments[-1]] if step > 1 else moments


def _unrated(verdicts: Verdicts | None, people: People, system: str, against: str) -> list[float]:
    """The judge's differences on dialogues that no person rated in the whole study."""
    if verdicts is None:
        return []
    if people.is_pair:
        return [score - 0.5 for score in verdicts.unrated(people, system, against).values()]
    first, second = verdicts.unrated(people, system), verdicts.unrated(people, against)
    return [score - second[name] for name, score in first.items() if name in second]


def _later(
    people: People, predictions: Floats, rows: Ints, is_first: Sides | None, before: Ints
) -> Iterator[float]:
    """The judge's differences on dialogues whose ratings come later: they are known already."""
    begun = set(people.dialogue[before].tolist())
    sides: dict[int, dict[bool, float]] = {}
    for place, row in enumerate(rows.tolist()):
        code = int(people.dialogue[row])
        if code not in begun and math.isfinite(predictions[row]):
            side = is_first is None or bool(is_first[place])
            sides.setdefault(code, {})[side] = float(predictions[row])
    for scores in sides.values():
        if is_first is None:
            yield scores[True] - 0.5
        elif len(scores) == 2:
            yield scores[True] - scores[False]


def _bets(
    people: People, rows: Ints, is_first: Sides | None, within: float | None, alpha: float
) -> Iterator[Look]:
    """Betting on the mean difference of each dialogue, in the order in which dialogues were first rated."""
    judged = people.judged
    order: dict[int, tuple[list[float], list[float]]] = {}
    for place, row in enumerate(rows.tolist()):
        sides = order.setdefault(int(people.dialogue[row]), ([], []))
        side = 0 if is_first is None or is_first[place] else 1
        sides[side].append(float(judged.score[row]))
    if is_first is None:
        differences = [float(np.mean(first)) - 0.5 for first, _ in order.values()]
        span = 0.5
    else:
        both = [sides for sides in order.values() if sides[0] and sides[1]]
        differences = [float(np.mean(first)) - float(np.mean(second)) for first, second in both]
        span = span_of(people)
        if judged.treatment.scale is None or judged.normalisation != "raw":
            raise UserError(
                "betting needs a scale with a lowest and a highest value",
                "name the study file with --study, or use --method asymptotic",
            )
    lows, highs = betting_sequence(differences, lowest=-span, highest=span, alpha=alpha)
    means = np.cumsum(differences) / np.arange(1, len(differences) + 1)
    per_dialogue = rows.size / max(1, len(differences))
    for t, (mean, low, high) in enumerate(zip(means, lows, highs, strict=True), 1):
        yield Look(
            n_ratings=round(t * per_dialogue), n_dialogues=t, value=float(mean), low=float(low),
            high=float(high), decision=decide(low, high, within),
        )  # fmt: skip


def _row(criterion: str, watched: Watch, alpha: float) -> SequenceRow:
    shown = watched.decided or watched.looks[-1]
    return SequenceRow(
        criterion=criterion,
        system=watched.system,
        against=watched.against,
        decision=watched.decision,
        value=shown.value,
        low=shown.low,
        high=shown.high,
        decided_after_ratings=watched.decided.n_ratings if watched.decided else None,
        decided_after_dialogues=watched.decided.n_dialogues if watched.decided else None,
        n_ratings=watched.n_ratings,
        n_dialogues=watched.n_dialogues,
        alpha=alpha,
        reason=shown.reason,
    )
