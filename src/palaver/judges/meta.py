"""Does the judge agree with people? Judges' scores beside people's ratings of the same outputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from palaver.errors import UserError
from palaver.judges.catalogue import directions as known_directions
from palaver.judges.labels import SEEN
from palaver.judges.meta_measures import (
    MEASURES,
    OF_SYSTEMS,
    OUTPUTS,
    SYSTEMS,
    WITHIN,
    Measurements,
    measure,
    of_means,
)
from palaver.judges.meta_person import one_person
from palaver.judges.meta_results import Disagreement, JoinRow, JudgeTest, MetaEvaluation, MetaRow
from palaver.judges.meta_scores import (
    Floats,
    JudgeScores,
    PeopleScores,
    ScoreBook,
    match_criteria,
    score_book,
)
from palaver.progress import Progress, no_progress
from palaver.readers.responses import read_responses
from palaver.schema import Response, record_run
from palaver.schema.judge import Direction
from palaver.statistics.alpha import alpha_long
from palaver.statistics.dependent_correlations import swap_tests
from palaver.statistics.icc import icc_long
from palaver.statistics.significance import holm
from palaver.studies.analyse import check_settings
from palaver.studies.ratings import ASKED, RatingTable, as_rating_table

PACKAGES = ("palaver", "numpy", "scipy", "numba", "polars")
ONE_PERSON = "one person"
_FEWEST_PEOPLE = 3
_DIGEST = 10


def meta_evaluate(
    ratings: RatingTable | str | Path | Sequence[str | Path] | Any,
    *,
    match: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    responses: str | Path | Sequence[Response] | None = None,
    normalise: str = "auto",
    confidence: float = 0.95,
    n_permutations: int = 1000,
    n_disagreements: int = 10,
    directions: Mapping[str, Direction] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> MetaEvaluation:
    """How well each judge agrees with people: all outputs together, within items, and systems' means.

    `ratings` hold people's and judges' rows, in one file or several, as `analyse` takes them; who is who says
    the column `kind`, or `read_ratings(..., kinds=…)`. Every judge's criterion is put beside every criterion
    of people unless `match` says which goes with which (judge's -> people's). `responses` give the texts for
    the list of disagreements. Intervals account for dialogues and raters.
    """
    check_settings(normalise, confidence, 1, seed)
    table = as_rating_table(ratings)
    _refuse_seen(table)
    turned = {**known_directions(table.names.values()), **(directions or {})}
    book = score_book(table, normalise=normalise, directions=turned)
    pairs = list(match.items()) if isinstance(match, Mapping) else list(match)
    matched = match_criteria(book, pairs)
    texts = _texts(responses)
    rows: list[MetaRow] = []
    ceiling: list[MetaRow] = []
    tests: list[JudgeTest] = []
    joined: list[JoinRow] = []
    disagreements: list[Disagreement] = []
    remarks = _Remarks()
    for number, people in enumerate(book.people):
        progress(f"{people.criterion}: agreement", number, len(book.people))
        judges = matched.get(people.criterion, [])
        if not judges:
            continue
        for group in _same_outputs(people, judges, book.shape):
            if group.n_shared == 0:
                for judge in group.judges:
                    whole = [*_rows_of_whole(people, judge, book)]
                    rows += whole
                    if not whole:
                        remarks.add(people.criterion, f"{judge.name} rated no output that people rated")
                continue
            measured = measure(
                people,
                np.array([j.scores for j in group.judges]),
                book.shape,
                confidence=confidence,
                seed=seed,
            )
            names = [judge.name for judge in group.judges]
            rows += _rows(people.criterion, names, measured)
            for judge in group.judges:
                joined += _join(people, judge, book)
                disagreements += _disagree(people, judge, book, texts, n_disagreements)
            if group.n_items == 1 and np.unique(people.item).size > 1:
                only = f"{', '.join(names)} rated one item only, so nothing can be said about others"
                remarks.add(people.criterion, only)
            if group.n_shared < group.n_rated:
                remarks.add(
                    people.criterion,
                    f"{', '.join(names)} rated {group.n_shared:,} of the {group.n_rated:,} outputs that "
                    "people rated; the others do not count",
                )
        tests += _tests(people, judges, book, n_permutations, seed)
        ceiling += _ceiling(people, book, confidence, seed)
        for note in _notes_on(people):
            remarks.add(people.criterion, note)
    progress("done", len(book.people), len(book.people))
    config = {
        "match": pairs, "normalise": normalise, "confidence": confidence, "permutations": n_permutations,
        "directions": {name: way for name, way in turned.items() if way != "higher"},
    }  # fmt: skip
    return MetaEvaluation(
        run=record_run("meta", seed=seed, config=config, data=dict(table.hashes), packages=PACKAGES),
        reading=table.reading,
        confidence=confidence,
        rows=tuple(rows),
        ceiling=tuple(ceiling),
        tests=tuple(_corrected(tests)),
        joined=tuple(joined),
        disagreements=tuple(disagreements),
        notes=(*book.notes, *remarks.told(len(matched))),
    )


def _refuse_seen(table: RatingTable) -> None:
    """A judge must not be measured on the ratings that made it."""
    frame = table.frame
    marks = frame["signature"].cast(str).fill_null("")
    kinds = frame["kind"].cast(str)
    raters = frame["rater"].cast(str)
    asked = kinds.is_in(list(ASKED))
    guilty = set(raters.filter(marks.str.ends_with(SEEN) & ~asked).unique().to_list())
    for (
        digest
    ) in table.hashes.values():  # a signature names the data that a judge was trained on by their hash
        is_named = marks.str.contains(str(digest)[:_DIGEST], literal=True) & ~asked
        guilty |= set(raters.filter(is_named).unique().to_list())
    if guilty:
        raise UserError(
            f"{', '.join(sorted(guilty))}: trained on these very ratings, as the signature says",
            "measure it on ratings it has not seen; see docs/results/judges.md",
        )


class _Remarks:
    """Notes on criteria; one that holds for all of them is told once."""

    def __init__(self) -> None:
        self._criteria: dict[str, list[str]] = {}

    def add(self, criterion: str, note: str) -> None:
        self._criteria.setdefault(note, []).append(criterion)

    def told(self, n_criteria: int) -> Iterator[str]:
        for note, criteria in self._criteria.items():
            yield note if len(criteria) == n_criteria else f"{', '.join(criteria)}: {note}"


@dataclass(frozen=True, eq=False)
class _Group:
    """Judges that rated the same of people's outputs."""

    judges: list[JudgeScores]
    n_shared: int
    n_rated: int
    n_items: int


