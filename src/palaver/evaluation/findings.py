"""From ratings to the answer: a verdict of each judge and of people, agreement between them, one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from palaver.errors import UserError
from palaver.evaluation.judging import JudgeOutcome
from palaver.evaluation.people import PeopleOutcome
from palaver.evaluation.results import PEOPLE, SIMULATED, AgreementWithPeople, Stance, Verdict
from palaver.judges.meta import meta_evaluate
from palaver.judges.meta_measures import OUTPUTS, WITHIN
from palaver.judges.ranking import rank_systems
from palaver.reports import wording
from palaver.schema.judge import Direction
from palaver.studies import Analysis, RatingTable, analyse, ratings_from_frame
from palaver.studies.ratings import names_in_files
from palaver.studies.trust_ppi import describe_worth, trust_ppi

N_REPLICATES = 1000
_NOTHING = ", so it adds nothing"
_OVERALL = ("overall", "quality", "preference", "preferred", "better")
"""Criteria that speak for the whole, where people were asked several."""


@dataclass(frozen=True)
class Settings:
    """Of all statistics."""

    confidence: float
    seed: int


def judge_verdicts(outcome: JudgeOutcome, settings: Settings) -> list[Verdict]:
    """One judge's rankings, a criterion each."""
    frame = outcome.frame
    if not frame.height:
        return [_silent(outcome, criterion) for criterion in outcome.directions or [outcome.judge]]
    verdicts = []
    for criterion in frame["criterion"].unique(maintain_order=True).to_list():
        rows = frame.filter(pl.col("criterion") == criterion)
        direction = outcome.directions.get(criterion, "higher")
        verdicts.append(_judge_verdict(outcome, criterion, rows, direction, settings))
    return verdicts


def _silent(outcome: JudgeOutcome, criterion: str) -> Verdict:
    """A judge that rated nothing is not left out in silence."""
    reasons = [outcome.error] if outcome.error else [f"{n:,} {text}" for text, n in outcome.left_out.items()]
    return Verdict(
        judge=outcome.judge, kind=outcome.kind, criterion=criterion, direction="higher", ranking=None,
        reason=f"it rated nothing: {'; '.join(reasons) or 'no response could be rated'}",
    )  # fmt: skip


def _judge_verdict(
    outcome: JudgeOutcome, criterion: str, rows: pl.DataFrame, direction: Direction, settings: Settings
) -> Verdict:
    verdict = Verdict(
        judge=outcome.judge, kind=outcome.kind, criterion=criterion, direction=direction, ranking=None,
        means=_means(rows),
    )  # fmt: skip
    if direction == "neither":
        return replace(verdict, reason="neither end is better")
    if rows["system"].n_unique() < 2:
        return replace(verdict, reason="it rated one system only")
    is_pair = rows["against"].null_count() < rows.height
    try:
        if is_pair:
            analysis = analyse(
                ratings_from_frame(rows, name=outcome.judge),
                n_replicates=N_REPLICATES, confidence=settings.confidence, seed=settings.seed,
            )  # fmt: skip
        else:
            analysis = rank_systems(
                rows, n_replicates=N_REPLICATES, confidence=settings.confidence, seed=settings.seed
            )
    except UserError as error:
        return replace(verdict, reason=error.message)
    return _with_ranking(verdict, analysis, criterion)


def _with_ranking(verdict: Verdict, analysis: Analysis, criterion: str) -> Verdict:
    rankings = wording.rankings_of(analysis, criterion) or list(analysis.ranking[:1])
    if not rankings:
        return replace(verdict, reason="nothing could be ranked")
    means = () if rankings[0].groups else verdict.means
    return replace(verdict, ranking=rankings[0], means=means, reason=rankings[0].reason)


def _means(rows: pl.DataFrame) -> tuple[tuple[str, float], ...]:
    """Each system's mean, in the order of the rows; nothing where values are words."""
    numbers = rows.with_columns(pl.col("value").cast(pl.Float64, strict=False)).drop_nulls("value")
    means = numbers.group_by("system", maintain_order=True).agg(pl.col("value").mean())
    return tuple((str(system), float(mean)) for system, mean in means.iter_rows())


def people_verdicts(people: PeopleOutcome, settings: Settings) -> tuple[list[Verdict], Analysis]:
    """People's rankings, the criterion that speaks for the whole first."""
    assert people.table is not None
    analysis = analyse(
        people.table, study=people.study, n_replicates=N_REPLICATES, confidence=settings.confidence,
        seed=settings.seed,
    )  # fmt: skip
    who = SIMULATED if people.is_simulated else PEOPLE
    verdicts = []
    for summary in analysis.criteria:
        verdict = Verdict(
            judge=who, kind=summary.rated_by, criterion=summary.criterion, direction=summary.direction,
            ranking=None,
        )  # fmt: skip
        verdicts.append(_with_ranking(verdict, analysis, summary.criterion))
    first = _deciding(people, [verdict.criterion for verdict in verdicts])
    return sorted(verdicts, key=lambda verdict: verdict.criterion != first), analysis


def _deciding(people: PeopleOutcome, criteria: Sequence[str]) -> str:
    if people.study is not None and people.study.stop_criterion in criteria:
        return str(people.study.stop_criterion)
    for name in _OVERALL:
        for criterion in criteria:
            if name in criterion.casefold():
                return criterion
    return criteria[0] if criteria else ""


# The answer ----------------------------------------------------------------------------------------------


