"""One person beside the others: what a judge could reach as one more person.

Each person's level is taken out first: a judge has one level, too, and it does not count against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palaver.judges.meta_scores import Floats, Ints, PeopleScores, ScoreBook

_FOLDS = 5
_MANY = 20
"""From so many ratings on, one of them hardly moves its rater's level."""


@dataclass(frozen=True, eq=False)
class OnePerson:
    """A row for what one person said about one item: pairs within it are that person's."""

    own: Floats
    """(rows, systems): the person's rating less their level."""
    others: PeopleScores
    """The mean of the other people's ratings; its items are rows."""
    dialogue: Ints
    """The item of each row."""


def one_person(people: PeopleScores, book: ScoreBook) -> OnePerson | None:
    """Each rating of an output that somebody else rated, too; None where there are fewer than two."""
    n_items, n_systems = book.shape
    people = _once_each(people.keep(np.isfinite(people.score)), n_systems)
    cell = people.item * n_systems + people.system
    counts = np.bincount(cell, minlength=n_items * n_systems)
    sums = np.bincount(cell, weights=people.score, minlength=n_items * n_systems)
    several = counts[cell] > 1
    if several.sum() < 2:
        return None
    people, cell = people.keep(several), cell[several]
    others = (sums[cell] - people.score) / (counts[cell] - 1)
    n_raters = int(people.rater.max()) + 1
    rows, row = np.unique(people.item * n_raters + people.rater, return_inverse=True)
    own = np.full((rows.size, n_systems), np.nan)
    own[row, people.system] = people.score - _levels(people.score - others, people.rater, row)
    target = PeopleScores(people.criterion, row, people.system, people.rater, others, people.level)
    return OnePerson(own, target, rows // n_raters)


def _once_each(people: PeopleScores, n_systems: int) -> PeopleScores:
    """What a person said of one output, as their mean where they rated it several times."""
    n_raters = int(people.rater.max(initial=0)) + 1
    output = people.item.astype(np.int64) * n_systems + people.system
    codes, place = np.unique(output * n_raters + people.rater, return_inverse=True)
    score = np.bincount(place, people.score) / np.bincount(place)
    output, rater = np.divmod(codes, n_raters)
    item, system = np.divmod(output, n_systems)
    return PeopleScores(people.criterion, item, system, rater, score, people.level)


def _levels(gap: Floats, rater: Ints, row: Ints) -> Floats:
    """How far the rater of each rating lies above the others.

    With the rating itself in it, the level of a person who rated one output would make them agree with the
    others perfectly. So the level of a person with few ratings is that of other items (five folds), drawn
    towards 0 by as much as levels differ less than single ratings do (the two components of a one-way
    analysis of variance). With many it is one number: folds would tell equal ratings apart.
    """
    n = np.bincount(rater).astype(np.float64)
    seen = n > 0
    total = np.bincount(rater, gap)
    mean = np.divide(total, n, out=np.zeros_like(n), where=seen)
    df_between, df_within = int(seen.sum()) - 1, gap.size - int(seen.sum())
    few = np.zeros_like(gap)
    if df_between and df_within:
        within = float(np.square(gap - mean[rater]).sum()) / df_within
        between = float((n * np.square(mean - gap.mean())).sum()) / df_between
        level = (between - within) * df_between / (gap.size - float(n @ n) / gap.size)
        if level > 0:
            part = rater * _FOLDS + _fold_of_row(row, rater)
            elsewhere = total[rater] - np.bincount(part, gap)[part]
            weight = n[rater] - np.bincount(part)[part] + within / level
            few = np.divide(elsewhere, weight, out=few, where=weight > 0)
    return np.where(n[rater] < _MANY, few, mean[rater])


def _fold_of_row(row: Ints, rater: Ints) -> Ints:
    """The fold of each rating's row: a rater's first row 0, the second 1 …"""
    _, first, place = np.unique(row, return_index=True, return_inverse=True)
    of_rater = rater[first]
    order = np.argsort(of_rater, kind="stable")
    begins = np.searchsorted(of_rater[order], of_rater[order])
    number = np.empty(first.size, dtype=np.int64)
    number[order] = np.arange(first.size) - begins
    folds: Ints = (number % _FOLDS)[place]
    return folds