def _same_outputs(
    people: PeopleScores, judges: Sequence[JudgeScores], shape: tuple[int, int]
) -> Iterator[_Group]:
    rated = np.isfinite(people.means(*shape))
    by_outputs: dict[bytes, list[JudgeScores]] = {}
    for judge in judges:
        by_outputs.setdefault(np.packbits(rated & np.isfinite(judge.scores)).tobytes(), []).append(judge)
    for group in by_outputs.values():
        shared = rated & np.isfinite(group[0].scores)
        yield _Group(group, int(shared.sum()), int(rated.sum()), int(shared.any(axis=1).sum()))


def _rows_of_whole(people: PeopleScores, judge: JudgeScores, book: ScoreBook) -> Iterator[MetaRow]:
    """A judge that has one figure for all outputs of a system, beside people's means of systems."""
    scored = np.isfinite(judge.scores)
    if scored.any(axis=1).sum() != 1:
        return
    h = people.means(*book.shape)
    used = scored.any(axis=0) & np.isfinite(h).any(axis=0)
    if used.sum() < 2:
        return
    values = of_means(np.nanmean(h[:, used], axis=0), np.nanmax(judge.scores[:, used], axis=0)[None])
    for name in OF_SYSTEMS:
        yield MetaRow(
            criterion=people.criterion, judge=judge.name, level=SYSTEMS, measure=name,
            value=float(values[SYSTEMS, name][0]), low=math.nan, high=math.nan, n=int(used.sum()),
            reason="one figure a system has no interval",
        )  # fmt: skip


