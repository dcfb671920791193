"""From a pilot and prices to a plan: people, dialogues, judge calls, and the most a judge can be worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from palaver.errors import DataError, UserError
from palaver.schema import Study
from palaver.statistics.budget import FEWEST_DIALOGUES, DifferenceVariances, Plan, Prices, cheapest_plan
from palaver.statistics.clusters import cluster_variance
from palaver.statistics.prediction_powered import prediction_powered_mean
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import People, TrustReport, make_report, people_of, verdicts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A study that could be run."""

    plan: str
    """"people alone" or "people and judge"."""
    people: int | None
    dialogues: int | None
    raters_each: int | None
    ratings: int | None
    judge_calls: int | None
    cost: float
    reach: float
    """Half the length of the interval of a difference."""
    ceiling: float
    """What all verdicts of this judge can multiply the people by at most; 1 without one."""
    reason: str = ""
    notes: tuple[str, ...] = ()


def trust_plan(
    pilot: RatingTable,
    judges: RatingTable | None = None,
    *,
    prices: Prices,
    available: int,
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    reach: float | None = None,
    budget: float | None = None,
    each_person: int = 20,
) -> TrustReport:
    """The cheapest study of a wanted reach, or the most certain one of a budget, with and without the judge.

    The pair of systems that is hardest to tell apart in the pilot is planned for.
    """
    if (reach is None) == (budget is None):
        raise UserError("say what the plan is for", "give either --reach or --budget")
    if prices.rating <= 0:
        raise UserError(f"the price of a rating must be above 0, found {prices.rating:g}")
    if prices.judge < 0:
        raise UserError(f"the price of a judge call must be 0 or more, found {prices.judge:g}")
    people = people_of(pilot, criterion)
    if available < FEWEST_DIALOGUES:
        raise UserError(f"available: a plan needs at least {FEWEST_DIALOGUES} dialogues, found {available}")
    alone = max((_variances(people, i, j) for i, j in _pairs(people)), key=lambda v: v.variance(50, 3, 10))
    options = {"available": available, "each_person": each_person, "reach": reach, "budget": budget}
    rows = [_row("people alone", cheapest_plan(alone, prices, **options), 1.0)]  # type: ignore[arg-type]
    name = ""
    if judges is not None:
        verdicts = verdicts_of(judges, people, judge=judge, criterion=judge_criterion)
        name = verdicts.judge
        predictions = verdicts.of_people(people)
        known = [_foretold(people, predictions, i, j) for i, j in _pairs(people)]
        foretold, rho = min(known)
        helped = replace(alone, foretold=min(foretold, alone.dialogue))
        plan = cheapest_plan(helped, prices, with_judge=True, **options)  # type: ignore[arg-type]
        rows.append(_row("people and judge", plan, 1 / (1 - rho**2) if rho < 1 else math.inf))
    config = {
        "criterion": people.judged.criterion,
        "price_rating": prices.rating,
        "price_judge": prices.judge,
        "available": available,
        "reach": reach,
        "budget": budget,
        "each_person": each_person,
        "judge": name or None,
    }
    notes = [
        f"variances of a difference in the pilot: dialogues {alone.dialogue:.3g}, people {alone.people:.3g}, "
        f"the rest {alone.cell:.3g}; a pilot says these roughly"
    ]
    tables = [pilot] if judges is None else [pilot, judges]
    return make_report("plan", rows, PlanRow, tables, config, words=list(_words(rows, name)), notes=notes)


def _pairs(people: People) -> list[tuple[int, int]]:
    pairs = list(combinations(range(len(people.judged.systems)), 2))
    if people.is_pair:
        raise UserError("plans are made for ratings in numbers, not for pairs")
    if not pairs:
        raise DataError("a plan compares systems, and there is only one")
    return pairs


