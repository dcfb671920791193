"""From a pilot and prices to a plan: people, dialogues, judge calls, and how often to draw each dialogue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palaver.errors import UserError
from palaver.schema import Item, Study
from palaver.schema.rating import pair_context
from palaver.statistics.budget import (
    FEWEST_DIALOGUES,
    DifferenceVariances,
    Plan,
    Prices,
    cheapest_plan,
    plan_curve,
)
from palaver.statistics.sampling import draw_sample, sampling_gain, sampling_probabilities
from palaver.studies.pilot import (
    Foretold,
    differences_of,
    foretold_by,
    pairs_of,
    people_unknown,
    signal_of,
    variances_of,
)
from palaver.studies.ratings import RatingTable
from palaver.studies.trust import (
    People,
    TrustReport,
    Verdicts,
    check_size,
    make_report,
    people_of,
    verdicts_of,
)

ALONE, TOGETHER, CHOSEN = "people alone", "people and judge", "people and judge, unequal draws"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A study that could be run."""

    plan: str
    """"people alone", "people and judge", or the same with dialogues drawn by how unsure the judge is."""
    people: int | None
    dialogues: int | None
    raters_each: int | None
    ratings: int | None
    judge_calls: int | None
    cost: float
    reach: float
    """Half the length of the interval of a difference."""
    power: float
    """How often it finds the difference asked for; nan where none was."""
    ceiling: float
    """What all verdicts of this judge can multiply the people by at most; 1 without one."""
    reason: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a plan is for: one of the three."""

    reach: float | None = None
    """How far the interval of a difference may reach."""
    budget: float | None = None
    """What the study may cost."""
    difference: float | None = None
    """What is to be found, with `power`."""
    power: float = 0.8

    def check(self) -> None:
        given = {"reach": self.reach, "budget": self.budget, "difference": self.difference}
        goals = [name for name, value in given.items() if value is not None]
        if len(goals) != 1:
            raise UserError("say what the plan is for", "give one of --reach, --budget or --points")
        value = given[goals[0]]
        if value is not None and not 0 < value < math.inf:
            raise UserError(f"{goals[0]}: expected more than 0, found {value:g}")

    def options(self) -> dict[str, float | None]:
        return {"reach": self.reach, "budget": self.budget, "difference": self.difference}


def trust_plan(
    pilot: RatingTable,
    judges: RatingTable | None = None,
    *,
    prices: Prices,
    available: int,
    dialogues: Sequence[str] = (),
    criterion: str | None = None,
    judge: str | None = None,
    judge_criterion: str | None = None,
    reach: float | None = None,
    budget: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    each_person: int = 20,
) -> TrustReport:
    """The cheapest study that reaches its goal, with and without the judge.

    The goal is a reach, a budget, or a difference to be found with some power. The pair of systems that is
    hardest to tell apart in the pilot is planned for. `available` are the dialogues that could be rated,
    `dialogues` their names, if they are known: the report then says with which probability to draw each.
    """
    goal = Goal(reach=reach, budget=budget, difference=difference, power=power)
    goal.check()
    if prices.rating <= 0:
        raise UserError(f"the price of a rating must be above 0, found {prices.rating:g}")
    if prices.judge < 0:
        raise UserError(f"the price of a judge call must be 0 or more, found {prices.judge:g}")
    people = people_of(pilot, criterion, judges=judges, judge_criterion=judge_criterion)
    check_size(people, reach, "a reach")
    check_size(people, difference, "a difference")
    if available < FEWEST_DIALOGUES:
        raise UserError(f"available: a plan needs at least {FEWEST_DIALOGUES} dialogues, found {available}")
    pairs = pairs_of(people)
    n_screens = len(pairs) if people.is_pair else 1  # of pairs each is a comparison of its own
    paid = replace(prices, rating=prices.rating * n_screens)

    def cheapest(variances: DifferenceVariances, with_judge: bool = False) -> Plan | None:
        return cheapest_plan(
            variances, paid, available=available, each_person=each_person, power=goal.power,
            with_judge=with_judge, **goal.options(),
        )  # fmt: skip

    curves: dict[str, list[tuple[float, float]]] = {}

    def add(name: str, plan: Plan | None, variances: DifferenceVariances, ceiling: float) -> None:
        rows.append(_row(name, plan, ceiling, goal, n_screens))
        if plan is not None:
            curves[name] = plan_curve(plan, variances, paid, available=available, each_person=each_person)

    rows: list[PlanRow] = []
    alone = max((variances_of(people, pair) for pair in pairs), key=lambda v: v.variance(50, 3, 10))
    add(ALONE, cheapest(alone), alone, 1.0)
    notes = [
        f"variances of a difference in the pilot: dialogues {alone.dialogue:.3g}, people {alone.people:.3g}, "
        f"the rest {alone.cell:.3g}; a pilot says these roughly"
    ]
    notes += people_unknown(people)
    name, sampling = "", {}
    if judges is not None:
        verdicts = verdicts_of(judges, people, judge=judge, criterion=judge_criterion)
        name = verdicts.judge
        known = [foretold_by(people, verdicts, pair) for pair in pairs]
        least = min(known, key=lambda one: (one.variance, one.correlation))
        helped = replace(alone, foretold=min(least.variance, alone.dialogue))
        ceiling = 1 / (1 - least.correlation**2) if least.correlation < 1 else math.inf
        plan = cheapest(helped, with_judge=True)
        add(TOGETHER, plan, helped, ceiling)
        population = list(dialogues) or _judged_dialogues(verdicts, people)
        reasons = [one.residuals.reason for one in known]
        if all(reasons):
            notes.append(f"all dialogues are drawn with the same probability: {reasons[0]}")
        elif plan is not None and plan.n_dialogues < len(population):
            expected = _expected(people, verdicts, known, population)
            gain = sampling_gain(expected, sampling_probabilities(expected, plan.n_dialogues))
            gained = replace(helped, gain=min(1.0, gain))
            chosen = cheapest(gained, with_judge=True)
            add(CHOSEN, chosen, gained, ceiling)
            if chosen is not None:
                chances = sampling_probabilities(expected, min(chosen.n_dialogues, len(population)))
                sampling = dict(zip(population, chances.round(6).tolist(), strict=True))
    config = {
        "criterion": people.judged.criterion,
        "price_rating": prices.rating,
        "price_judge": prices.judge,
        "available": available,
        **goal.options(),
        "power": power if difference is not None else None,
        "each_person": each_person,
        "judge": name or None,
    }
    tables = [pilot] if judges is None else [pilot, judges]
    words = list(_words(rows, name, difference, sampling))
    report = make_report("plan", rows, PlanRow, tables, config, words=words, notes=notes)
    return replace(report, sampling=sampling, curves=curves)


def best_difference(pilot: RatingTable, criterion: str | None = None) -> float:
    """How far the pilot's two best systems lie apart: what its owner may want to find again."""
    people = people_of(pilot, criterion)
    judged = people.judged
    if people.is_pair:
        gaps = [differences_of(people, judged.score, pair).value.mean() for pair in pairs_of(people)]
        difference = min(abs(float(gap)) for gap in gaps)
    else:
        means = [float(np.nanmean(judged.score[judged.system == i])) for i in range(len(judged.systems))]
        second, first = sorted(means)[-2:] if len(means) > 1 else (0.0, 0.0)
        difference = first - second
    if not difference > 0:
        raise UserError(
            "the pilot's two best systems have the same mean", "say what is to be found, in points"
        )
    return difference