def _rows(criterion: str, names: Sequence[str], measured: Measurements) -> Iterator[MetaRow]:
    for k, name in enumerate(names):
        for level, measure_name in [*MEASURES, *((SYSTEMS, name) for name in OF_SYSTEMS)]:
            value = float(measured.values[level, measure_name][k])
            yield MetaRow(
                criterion=criterion, judge=name, level=level, measure=measure_name, value=value,
                low=float(measured.low[level, measure_name][k]),
                high=float(measured.high[level, measure_name][k]),
                n=measured.n[level], reason=_why_undefined(value, level, measured, k),
            )  # fmt: skip
        extra = {
            (SYSTEMS, "soft accuracy"): measured.soft_accuracy,
            (WITHIN, "accuracy without ties"): measured.without_ties,
            (WITHIN, "accuracy tuned on itself"): measured.on_itself,
            (WITHIN, "tie threshold"): measured.thresholds,
        }
        for (level, measure_name), values in extra.items():
            yield MetaRow(
                criterion=criterion, judge=name, level=level, measure=measure_name, value=float(values[k]),
                low=math.nan, high=math.nan, n=measured.n[level],
                reason="" if math.isfinite(values[k]) else _why_undefined(math.nan, level, measured, k),
            )  # fmt: skip


def _why_undefined(value: float, level: str, measured: Measurements, k: int) -> str:
    if math.isfinite(value):
        return ""
    if measured.n[level] < 2:
        return f"needs at least 2, found {measured.n[level]}"
    if (measured.scores[k] == measured.scores[k][0]).all():
        return "the judge gave one score to all"
    if (measured.h == measured.h[0]).all():
        return "people gave one score to all"
    return "all are tied"


def _tests(
    people: PeopleScores, judges: Sequence[JudgeScores], book: ScoreBook, n_permutations: int, seed: int
) -> Iterator[JudgeTest]:
    """Every two judges on the outputs that all rated: Spearman and Pearson, by permutation of whole items."""
    h = people.means(*book.shape)
    rated = np.isfinite(h)
    judges = [judge for judge in judges if (rated & np.isfinite(judge.scores)).sum() > 1]
    shared = rated & np.logical_and.reduce([np.isfinite(judge.scores) for judge in judges])
    if len(judges) < 2 or shared.sum() < 4 or np.ptp(h[shared]) == 0:
        return
    judges = [judge for judge in judges if np.ptp(judge.scores[shared]) > 0]
    if len(judges) < 2:
        return
    from scipy.stats import rankdata

    scores = np.array([judge.scores[shared] for judge in judges])
    ranks = np.array([rankdata(row) for row in scores])
    items = np.unique(np.nonzero(shared)[0], return_inverse=True)[1]
    sides = {"spearman": (rankdata(h[shared]), ranks), "pearson": (h[shared], scores)}
    tested = {
        name: swap_tests(*both, items, n_permutations=n_permutations, rng=np.random.default_rng(seed))
        for name, both in sides.items()
    }
    for a, b in combinations(range(len(judges)), 2):
        for name, (difference, p) in tested.items():
            yield JudgeTest(
                a=judges[a].name, b=judges[b].name, criterion=people.criterion, level=OUTPUTS,
                test="permutation", measure=name, difference=float(difference[a, b]), p=float(p[a, b]),
                p_holm=math.nan, n=int(shared.sum()),
            )  # fmt: skip


def _corrected(tests: Sequence[JudgeTest]) -> Iterator[JudgeTest]:
    """With Holm's correction over all of them."""
    if not tests:
        return
    adjusted = holm([test.p for test in tests]).adjusted
    for test, p in zip(tests, adjusted.tolist(), strict=True):
        yield replace(test, p_holm=p)