def with_stances(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Each verdict beside the one that decides: the first of people, or else the first of the judges."""
    deciding = next((verdict for verdict in verdicts if verdict.best), None)
    return [
        replace(verdict, stance=_stance(verdict, deciding)) if deciding is not None else verdict
        for verdict in verdicts
    ]


def _stance(verdict: Verdict, deciding: Verdict) -> Stance:
    if not verdict.best or verdict is deciding:
        return ""
    if set(verdict.best) == set(deciding.best):
        return "agrees"
    if set(verdict.best) & set(deciding.best):
        return "undecided"
    return "disagrees"


def answer(verdicts: Sequence[Verdict], n_raters: int) -> str:
    """The verdict that decides, and how many of the others share it, in one sentence."""
    deciding = next((verdict for verdict in verdicts if verdict.best), None)
    if deciding is None or deciding.ranking is None:
        return "Nothing can be said yet: no judge could rank the systems."
    judges = [verdict for verdict in verdicts if not verdict.is_by_people and verdict.stance]
    n_systems = len(deciding.ranking.scores)
    if deciding.is_by_people:
        who = f"{n_raters:,} {deciding.judge}" if n_raters else deciding.judge
        source = f"{who} say ({deciding.criterion})"
    else:
        source = f"{deciding.title} says"
    best = deciding.best
    if len(best) == n_systems:
        told = f"No difference between {wording.enumerated(best)} can be shown, {source}"
    elif len(best) == 1:
        other = deciding.ranking.scores[1].system
        told = (
            f"{best[0]} is better than {other}" if n_systems == 2 else f"{best[0]} is the best of {n_systems}"
        )
        told += f", {source}"
    else:
        told = f"{wording.enumerated(best)} are better than the rest and not told apart, {source}"
    if judges:
        told += f"; {_share(judges, 'judge' if deciding.is_by_people else 'other judge')}"
    return f"{told}."


def _share(judges: Sequence[Verdict], called: str) -> str:
    """How many judges agree with the verdict that decides, and how many contradict it."""
    counts = Counter(verdict.stance for verdict in judges)
    if len(judges) == 1:
        words = {"agrees": "agrees", "undecided": "is undecided", "disagrees": "puts another system first"}
        return f"the {called} {words[judges[0].stance]}"
    if counts["agrees"] == len(judges):
        return f"both {called}s agree" if len(judges) == 2 else f"all {len(judges)} {called}s agree"
    told = f"{counts['agrees']} of {len(judges)} {called}s agree"
    if counts["disagrees"]:
        told += f", {counts['disagrees']} put{'s' if counts['disagrees'] == 1 else ''} another system first"
    return told


# Judges beside people --------------------------------------------------------------------------------------


def agreement_with_people(
    people: RatingTable, ratings: pl.DataFrame, deciding: str, settings: Settings
) -> tuple[list[AgreementWithPeople], list[str]]:
    """How far each judge agrees with people, the deciding criterion first, and notes on that."""
    frame = names_in_files(people)
    columns = [name for name in ratings.columns if name in frame.columns and name != "value"]
    words = frame["text"].cast(pl.String).str.replace_all("\n", "|")
    value = pl.coalesce(words, frame["value"].cast(pl.String))
    own = frame.select(*(pl.col(name).cast(ratings.schema[name]) for name in columns), value=value)
    try:
        both = ratings_from_frame(pl.concat([own, ratings], how="diagonal"), name="ratings")
        meta = meta_evaluate(both, confidence=settings.confidence, seed=settings.seed, n_disagreements=0)
    except UserError as error:
        return [], [f"Judges could not be put beside people: {error.message}"]
    rows = []
    for criterion in sorted(meta.criteria, key=lambda name: name != deciding):
        ceiling = meta.ceiling_of(criterion).get((OUTPUTS, "spearman"))
        for row in meta.ranked(criterion):
            pairs = meta.of(criterion, row.judge).get((WITHIN, "accuracy"))
            rows.append(
                AgreementWithPeople(
                    judge=row.judge, criterion=criterion, spearman=row.value, low=row.low, high=row.high,
                    pairs_right=pairs.value if pairs else math.nan, n=row.n,
                    one_person=ceiling.value if ceiling else math.nan, reason=row.reason,
                )
            )  # fmt: skip
    return rows, list(meta.notes)


def worth_of_judges(
    people: RatingTable, outcomes: Sequence[JudgeOutcome], criterion: str, settings: Settings
) -> tuple[str, ...]:
    """What the first judge that can help adds to what people say: prediction-powered inference."""
    for outcome in outcomes:
        numbers = outcome.frame.filter(pl.col("against").is_null())
        ranked = [name for name, direction in outcome.directions.items() if direction != "neither"]
        if not numbers.height or not ranked:
            continue
        try:
            table = ratings_from_frame(numbers, name=outcome.judge)
            report = trust_ppi(
                people, table, criterion=criterion, judge=outcome.judge, judge_criterion=ranked[0],
                confidence=settings.confidence,
            )  # fmt: skip
        except UserError:
            continue  # it has no verdicts on what people rated
        if not any(row.weight for row in report.rows):
            reason = next((row.reason for row in report.rows if row.reason), "it goes another way")
            return (f"{outcome.judge} adds nothing to what people say: {reason.removesuffix(_NOTHING)}.",)
        compared = [row for row in report.rows if row.against]
        return tuple(text for row in compared or report.rows for text in describe_worth(row, outcome.judge))
    return ()
