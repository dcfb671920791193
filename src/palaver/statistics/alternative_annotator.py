"""The alternative annotator test: may a judge stand in for a person?

Calderon, Reichart & Dror (2025), "The alternative annotator test for LLM-as-a-judge" (arXiv:2501.10970). Each
person is left out in turn, and judge and person are compared by how close they come to the other people. The
judge wins against a person if it is not significantly worse by `epsilon`, and passes if it wins against half
of them or more (the winning rate). Error over people is held by Benjamini & Yekutieli (2001).

The paper's t-test takes all judgements for independent. Judgements of one dialogue (several criteria, several
systems) are not, so here the test is over dialogues: sums within a dialogue are what varies. The interval of
the winning rate is a bootstrap over dialogues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from palaver.statistics.bootstrap import (
    Floats,
    Interval,
    Rng,
    check_fraction,
    percentile_interval,
    resample_sums,
)
from palaver.statistics.codes import dense_codes

Alignment = Literal["distance", "match"]
Codes = NDArray[np.integer]

FEWEST_PEOPLE = 3
FEWEST_DIALOGUES = 10
"""A person who shares fewer dialogues with others says too little."""
RECOMMENDED = 30
"""The paper asks for as many judgements of each person; here they are dialogues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonTest:
    """Judge against one person, both measured by the other people."""

    rater: int
    judge_ahead: float
    """Share of judgements in which the judge is at least as close to the others as the person is."""
    person_ahead: float
    p: float
    """That the judge is worse by epsilon or more."""
    wins: bool
    n: int
    n_dialogues: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeAnnotator:
    """Whether a judge may stand in for a person."""

    winning_rate: float
    interval: Interval
    advantage: float
    """Mean over people of the share of judgements in which the judge is at least as close as the person."""
    passes: bool
    people: tuple[PersonTest, ...]
    epsilon: float
    n_dialogues: int
    n_left_out: int
    """People who share too few dialogues with others."""
    reason: str = ""
    notes: tuple[str, ...] = ()