def _variances(people: People, i: int, j: int) -> DifferenceVariances:
    """Components of the difference of two systems, from the cells (dialogue x rater) that have both."""
    judged = people.judged
    difference, dialogue, rater = _differences(people, judged.score, i, j)
    n_raters = np.unique(rater).size
    if difference.size < 4 or np.unique(dialogue).size < 3:
        names = f"{judged.systems[i]} and {judged.systems[j]}"
        raise DataError(f"the pilot has too few dialogues in which one person rated both {names}")
    share = np.full(difference.size, 1 / difference.size)
    centred = share * (difference - difference.mean())
    found = cluster_variance(centred, share, np.zeros(difference.size, np.int64), dialogue, rater)
    if found.reason:
        raise DataError(f"the pilot tells no variances: {found.reason}")
    return DifferenceVariances(
        dialogue=found.dialogue * found.n_dialogues,
        people=found.rater * n_raters,
        cell=found.rest * difference.size,
    )


def _differences(
    people: People, score: np.ndarray, i: int, j: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    judged = people.judged
    key = people.dialogue * len(judged.raters) + judged.rater
    sides = []
    for system in (i, j):
        own = (judged.system == system) & np.isfinite(score)
        cells, at = np.unique(key[own], return_inverse=True)
        sides.append((cells, np.bincount(at, score[own]) / np.maximum(1, np.bincount(at))))
    both, first, second = np.intersect1d(sides[0][0], sides[1][0], return_indices=True)
    return sides[0][1][first] - sides[1][1][second], both // len(judged.raters), both % len(judged.raters)


def _foretold(people: People, predictions: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """What the judge knows of a dialogue's difference, as variance, and its correlation with people."""
    judged = people.judged
    rows = (judged.system == i) | (judged.system == j)
    found = prediction_powered_mean(
        judged.score[rows], predictions[rows], people.dialogue[rows], None, [0.0, 1.0],
        is_second=judged.system[rows] == j,
    )  # fmt: skip
    if found.reason_off or math.isnan(found.correlation):
        return 0.0, 0.0
    spread = found.people.se**2 * found.n_rated
    return found.correlation**2 * spread, found.correlation


def _row(name: str, plan: Plan | None, ceiling: float) -> PlanRow:
    if plan is None:
        return PlanRow(
            plan=name, people=None, dialogues=None, raters_each=None, ratings=None, judge_calls=None,
            cost=math.nan, reach=math.nan, ceiling=ceiling, reason="no study with these dialogues does that",
        )  # fmt: skip
    return PlanRow(
        plan=name,
        people=plan.n_people,
        dialogues=plan.n_dialogues,
        raters_each=plan.raters_each,
        ratings=plan.n_ratings,
        judge_calls=plan.n_judged,
        cost=plan.cost,
        reach=plan.reach,
        ceiling=ceiling,
    )


def _words(rows: list[PlanRow], judge: str) -> list[str]:
    words = []
    for row in rows:
        if row.reason:
            words.append(f"{row.plan}: {row.reason}")
            continue
        text = (
            f"{row.plan}: {row.people} people, {row.dialogues} dialogues rated by {row.raters_each} of them "
        )
        text += (
            f"each ({row.ratings} ratings); a difference is known to ±{row.reach:.2f}; cost {row.cost:.2f}"
        )
        if row.judge_calls:
            text += f", {judge} scoring {row.judge_calls}"
        words.append(text)
    if len(rows) == 2 and not rows[1].reason:
        ceiling = f"{rows[1].ceiling:.2f}"
        words.append(
            f"no number of verdicts of {judge} multiplies the rated dialogues by more than {ceiling}"
        )
    return words


def planned_study(study: Study, row: PlanRow, criterion: str | None = None, seed: int = 0) -> Study:
    """The study that implements a plan: so many items, drawn at random, and raters; it stops when sure."""
    if row.dialogues is None:
        raise UserError(f"there is no plan to write: {row.reason}")
    if row.dialogues > len(study.items):
        raise UserError(f"the plan has {row.dialogues} dialogues, the study {len(study.items)} items")
    drawn = np.random.default_rng(seed).choice(len(study.items), row.dialogues, replace=False)
    return study.model_copy(
        update={
            "items": tuple(study.items[i] for i in sorted(drawn.tolist())),
            "raters_per_item": row.raters_each,
            "stop": "when-sure",
            "stop_criterion": criterion if criterion in {q.criterion for q in study.questions} else None,
        }
    )
