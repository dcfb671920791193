"""People's ratings and judges' scores of the same outputs, as arrays: what a meta-evaluation is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from palaver.errors import DataError, UserError, nearest
from palaver.schema.judge import Direction
from palaver.schema.rating import Kind
from palaver.studies.correlations import comparable_judgements, shares_won
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.ratings import ASKED, RatingTable, names_in_files

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PeopleScores:
    """Ratings by people of one criterion, one entry each; codes are those of the `ScoreBook`."""

    criterion: str
    item: Ints
    system: Ints
    rater: Ints
    score: Floats
    level: str

    def keep(self, kept: NDArray[np.bool_]) -> PeopleScores:
        return replace(
            self,
            item=self.item[kept],
            system=self.system[kept],
            rater=self.rater[kept],
            score=self.score[kept],
        )

    def means(self, n_items: int, n_systems: int) -> Floats:
        """(items, systems), nan where nobody rated."""
        return cell_means(self.item, self.system, self.score, n_items, n_systems)


@dataclass(frozen=True, eq=False)
class JudgeScores:
    """One judge's scores of one criterion, (items, systems); higher is better."""

    name: str
    criterion: str
    """As the file has it."""
    kind: Kind
    scores: Floats


@dataclass(frozen=True, eq=False)
class ScoreBook:
    """Everybody's scores under shared names. An item is what several systems answer: the context."""

    items: tuple[str, ...]
    systems: tuple[str, ...]
    people: tuple[PeopleScores, ...]
    judges: tuple[JudgeScores, ...]
    notes: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.items), len(self.systems)


def cell_means(item: Ints, system: Ints, score: Floats, n_items: int, n_systems: int) -> Floats:
    """The mean score of each output as a table of (items, systems)."""
    cell = item * n_systems + system
    known = np.isfinite(score)
    counts = np.bincount(cell[known], minlength=n_items * n_systems)
    sums = np.bincount(cell[known], weights=score[known], minlength=n_items * n_systems)
    with np.errstate(invalid="ignore"):
        means: Floats = (sums / counts).reshape(n_items, n_systems)
    return means


def score_book(
    table: RatingTable, *, normalise: str = "auto", directions: Mapping[str, Direction] | None = None
) -> ScoreBook:
    """Take people and judges out of one table of ratings.

    A judge is a rater that is neither human nor user, for each criterion it rated; its repeats are averaged.
    Of pairwise judgements an output's score is the share of comparisons that it won.
    """
    read = [judgements_of(table, name, normalise) for name in table.criteria]
    judged = list(comparable_judgements(table, read))
    taken = {one.criterion for one in judged}
    judged += [shares_won(one) for one in read if one.treatment.kind == "pair" and one.criterion not in taken]
    notes = [note for one in judged for note in one.notes]
    left = [name for name in table.criteria if name not in {one.criterion for one in judged}]
    if left:
        notes.append(f"{', '.join(left)}: neither numbers nor comparisons of known items, so left out")
    items = _union(one.items for one in judged)
    systems = _union(pl.Series(one.systems, dtype=pl.String) for one in judged)
    plain_rater = _plain_raters(table)
    people: list[PeopleScores] = []
    judges: list[JudgeScores] = []
    raters: dict[str, int] = {}
    for one in judged:
        item = items.search_sorted(one.items).to_numpy().astype(np.int64)[one.item]
        own_systems = pl.Series(one.systems, dtype=pl.String)
        system = systems.search_sorted(own_systems).to_numpy().astype(np.int64)[one.system]
        names = [plain_rater.get(name, name) for name in one.raters]
        if table.kinds[one.criterion] in ASKED:
            codes = np.array([raters.setdefault(name, len(raters)) for name in names])[one.rater]
            level = one.treatment.level
            people.append(PeopleScores(one.criterion, item, system, codes, one.score, level))
            continue
        better = (directions or {}).get(table.names[one.criterion], "higher")
        if better == "lower":
            notes.append(f"{one.criterion}: lower is better, so its scores are turned")
        sign = -1.0 if better == "lower" else 1.0
        for name in dict.fromkeys(names):
            of_judge = np.isin(one.rater, [code for code, other in enumerate(names) if other == name])
            scores = cell_means(
                item[of_judge], system[of_judge], sign * one.score[of_judge], len(items), len(systems)
            )
            in_file = table.names[one.criterion]
            shown = (
                name if name == in_file or _criteria_of(name, judged, table) == 1 else f"{name}: {in_file}"
            )
            judges.append(JudgeScores(shown, in_file, table.kinds[one.criterion], scores))
    _check_sides(table, people, judges)
    return ScoreBook(tuple(items), tuple(systems), tuple(people), tuple(judges), tuple(notes))


def match_criteria(book: ScoreBook, matches: Sequence[tuple[str, str]]) -> dict[str, list[JudgeScores]]:
    """People's criterion -> the judges beside it; without `matches` every judge beside every criterion."""
    known = [one.criterion for one in book.people]
    theirs = list(dict.fromkeys([*(j.criterion for j in book.judges), *(j.name for j in book.judges)]))
    if not matches:
        return {criterion: list(book.judges) for criterion in known}
    matched: dict[str, list[JudgeScores]] = {}
    for judge_criterion, criterion in matches:
        if criterion not in known:
            raise UserError(
                f"--match: people did not rate {criterion!r}{nearest(criterion, known)}",
                f"they rated {', '.join(known)}; write JUDGE'S=PEOPLE'S",
            )
        chosen = [j for j in book.judges if judge_criterion in (j.criterion, j.name)]
        if not chosen:
            raise UserError(
                f"--match: no judge rated {judge_criterion!r}{nearest(judge_criterion, theirs)}",
                f"judges rated {', '.join(theirs)}; write JUDGE'S=PEOPLE'S",
            )
        matched.setdefault(criterion, []).extend(chosen)
    return matched


def _check_sides(table: RatingTable, people: Sequence[PeopleScores], judges: Sequence[JudgeScores]) -> None:
    files = ", ".join(table.reading.files)
    if not people:
        raise DataError(
            f"{files}: nobody's ratings are people's", "say whose they are: --kind people.csv=human"
        )
    if not judges:
        raise DataError(
            f"{files}: no ratings by a judge, only by people",
            "give the file that `palaver judge --out` wrote, or say who rated: --kind scores.csv=llm",
        )
    n_items, n_systems = judges[0].scores.shape
    rated = np.zeros((n_items, n_systems), dtype=bool)
    for one in people:
        rated |= np.isfinite(one.means(n_items, n_systems))
    strangers = [judge.name for judge in judges if not (rated & np.isfinite(judge.scores)).any()]
    if len(strangers) == len(judges):
        raise DataError(
            f"{files}: no judge rated an output that people rated",
            "outputs are joined by `item` (or `context`) and `system`: are both named alike in the files?",
        )


def _criteria_of(rater: str, judged: Sequence[Judgements], table: RatingTable) -> int:
    return sum(
        rater in {name.partition(" #")[0] for name in one.raters} | set(one.raters)
        for one in judged
        if table.kinds[one.criterion] not in ASKED
    )


def _plain_raters(table: RatingTable) -> dict[str, str]:
    """Name with the number of a repeat -> name."""
    in_files = names_in_files(table)["rater"].cast(pl.String)
    pairs = pl.DataFrame({"own": table.frame["rater"].cast(pl.String), "plain": in_files})
    return dict(pairs.filter(pl.col("own") != pl.col("plain")).unique().iter_rows())


def _union(names: Iterable[pl.Series]) -> pl.Series:
    return pl.concat(list(names)).unique().sort()