def _judged_dialogues(verdicts: Verdicts, people: People) -> list[str]:
    """Those of which the judge rated every system (of pairs: every pair that people compared)."""
    systems = people.judged.systems
    wanted = (
        [(systems[i], systems[j]) for i, j in pairs_of(people)] if people.is_pair else [(s,) for s in systems]
    )
    names = [set(verdicts.scored(people, *own)) for own in wanted]
    return sorted(set.intersection(*names))


def _expected(
    people: People, verdicts: Verdicts, known: Sequence[Foretold], population: Sequence[str]
) -> np.ndarray:
    """How far people and judge are expected to differ on each dialogue: the mean of the pairs."""
    systems = people.judged.systems
    variances = []
    for (i, j), one in zip(pairs_of(people), known, strict=True):
        values = signal_of(one.signal, verdicts, population, (systems[i], systems[j]), people.is_pair)
        variances.append(one.residuals.variance(values))
    return np.asarray(np.mean(variances, axis=0))


def _row(name: str, plan: Plan | None, ceiling: float, goal: Goal, n_screens: int) -> PlanRow:
    if plan is None:
        return PlanRow(
            plan=name, people=None, dialogues=None, raters_each=None, ratings=None, judge_calls=None,
            cost=math.nan, reach=math.nan, power=math.nan, ceiling=ceiling,
            reason="no study with these dialogues does that",
        )  # fmt: skip
    return PlanRow(
        plan=name,
        people=plan.n_people,
        dialogues=plan.n_dialogues,
        raters_each=plan.raters_each,
        ratings=plan.n_ratings * n_screens,
        judge_calls=plan.n_judged,
        cost=plan.cost,
        reach=plan.reach,
        power=math.nan if goal.difference is None else plan.power(goal.difference),
        ceiling=ceiling,
    )


