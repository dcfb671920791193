"""How many people, dialogues and judge calls does an answer of a given certainty cost?

The variance of a paired difference of two systems, with n dialogues rated by k people each, R people in all,
and a judge that scores M dialogues, is

    (D - E (1 - n / M)) / n + C / (n k) + P / R,

where D is how far the difference varies between dialogues, C within a dialogue, P between people, and E the
part of D that the judge foretells (PPI++ with the best weight: Angelopoulos, Duchi & Zrnic 2023). However
many verdicts there are, they never multiply the dialogues by more than 1 / (1 - rho^2), with rho the judge's
correlation with the difference that is rated. Where dialogues are drawn with unequal probabilities
(`sampling`), what the judge does not foretell is multiplied by their gain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

FEWEST_DIALOGUES = 10
_MOST_RATERS_EACH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceVariances:
    """What the difference of two systems varies by, in squares of its unit."""

    dialogue: float
    people: float
    cell: float
    foretold: float = 0.0
    """The part of `dialogue` that the judge knows."""
    gain: float = 1.0
    """What unequal sampling probabilities multiply the rest by (`sampling.sampling_gain`)."""

    def variance(self, n: float, each: float, n_people: float, n_judged: float = 0.0) -> float:
        """Of the mean difference in a study of this size."""
        return self._of_dialogues(n, each, n_judged) + self.people / n_people

    def df(self, n: float, each: float, n_people: float, n_judged: float = 0.0) -> float:
        """Satterthwaite's degrees of freedom of that variance."""
        by_dialogues, by_people = self._of_dialogues(n, each, n_judged), self.people / n_people
        spread = by_dialogues**2 / (n - 1) + by_people**2 / max(1.0, n_people - 1)
        return (by_dialogues + by_people) ** 2 / spread if spread else n - 1

    def _of_dialogues(self, n: float, each: float, n_judged: float) -> float:
        foretold = self.foretold if n_judged > n else 0.0
        rest = self.gain * (self.dialogue - foretold + self.cell / each) / n
        return rest + (foretold / n_judged if foretold else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """In any currency."""

    rating: float
    """One person's judgement of one dialogue, both systems."""
    judge: float = 0.0
    """One dialogue scored by the judge, both systems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A study and what it costs."""

    n_dialogues: int
    raters_each: int
    n_people: int
    n_judged: int
    cost: float
    se: float
    df: float

    @property
    def n_ratings(self) -> int:
        return self.n_dialogues * self.raters_each

    @property
    def reach(self) -> float:
        """Half the length of a 95% interval."""
        from scipy.special import stdtrit

        return float(stdtrit(max(1.0, self.df), 0.975)) * self.se

    def power(self, difference: float) -> float:
        """How often such a study finds a difference of this size, at 5%."""
        from scipy.special import stdtr

        if not self.se:
            return 1.0
        return float(stdtr(max(1.0, self.df), (abs(difference) - self.reach) / self.se))


def cheapest_plan(
    variances: DifferenceVariances,
    prices: Prices,
    *,
    available: int,
    each_person: int = 20,
    reach: float | None = None,
    budget: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    with_judge: bool = False,
) -> Plan | None:
    """The cheapest study whose interval reaches no farther than `reach`, or the most certain for `budget`.

    With `difference` the cheapest that finds such a difference with `power`. `available` are the dialogues
    there are, `each_person` how many one person rates. None where none does.
    """
    if sum(goal is not None for goal in (reach, budget, difference)) != 1:
        raise ValueError("give either reach, budget or difference")
    if prices.rating <= 0 or prices.judge < 0:
        raise ValueError("the price of a rating must be above 0, that of a judge 0 or more")
    best: Plan | None = None
    for each in range(1, _MOST_RATERS_EACH + 1):
        for n in _sizes(available):
            plan = plan_of(variances, prices, n, each, each_person, available if with_judge else 0)
            if budget is not None and plan.cost > budget:
                continue
            if reach is not None and plan.reach > reach:
                continue
            if difference is not None and plan.power(difference) < power:
                continue
            if best is None or _is_better(plan, best, by_cost=budget is None):
                best = plan
    return best


def plan_of(
    variances: DifferenceVariances, prices: Prices, n: int, each: int, each_person: int, n_judged: int = 0
) -> Plan:
    """The study of `n` dialogues by `each` people, and how sure it is."""
    people = max(each, math.ceil(n * each / each_person), 3)
    return Plan(
        n_dialogues=n,
        raters_each=each,
        n_people=people,
        n_judged=n_judged,
        cost=n * each * prices.rating + n_judged * prices.judge,
        se=math.sqrt(max(0.0, variances.variance(n, each, people, n_judged))),
        df=variances.df(n, each, people, n_judged),
    )


def plan_curve(
    plan: Plan, variances: DifferenceVariances, prices: Prices, *, available: int, each_person: int
) -> list[tuple[float, float]]:
    """Cost and reach of smaller and larger studies of the same kind."""
    sizes = np.unique(np.geomspace(min(FEWEST_DIALOGUES, available), available, 40).round().astype(int))
    plans = [plan_of(variances, prices, int(n), plan.raters_each, each_person, plan.n_judged) for n in sizes]
    return [(one.cost, one.reach) for one in plans]


def _is_better(plan: Plan, best: Plan, *, by_cost: bool) -> bool:
    if by_cost:
        return (plan.cost, plan.reach) < (best.cost, best.reach)
    return (plan.reach, plan.cost) < (best.reach, best.cost)


def _sizes(available: int) -> list[int]:
    """Numbers of dialogues to try: all up to 200, then in steps of two per cent."""
    small = list(range(min(FEWEST_DIALOGUES, available), min(available, 200) + 1))
    if available <= 200:
        return small
    steps = np.unique(np.geomspace(201, available, 1 + int(50 * math.log(available / 200))).astype(int))
    return [*small, *steps.tolist()]