def alternative_annotator(
    value: Floats,
    unit: Codes,
    rater: Codes,
    dialogue: Codes,
    judge: Floats,
    *,
    alignment: Alignment = "distance",
    epsilon: float = 0.1,
    alpha: float = 0.05,
    confidence: float = 0.95,
    n_replicates: int = 1000,
    rng: Rng,
) -> AlternativeAnnotator:
    """One entry per rating: what was judged (`unit`), by whom, in which dialogue, and the judge's score.

    `alignment` says what close is: "distance" for numbers and ranks (root mean square), "match" for choices.
    """
    check_fraction("alpha", alpha)
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be at least 0 and below 1, found {epsilon}")
    differences = _person_minus_judge(value, unit, judge, alignment)
    known = np.isfinite(differences.ahead)
    rows = differences.ahead[known]
    people, n_people = dense_codes("rater", np.asarray(rater)[known])
    dialogues, n_dialogues = dense_codes("dialogue", np.asarray(dialogue)[known])
    if not rows.size:
        return _undefined(epsilon, confidence, "no two people judged the same thing as the judge")
    sums = _sums(rows, people, dialogues, n_people, n_dialogues)
    enough = (sums[:, 1] > 0).sum(axis=0) >= FEWEST_DIALOGUES  # dialogues of each person
    n_left_out = int((~enough).sum())
    if enough.sum() < FEWEST_PEOPLE:
        reason = (
            f"{int(enough.sum())} people share at least {FEWEST_DIALOGUES} dialogues with others; "
            f"at least {FEWEST_PEOPLE} are needed"
        )
        return _undefined(epsilon, confidence, reason, n_left_out)
    sums = sums[:, :, enough]
    total = sums.sum(axis=0)
    p = _p_values(total, epsilon)
    wins = _benjamini_yekutieli(p[None], alpha)[0]
    table = sums.reshape(n_dialogues, -1)
    drawn = resample_sums(table, n_replicates, np.random.default_rng(rng)).reshape(-1, *sums.shape[1:])
    replicates = _benjamini_yekutieli(_p_values(drawn, epsilon), alpha).mean(axis=1)
    ties = np.bincount(people, differences.judge[known], minlength=n_people)[enough] / total[1]
    persons = np.bincount(people, differences.person[known], minlength=n_people)[enough] / total[1]
    names = np.unique(np.asarray(rater)[known])[enough]
    tests = tuple(
        PersonTest(
            rater=int(names[j]),
            judge_ahead=float(ties[j]),
            person_ahead=float(persons[j]),
            p=float(p[j]),
            wins=bool(wins[j]),
            n=int(total[1, j]),
            n_dialogues=int(total[5, j]),
        )
        for j in range(len(p))
    )
    few = sum(test.n_dialogues < RECOMMENDED for test in tests)
    notes = (f"{few} of {len(tests)} people have fewer than {RECOMMENDED} dialogues",) if few else ()
    rate = float(wins.mean())
    return AlternativeAnnotator(
        winning_rate=rate,
        interval=percentile_interval(replicates, confidence),
        advantage=float(ties.mean()),
        passes=rate >= 0.5,
        people=tests,
        epsilon=epsilon,
        n_dialogues=n_dialogues,
        n_left_out=n_left_out,
        notes=notes,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Differences:
    """For each rating: whether the person, and whether the judge, is at least as close to the others."""

    person: Floats
    judge: Floats

    @property
    def ahead(self) -> Floats:
        return self.person - self.judge


def _person_minus_judge(value: Floats, unit: Codes, judge: Floats, alignment: Alignment) -> _Differences:
    known = np.isfinite(value) & np.isfinite(judge)
    own, score = np.where(known, value, 0.0), np.where(known, judge, 0.0)
    units, n_units = dense_codes("unit", np.asarray(unit))
    n = np.bincount(units, known, minlength=n_units)[units] - 1  # others
    if alignment == "distance":  # sums of squares to the others from sums over all
        total = np.bincount(units, own, minlength=n_units)[units] - own
        squares = np.bincount(units, own**2, minlength=n_units)[units] - own**2
        of_person = n * own**2 - 2 * own * total + squares
        of_judge = n * score**2 - 2 * score * total + squares
    else:
        _, choice = np.unique(np.r_[own, score], return_inverse=True)
        n_choices = int(choice.max()) + 1
        counts = np.bincount(units * n_choices + choice[: own.size], known, minlength=n_units * n_choices)
        counts = counts.reshape(n_units, n_choices)
        of_person = -(counts[units, choice[: own.size]] - 1)
        same = choice[own.size :] == choice[: own.size]
        of_judge = -(counts[units, choice[own.size :]] - same)
    usable = known & (n >= 1)
    slack = 1e-9 * np.maximum(1.0, np.abs(of_person))
    person = np.where(usable, (of_person <= of_judge + slack).astype(np.float64), np.nan)
    ahead = np.where(usable, (of_judge <= of_person + slack).astype(np.float64), np.nan)
    return _Differences(person, ahead)


def _sums(rows: Floats, people: Codes, dialogues: Codes, n_people: int, n_dialogues: int) -> Floats:
    """(dialogues, 6, people): sum, count, sum^2, sum * count, count^2, and 1 where there is any."""
    cell = dialogues.astype(np.int64) * n_people + people
    size = n_dialogues * n_people
    total = np.bincount(cell, rows, minlength=size).reshape(n_dialogues, n_people)
    count = np.bincount(cell, minlength=size).reshape(n_dialogues, n_people).astype(np.float64)
    return np.stack([total, count, total**2, total * count, count**2, count > 0], axis=1)


def _p_values(sums: Floats, epsilon: float) -> Floats:
    """One-sided t-test over dialogues that the mean difference is below epsilon; `sums` ends in (6, people).

    Where all dialogues came out alike, one in which the person is ahead is added: nothing else would leave
    any doubt.
    """
    from scipy.special import stdtr

    total, count, squares, crossed, counts, n = np.moveaxis(sums, -2, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = squares - 2 * total / count * crossed + (total / count) ** 2 * counts <= 1e-9
        usual = np.where(alike, count / n, 0.0)
        total, squares = total + usual, squares + usual**2
        crossed, counts = crossed + usual**2, counts + usual**2
        count, n = count + usual, n + alike
        mean = total / count
        spread = squares - 2 * mean * crossed + mean**2 * counts
        se = np.sqrt(np.maximum(spread, 0.0) * n / (n - 1)) / count
        p = stdtr(np.maximum(n - 1, 1), (mean - epsilon) / se)
    return np.where(np.isfinite(p) & (n > 2), p, 1.0)


def _benjamini_yekutieli(p: Floats, alpha: float) -> NDArray[np.bool_]:
    """Rejections in each row; the false discovery rate stays below alpha however the tests depend."""
    m = p.shape[1]
    level = alpha / np.sum(1 / np.arange(1, m + 1))
    ordered = np.sort(p, axis=1)
    below = ordered <= level * np.arange(1, m + 1) / m
    n_rejected = np.where(below.any(axis=1), m - np.argmax(below[:, ::-1], axis=1), 0)
    limit = np.where(
        n_rejected > 0, np.take_along_axis(ordered, np.maximum(n_rejected - 1, 0)[:, None], 1)[:, 0], -1.0
    )
    return np.asarray(p <= limit[:, None])


def _undefined(epsilon: float, confidence: float, reason: str, n_left_out: int = 0) -> AlternativeAnnotator:
    nan = float("nan")
    return AlternativeAnnotator(
        winning_rate=nan, interval=Interval(nan, nan, confidence, "percentile"), advantage=nan, passes=False,
        people=(), epsilon=epsilon, n_dialogues=0, n_left_out=n_left_out, reason=reason,
    )  # fmt: skip