def _ceiling(people: PeopleScores, book: ScoreBook, confidence: float, seed: int) -> Iterator[MetaRow]:
    """Each rating beside the mean of the other people's ratings of the same output."""
    person = one_person(people, book)
    if person is None:
        return
    measured = measure(
        person.others, person.own[None], person.own.shape, confidence=confidence, seed=seed,
        dialogue=person.dialogue,
    )  # fmt: skip
    for meta_row in _rows(people.criterion, [ONE_PERSON], measured):
        if (meta_row.level, meta_row.measure) in MEASURES and meta_row.level != SYSTEMS:
            yield meta_row


def _join(people: PeopleScores, judge: JudgeScores, book: ScoreBook) -> Iterator[JoinRow]:
    """Krippendorff's alpha and ICC(1,1) of people, and with the judge as one more of them."""
    n_systems = len(book.systems)
    h = people.means(*book.shape)
    shared = np.isfinite(h) & np.isfinite(judge.scores)
    kept = people.keep(shared[people.item, people.system] & np.isfinite(people.score))
    unit = kept.item * n_systems + kept.system
    item, system = np.nonzero(shared)
    scores = judge.scores[shared]
    rescaled = judge.kind != "llm"
    if rescaled:
        spread = scores.std()
        scores = (scores - scores.mean()) / (spread or 1.0) * kept.score.std() + kept.score.mean()
    units = np.r_[unit, item * n_systems + system]
    values = np.r_[kept.score, scores]
    level = "interval" if rescaled or people.level not in ("ordinal", "interval") else people.level
    alpha = [alpha_long(u, v, level=level).value for u, v in ((unit, kept.score), (units, values))]  # type: ignore[arg-type]
    single = [icc_long(u, None, v).forms[0].value for u, v in ((unit, kept.score), (units, values))]
    for name, (alone, both) in (("alpha", alpha), ("ICC(1,1)", single)):
        yield JoinRow(
            criterion=people.criterion, judge=judge.name, measure=name, people=float(alone),
            with_judge=float(both), change=float(both - alone), rescaled=rescaled,
            reason="" if math.isfinite(both - alone) else "too few ratings, or all are equal",
        )  # fmt: skip


def _disagree(
    people: PeopleScores,
    judge: JudgeScores,
    book: ScoreBook,
    texts: Mapping[tuple[str, str], Response],
    n: int,
) -> Iterator[Disagreement]:
    """The outputs that people and judge see most differently, largest gap first."""
    h = people.means(*book.shape)
    shared = np.isfinite(h) & np.isfinite(judge.scores)
    if np.ptp(judge.scores[shared]) == 0 or np.ptp(h[shared]) == 0:
        return  # one score for all orders nothing
    gap = _standard(judge.scores[shared]) - _standard(h[shared])
    item, system = np.nonzero(shared)
    for k in np.argsort(-np.abs(gap), kind="stable")[:n]:
        name, of = book.items[item[k]], book.systems[system[k]]
        text = texts.get((name, of))
        yield Disagreement(
            criterion=people.criterion, judge=judge.name, item=name, system=of,
            people=float(h[item[k], system[k]]), judged=float(judge.scores[item[k], system[k]]),
            gap=float(gap[k]),
            context=text.context[-1].text if text is not None and text.context else "",
            response=(text.response or "") if text is not None else "",
        )  # fmt: skip


def _standard(values: Floats) -> Floats:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else values * 0.0


def _texts(responses: str | Path | Sequence[Response] | None) -> dict[tuple[str, str], Response]:
    if responses is None:
        return {}
    read = read_responses(Path(responses)) if isinstance(responses, str | Path) else responses
    return {(response.id, response.judged_system): response for response in read}


def _notes_on(people: PeopleScores) -> Iterator[str]:
    n_people = np.unique(people.rater).size
    if n_people < _FEWEST_PEOPLE:
        who = "one person" if n_people == 1 else f"{n_people} people"
        yield (
            f"rated by {who} only: what a judge agrees with is their opinion, and intervals do not account "
            "for other people"
        )
    if np.unique(people.item).size == 1:
        yield "there is only one item, so nothing can be said about others"
