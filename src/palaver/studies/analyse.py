"""From a table of ratings to an `Analysis`: agreement, correlation, ranking, raters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from palaver.errors import UserError, nearest
from palaver.progress import Progress, no_progress
from palaver.schema import Study, record_run
from palaver.schema.judge import Direction
from palaver.statistics.bootstrap import Resampling
from palaver.statistics.contingency import chi_square
from palaver.statistics.correlation import Method
from palaver.statistics.normalise import NORMALISATIONS
from palaver.studies.agreement import agree
from palaver.studies.correlations import comparable_judgements, correlate_criteria
from palaver.studies.distributions import summarise
from palaver.studies.influence import find_influence
from palaver.studies.intervals import MOST_RATINGS, crossed_intervals
from palaver.studies.judgements import Judgements, judgements_of
from palaver.studies.rankings import rank_systems
from palaver.studies.raters import describe_raters, rater_matrix
from palaver.studies.ratings import ASKED, TEXTS, RatingTable, as_rating_table
from palaver.studies.results import (
    AgreementRow,
    Analysis,
    InfluenceRow,
    RankingRow,
    TestRow,
    TextRow,
)
from palaver.tabular import Tabular

_TICKS = (
    "ticks are taken for independent; those of one item or rater are not, so p is smaller than it should be"
)
FEW_ITEMS = 20
"""With fewer a bootstrap over items errs more often than it says."""
PACKAGES = ("palaver", "numpy", "scipy", "numba", "polars")


def analyse(
    ratings: RatingTable | str | Path | Sequence[str | Path] | Any,
    *,
    study: Study | None = None,
    normalise: str = "auto",
    correlation: Method = "spearman",
    confidence: float = 0.95,
    n_replicates: int = 1000,
    seed: int = 0,
    directions: Mapping[str, Direction] | None = None,
    influence: bool = False,
    progress: Progress = no_progress,
) -> Analysis:
    """Which system is better on each criterion, and how far that can be trusted.

    `ratings` are what `read_ratings` gives, or a file, several files, a polars or pandas frame, a list of
    `Rating`, or what `judge` or `simulate` gave. The same ratings, options and seed give the same numbers.

    `study` says which scale each criterion has; without it the scale is inferred and that is said.
    `normalise` is one of `palaver.statistics.normalise.NORMALISATIONS` or "auto": logarithms for
    magnitude estimates, values as given for everything else. `directions` names criteria whose low values
    are better, or neither end is; all others are better the higher. `correlation` is "spearman", "pearson" or
    "kendall"; `confidence` and `n_replicates` are those of the intervals. `influence` asks for the agreement
    without each rater and each item.
    """
    check_settings(normalise, confidence, n_replicates, seed)
    if isinstance(ratings, Tabular):  # a simulation knows what was asked, a judge which end is better
        study = study or getattr(ratings, "study", None)
        directions = getattr(ratings, "directions", None) if directions is None else directions
    table = as_rating_table(ratings, study)
    better = _directions(table, directions or {})
    total = 3 * len(table.criteria) + 2
    done = iter(range(total))
    judged: list[Judgements] = []
    agreement: list[AgreementRow] = []
    ranking: list[RankingRow] = []
    influences: list[InfluenceRow] = []
    for criterion in table.criteria:
        progress(f"{criterion}: reading", next(done), total)
        judged.append(judgements_of(table, criterion, normalise))
        # One stream of random numbers per criterion: adding a criterion does not change the others.
        stream = np.random.SeedSequence([seed, *criterion.encode()])
        resampling = Resampling(confidence, n_replicates, np.random.default_rng(stream))
        progress(f"{criterion}: agreement", next(done), total)
        if table.kinds[criterion] in ASKED or len(judged[-1].raters) > 1:  # one metric agrees with itself
            rows = [*agree(judged[-1], resampling)]
            agreement += rows
            if influence:
                influences += find_influence(judged[-1], rows)
        progress(f"{criterion}: ranking", next(done), total)
        ranking += _rank(judged[-1], better[criterion], resampling)
    progress("correlations", next(done), total)
    correlations = tuple(correlate_criteria([*comparable_judgements(table, judged)], correlation, confidence))
    progress("raters", next(done), total)
    matrices = [rater_matrix(j) for j in judged]
    config: dict[str, object] = {
        "normalise": normalise,
        "correlation": correlation,
        "confidence": confidence,
        "replicates": n_replicates,
        "study": None,
    }
    if study is not None:  # without its texts, which may be many, and without what checks expect
        config["study"] = study.model_dump_json(exclude={"items", "checks", "training", "stop_judge"})
        config["sha256_of_study"] = hashlib.sha256(study.model_dump_json().encode()).hexdigest()
    if directions:
        config["directions"] = dict(directions)
    if influence:
        config["influence"] = True
    analysis = Analysis(
        title=(study.title or study.name) if study else _title(table),
        run=record_run("study analyse", seed=seed, config=config, data=dict(table.hashes), packages=PACKAGES),
        reading=table.reading,
        confidence=confidence,
        criteria=tuple(
            replace(summarise(j), rated_by=table.kinds[j.criterion], direction=better[j.criterion])
            for j in judged
        ),
        agreement=tuple(agreement),
        correlation=correlations,
        ranking=tuple(ranking),
        raters=describe_raters(judged) if judged else (),
        rater_matrices=tuple(m for m in matrices if m is not None),
        tests=tuple(t for j in judged for t in _box_tests(j)),
        influence=tuple(influences),
        intervals=tuple(row for j in judged for row in crossed_intervals(table, j, confidence, better)),
        texts=tuple(TextRow(**row) for row in table.texts.sort(list(TEXTS)).iter_rows(named=True)),
        notes=(
            *(note for j in judged for note in j.notes),
            *(_without_influence(judged, influences) if influence else ()),
            *(f"{c}: neither end is better, so it is not ranked" for c in better if better[c] == "neither"),
            *_unequal_draws(judged),
            *_warnings(table, judged, study),
        ),
    )
    progress("done", total, total)
    return analysis


def check_settings(normalise: str, confidence: float, n_replicates: int, seed: int) -> None:
    """Raise where one of them cannot be."""
    known = ("auto", *NORMALISATIONS)
    if normalise not in known:
        raise UserError(
            f"there is no normalisation {normalise!r}{nearest(normalise, known)}",
            f"known: {', '.join(known)}",
        )
    if not 0.5 < confidence < 1:
        raise UserError(f"confidence: expected a number between 0.5 and 1, found {confidence}")
    if n_replicates < 1:
        raise UserError(f"replicates: expected at least 1, found {n_replicates}")
    if seed < 0:
        raise UserError(f"seed: expected 0 or more, found {seed}")


def _unequal_draws(judged: Sequence[Judgements]) -> Iterator[str]:
    if any(j.sampling is not None for j in judged):
        yield (
            "items were drawn with unequal probabilities: the intervals under “How far to trust this” count "
            "ratings 1 / probability, rankings and agreement count all items alike"
        )


def _without_influence(judged: Sequence[Judgements], rows: Sequence[InfluenceRow]) -> Iterator[str]:
    """Criteria of which nobody can be left out."""
    named = {row.criterion for row in rows}
    missing = [j.criterion for j in judged if j.criterion not in named]
    if missing:
        yield f"{', '.join(missing)}: agreement of fewer than three raters hangs on each, so none is left out"


def _directions(table: RatingTable, given: Mapping[str, Direction]) -> dict[str, Direction]:
    """The direction of each criterion; one that several kinds rated may be named as the files name it."""
    known = list(dict.fromkeys([*table.criteria, *table.names.values()]))
    for name, direction in given.items():
        if name not in known:
            raise UserError(
                f"there is no criterion {name!r}{nearest(name, known)}", f"known: {', '.join(known)}"
            )
        if direction not in get_args(Direction):
            expected = " or ".join(get_args(Direction))
            raise UserError(f"direction of {name}: expected {expected}, found {direction!r}")
    better: dict[str, Direction] = {}
    for criterion, name in table.names.items():
        better[criterion] = given.get(criterion, given.get(name, "higher"))
        if better[criterion] == "lower" and table.treatments[criterion].kind == "boxes":
            raise UserError(
                f"{criterion}: boxes are ranked by how seldom each is ticked; that cannot be turned"
            )
    return better


def _rank(judged: Judgements, better: Direction, resampling: Resampling) -> Iterator[RankingRow]:
    """Rankings, best first. Where lower is better the scores are turned for ranking and shown as they are."""
    if better == "neither":
        return
    if better == "higher":
        yield from rank_systems(judged, resampling)
        return
    pair = judged.treatment.kind == "pair"
    offset = 1.0 if pair else 0.0  # a win turned is a loss
    turned = replace(
        judged, score=offset - judged.score, value=offset - judged.value if pair else judged.value
    )
    for row in rank_systems(turned, resampling):
        row = replace(row, notes=(*row.notes, "lower is better"))
        if row.method == "bootstrap":  # the other methods measure who is ahead
            scores = tuple(
                replace(s, score=offset - s.score, low=offset - s.high, high=offset - s.low)
                for s in row.scores
            )
            row = replace(row, unit=f"{row.unit}, lower is better", scores=scores)
        yield row


def _title(table: RatingTable) -> str:
    names = list(table.hashes)
    if len(names) > 3:
        return f"Analysis of {names[0]} and {len(names) - 1} more files"
    return f"Analysis of {', '.join(names)}"


def _box_tests(judged: Judgements) -> Iterator[TestRow]:
    """Do systems differ in what is ticked? (RankME, section 3: added against missed information.)"""
    if judged.treatment.kind != "boxes" or len(judged.systems) < 2:
        return
    reports = [o for o in judged.treatment.options if o not in judged.treatment.exclusive]
    if len(reports) < 2:
        return
    ticked = np.array([judged.ticked(option) for option in reports])
    counts = np.array([ticked[:, judged.system == i].sum(axis=1) for i in range(len(judged.systems))])
    result = chi_square(counts, rows=judged.systems, columns=reports)
    yield TestRow(
        criterion=judged.criterion,
        test="chi-square",
        question=f"do the systems differ in the mix of {', '.join(reports)}?",
        statistic=result.statistic,
        df=result.df,
        p=result.p,
        effect=result.cramers_v,
        n=int(result.n),
        reason=result.reason,
        notes=(*result.notes, _TICKS),
    )


def _warnings(table: RatingTable, judged: Sequence[Judgements], study: Study | None) -> Iterator[str]:
    """What a careful reader should know before believing the numbers."""
    people = {name for j in judged if table.kinds[j.criterion] in ASKED for name in j.raters}
    if len(people) == 1:
        yield "there is only one rater: agreement cannot be measured, and the ranking is one person's opinion"
    ranked = [j for j in judged if len(j.systems) > 1]
    few = sorted(j.criterion for j in ranked if 1 < np.unique(j.dialogue).size < FEW_ITEMS)
    if few:
        shared = any(np.unique(j.dialogue).size < len(j.items) for j in judged if j.criterion in few)
        counted = f"{FEW_ITEMS} items" + (" (those of one context count as one)" if shared else "")
        yield f"{', '.join(few)}: fewer than {counted}, so rankings are too sure of themselves"
    for j in judged:
        if len(j.items) == 1:
            yield f"{j.criterion}: there is only one item, so the ranking may not hold on another"
        elif np.unique(j.dialogue).size == 1:
            yield (
                f"{j.criterion}: all {len(j.items):,} items have the same context, so ranking and agreement "
                "may not hold in another"
            )
        known = j.score[np.isfinite(j.score)]
        if known.size and j.treatment.kind == "number" and (known == known[0]).all():
            yield f"{j.criterion}: all ratings are equal, so agreement is undefined and no system is ahead"
        if j.score.size > MOST_RATINGS and table.kinds[j.criterion] in ASKED:
            yield (
                f"{j.criterion}: more than {MOST_RATINGS:,} ratings, so intervals clustered by dialogue and "
                "rater are left to `palaver trust interval`, and those of agreement and correlation take "
                "outputs for independent"
            )
        if len(j.systems) == 1:
            yield f"{j.criterion}: there is only one system, so there is nothing to rank"
    if study is not None:
        there = {*table.names.values(), *table.texts["criterion"]}
        unasked = {row.criterion for row in table.reading.conditions if not row.n_asked}
        absent = [q.criterion for q in study.questions if q.criterion not in there | unasked]
        if absent:
            yield f"the study asks for {', '.join(absent)}, but no such rating was found"
        strange = sorted({s for j in judged for s in j.systems} - set(study.systems))
        if strange:
            yield f"{', '.join(strange)}: rated, but not among the systems of the study"