def _words(
    rows: list[PlanRow], judge: str, difference: float | None, sampling: Mapping[str, float]
) -> Iterator[str]:
    for row in rows:
        if row.reason:
            yield f"{row.plan}: {row.reason}"
            continue
        text = (
            f"{row.plan}: {row.people} people, {row.dialogues} dialogues rated by {row.raters_each} of them "
        )
        text += f"each ({row.ratings} ratings); a difference is known to ±{row.reach:.2f}"
        if difference is not None:
            text += f", and one of {difference:g} is found with a chance of {row.power:.0%}"
        text += f"; cost {row.cost:.2f}"
        if row.judge_calls:
            text += f", {judge} scoring {row.judge_calls}"
        yield text
    if sampling:
        low, high = min(sampling.values()), max(sampling.values())
        yield (
            f"unequal draws: dialogues on which {judge} is likely to be wrong are drawn more often, with "
            f"probabilities from {low:.2f} to {high:.2f}; ratings count 1 / probability"
        )
    if len(rows) > 1 and not rows[1].reason:
        ceiling = f"{rows[1].ceiling:.2f}"
        yield f"no number of verdicts of {judge} multiplies the rated dialogues by more than {ceiling}"


def dialogue_of(item: Item) -> str:
    """The dialogue by which ratings of an item are matched: what a pair's two outputs answer, or the item."""
    systems = [output.system for output in item.outputs]
    named = pair_context(item.id, systems[0], systems[1]) if len(systems) == 2 else None
    return named or item.id


def dialogues_of(study: Study) -> list[str]:
    """The dialogues of a study, in its order."""
    return list(dict.fromkeys(dialogue_of(item) for item in study.items))


def planned_study(
    study: Study,
    row: PlanRow,
    criterion: str | None = None,
    seed: int = 0,
    sampling: Mapping[str, float] | None = None,
) -> Study:
    """The study that implements a plan: so many items and raters; it stops when sure.

    Dialogues are drawn with the probabilities of `sampling`, which every item then carries, or else alike.
    """
    if row.dialogues is None:
        raise UserError(f"there is no plan to write: {row.reason}")
    names = dialogues_of(study)
    if row.dialogues > len(names):
        raise UserError(f"the plan has {row.dialogues} dialogues, the study {len(names)}")
    rng = np.random.default_rng(seed)
    if sampling:
        chances = np.array([sampling[name] for name in names])
        drawn = draw_sample(chances * row.dialogues / chances.sum(), rng)  # they are rounded in the plan
    else:
        drawn = rng.choice(len(names), row.dialogues, replace=False)
    wanted = {names[i] for i in drawn}
    items = [item for item in study.items if dialogue_of(item) in wanted]
    if sampling:
        items = [
            item.model_copy(update={"sampling_probability": sampling[dialogue_of(item)]}) for item in items
        ]
    changes: dict[str, Any] = {
        "items": tuple(items),
        "raters_per_item": row.raters_each,
        "stop": "when-sure",
        "stop_criterion": criterion if criterion in {q.criterion for q in study.questions} else None,
    }
    return study.model_copy(update=changes)
