"""From a table of ratings to an `Analysis`: agreement, correlation, ranking, raters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Literal

import numpy as np

from palaver.errors import UserError, nearest
from palaver.schema import RunRecord, Study, record_run
from palaver.statistics.contingency import chi_square
from palaver.statistics.correlation import correlate
from palaver.statistics.normalise import NORMALISATIONS
from palaver.studies.agreement import agree
from palaver.studies.distributions import summarise
from palaver.studies.judgements import Judgements, Key, Resampling, cell_means, judgements_of
from palaver.studies.rankings import rank_systems
from palaver.studies.raters import describe_raters, rater_matrix
from palaver.studies.ratings import RatingTable
from palaver.studies.results import AgreementRow, Analysis, CorrelationRow, RankingRow, TestRow

Method = Literal["pearson", "spearman", "kendall"]
Step = Callable[[str, int, int], None]
"""Told what is being done, and which of how many steps it is."""


def analyse(
    table: RatingTable,
    *,
    study: Study | None = None,
    normalise: str = "auto",
    correlation: Method = "spearman",
    confidence: float = 0.95,
    n_replicates: int = 1000,
    seed: int = 0,
    step: Step | None = None,
) -> Analysis:
    """Everything the ratings say. The same table, options and seed give the same numbers.

    `normalise` is one of `palaver.statistics.normalise.NORMALISATIONS` or "auto": logarithms for
    magnitude estimates, values as given for everything else.
    """
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
    step = step or (lambda what, at, of: None)
    total = 3 * len(table.criteria) + 2
    done = iter(range(total))
    judged: list[Judgements] = []
    agreement: list[AgreementRow] = []
    ranking: list[RankingRow] = []
    for criterion in table.criteria:
        step(f"{criterion}: reading", next(done), total)
        judged.append(judgements_of(table, criterion, normalise))
        # One stream of random numbers per criterion: adding a criterion does not change the others.
        stream = np.random.SeedSequence([seed, *criterion.encode()])
        resampling = Resampling(confidence, n_replicates, np.random.default_rng(stream))
        step(f"{criterion}: agreement", next(done), total)
        agreement += agree(judged[-1], resampling)
        step(f"{criterion}: ranking", next(done), total)
        ranking += rank_systems(judged[-1], resampling)
    step("correlations", next(done), total)
    correlations = tuple(correlate_criteria(judged, correlation, confidence))
    step("raters", next(done), total)
    matrices = [rater_matrix(j) for j in judged]
    analysis = Analysis(
        title=(study.title or study.name) if study else _title(table),
        run=_record(table, study, normalise, correlation, confidence, n_replicates, seed),
        reading=table.reading,
        confidence=confidence,
        criteria=tuple(summarise(j) for j in judged),
        agreement=tuple(agreement),
        correlation=correlations,
        ranking=tuple(ranking),
        raters=describe_raters(judged),
        rater_matrices=tuple(m for m in matrices if m is not None),
        tests=tuple(t for j in judged for t in _box_tests(j)),
        notes=(*(note for j in judged for note in j.notes), *_warnings(judged, study)),
    )
    step("done", total, total)
    return analysis


def _title(table: RatingTable) -> str:
    names = list(table.hashes)
    return "Analysis of " + (
        ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more files"
    )


def _record(
    table: RatingTable,
    study: Study | None,
    normalise: str,
    correlation: str,
    confidence: float,
    n_replicates: int,
    seed: int,
) -> RunRecord:
    config = {
        "normalise": normalise,
        "correlation": correlation,
        "confidence": confidence,
        "replicates": n_replicates,
        "study": study.model_dump_json() if study else None,
    }
    return record_run("study analyse", seed=seed, config=config, data=dict(table.hashes), packages=PACKAGES)


PACKAGES = ("palaver", "numpy", "scipy", "numba", "polars")


_OVER: dict[str, tuple[Key, ...]] = {
    "item means": ("item", "system"),
    "single ratings": ("item", "system", "rater"),
}


def correlate_criteria(
    judged: Sequence[Judgements], method: Method, confidence: float
) -> Iterator[CorrelationRow]:
    """Every two criteria, over the outputs' means and, where one rater gave both, over single ratings."""
    numeric = [j for j in judged if j.treatment.kind == "number"]
    if len(numeric) < 2:
        return
    for over, keys in _OVER.items():
        means = cell_means(numeric, keys)
        for (a, left), (b, right) in combinations(zip(numeric, means, strict=True), 2):
            shared, at_left, at_right = np.intersect1d(
                left.cell, right.cell, assume_unique=True, return_indices=True
            )
            if over == "single ratings" and shared.size < 3:
                continue
            found = correlate(left.mean[at_left], right.mean[at_right], method=method, confidence=confidence)
            lonely = left.cell.size + right.cell.size - 2 * shared.size
            yield CorrelationRow(
                a=a.criterion,
                b=b.criterion,
                method=method,
                over=over,
                value=found.value,
                p=found.p,
                low=found.low,
                high=found.high,
                n=found.n,
                dropped=found.dropped + (lonely if over == "item means" else 0),
                reason=found.reason,
            )


def _box_tests(judged: Judgements) -> Iterator[TestRow]:
    """Do systems differ in what is ticked? (RankME, section 3: added against missed information.)"""
    if judged.treatment.kind != "boxes" or len(judged.systems) < 2:
        return
    reports = [o for o in judged.treatment.options if o not in judged.treatment.exclusive]
    if len(reports) < 2:
        return
    counts = np.array(
        [
            [int(judged.ticked(o)[judged.system == i].sum()) for o in reports]
            for i in range(len(judged.systems))
        ]
    )
    found = chi_square(counts, rows=judged.systems, columns=reports)
    yield TestRow(
        criterion=judged.criterion,
        test="chi-square",
        question=f"do the systems differ in the mix of {', '.join(reports)}?",
        statistic=found.statistic,
        df=found.df,
        p=found.p,
        effect=found.cramers_v,
        n=int(found.n),
        reason=found.reason,
        notes=found.notes,
    )


def _warnings(judged: Sequence[Judgements], study: Study | None) -> Iterator[str]:
    """What a careful reader should know before believing the numbers."""
    raters = {name for j in judged for name in j.raters}
    if len(raters) == 1:
        yield "there is only one rater: agreement cannot be measured, and the ranking is one person's opinion"
    for j in judged:
        if len(j.items) == 1:
            yield f"{j.criterion}: there is only one item, so the ranking may not hold on another"
        known = j.score[np.isfinite(j.score)]
        if known.size and j.treatment.kind == "number" and (known == known[0]).all():
            yield f"{j.criterion}: all ratings are equal, so agreement is undefined and no system is ahead"
        if len(j.systems) == 1:
            yield f"{j.criterion}: there is only one system, so there is nothing to rank"
    if study is not None:
        absent = [q.criterion for q in study.questions if q.criterion not in {j.criterion for j in judged}]
        if absent:
            yield f"the study asks for {', '.join(absent)}, but no such rating was found"
        strange = sorted({s for j in judged for s in j.systems} - set(study.systems))
        if strange:
            yield f"{', '.join(strange)}: rated, but not among the systems of the study"
