"""From everything that was said to the `ExperimentResult`: verdicts, agreement, examples, the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from palaver.evaluation.examples import choose_examples, make_examples, read_lines, standard_scores
from palaver.evaluation.experiment import Experiment
from palaver.evaluation.findings import (
    Settings,
    agreement_with_people,
    answer,
    judge_verdicts,
    people_verdicts,
    with_stances,
    worth_of_judges,
)
from palaver.evaluation.judging import JudgeOutcome
from palaver.evaluation.people import PeopleOutcome, restrict
from palaver.evaluation.replies import ResponseRow, SystemOutcome
from palaver.evaluation.results import (
    PEOPLE,
    SIMULATED,
    AgreementWithPeople,
    Example,
    ExperimentResult,
    JudgeRow,
    SystemRow,
    Verdict,
)
from palaver.evaluation.store import Store, cell_key, owner_of
from palaver.reports import numbers
from palaver.schema import Judge, Rating, Response, RunRecord
from palaver.studies import Analysis, RatingTable
from palaver.studies.draft import PERSON
from palaver.studies.ratings import names_in_files

Names = set[tuple[str, str]]
"""Responses by the id of their context and their system."""
WorstTurns = Callable[[Names], Mapping[tuple[str, str], int | None]]


@dataclass(frozen=True, kw_only=True)
class Material:
    """What the steps of a run made."""

    experiment: Experiment
    record: RunRecord
    responses: Path
    replies: Sequence[SystemOutcome]
    rows: Sequence[ResponseRow]
    outcomes: Sequence[JudgeOutcome]
    people: PeopleOutcome | None
    notes: Sequence[str]


def conclude(material: Material, worst_turns: WorstTurns) -> ExperimentResult:
    """All findings. The same material gives the same evaluation."""
    experiment, people = material.experiment, material.people
    settings = Settings(experiment.report.confidence, experiment.seed or 0)
    notes = list(material.notes)
    verdicts: list[Verdict] = []
    analysis: Analysis | None = None
    table: RatingTable | None = None
    if people is not None and people.table is not None:
        names = [outcome.system for outcome in material.replies]
        if people.study is not None and PERSON in people.study.systems:
            names.append(PERSON)
        table, left_out = restrict(people.table, names, {row.id for row in material.rows})
        notes += left_out
        verdicts, analysis = people_verdicts(replace(people, table=table), settings)
    for outcome in material.outcomes:
        verdicts += judge_verdicts(outcome, settings)
    verdicts = with_stances(verdicts)
    ratings = [outcome.frame for outcome in material.outcomes if outcome.frame.height]
    agreement: list[AgreementWithPeople] = []
    worth: tuple[str, ...] = ()
    if table is not None and ratings:
        deciding = verdicts[0].criterion
        agreement, told = agreement_with_people(table, pl.concat(ratings), deciding, settings)
        notes += told
        closest = [row.judge for row in agreement if row.criterion == deciding]
        judges = [o for name in closest for o in material.outcomes if name.startswith(o.judge)]
        worth = worth_of_judges(table, judges, deciding, settings)
    is_simulated = people is not None and people.is_simulated
    n_raters = int(table.frame["rater"].n_unique()) if table is not None else 0
    notes += people.notes if people is not None else ()
    evaluation = ExperimentResult(
        title=experiment.title,
        run=material.record,
        answer=answer(verdicts, n_raters),
        caveats=(),
        confidence=settings.confidence,
        reference=experiment.report.reference,
        systems=tuple(_system_rows(material)),
        judges=tuple(_judge_row(outcome) for outcome in material.outcomes),
        verdicts=tuple(verdicts),
        people_agreement=tuple(row for row in analysis.agreement if row.headline) if analysis else (),
        differences=tuple(row for row in analysis.intervals if row.against) if analysis else (),
        agreement=tuple(agreement),
        worth=worth,
        examples=tuple(_examples(material, verdicts, ratings, table, worst_turns)),
        n_responses=len(material.rows),
        n_raters=n_raters,
        is_simulated=is_simulated,
        waiting=people.waiting if people is not None else "",
        next_commands=people.commands if people is not None else (),
        notes=tuple(dict.fromkeys(notes)),
    )
    return replace(evaluation, caveats=tuple(_caveats(evaluation)))


def _system_rows(material: Material) -> Iterator[SystemRow]:
    words = _mean_words(material.responses)
    for outcome in material.replies:
        yield SystemRow(
            system=outcome.system,
            kind=material.experiment.systems[outcome.system].options.kind,
            n_contexts=outcome.n_contexts,
            n_replies=outcome.n_replies,
            n_skipped=outcome.n_skipped,
            mean_words=words.get(outcome.system, 0.0),
            error=outcome.error,
        )


def _judge_row(outcome: JudgeOutcome) -> JudgeRow:
    return JudgeRow(
        judge=outcome.judge,
        kind=outcome.kind,
        signature=outcome.signature,
        n_ratings=outcome.frame.height,
        left_out=tuple(outcome.left_out.items()),
        notes=tuple(outcome.notes),
        error=outcome.error,
    )


def _mean_words(responses: Path) -> dict[str, float]:
    words: dict[str, int] = {}
    counts: dict[str, int] = {}
    with responses.open("rb") as file:
        for line in file:
            fields = json.loads(line)
            if fields["response"] is not None:
                system = fields["system"]
                words[system] = words.get(system, 0) + len(fields["response"].split())
                counts[system] = counts.get(system, 0) + 1
    return {system: words[system] / n for system, n in counts.items()}


def _caveats(evaluation: ExperimentResult) -> Iterator[str]:
    if evaluation.is_simulated:
        yield "The people are simulated, to try the experiment out: this is no finding about the systems."
    if evaluation.waiting:
        yield f"People are not done: {evaluation.waiting}."
    for error in evaluation.errors:
        yield f"{error.rstrip('.')}. The same command goes on."
    against = [verdict.title for verdict in evaluation.verdicts if verdict.stance == "disagrees"]
    if against:
        yield f"Another system is first for: {', '.join(against)}."
    yield from _other_people(evaluation)
    if not evaluation.n_raters and not evaluation.waiting:
        yield "No people were asked: how far these judges can be believed is not known from this run."


def _other_people(evaluation: ExperimentResult) -> Iterator[str]:
    """Groups are drawn over items; where raters count as a sample, too, less may be sure."""
    deciding = evaluation.verdicts[0] if evaluation.verdicts else None
    if deciding is None or not deciding.is_by_people or deciding.ranking is None:
        return
    firsts = set(deciding.best)
    unsure = []
    for row in evaluation.differences:
        pair = {row.system, row.against}
        is_told_apart = len(pair & firsts) == 1
        is_unsure = not row.reason and not row.excludes_equality
        if row.criterion == deciding.criterion and is_told_apart and is_unsure:
            unsure.append(f"{' and '.join(sorted(pair))} (p {numbers.p_value(row.adjusted_p)})")
    if unsure:
        told = "Other people might decide otherwise. With raters as a sample, too, and all pairs counted"
        yield f"{told}, these are not told apart: {'; '.join(unsure)}."


def _examples(
    material: Material,
    verdicts: Sequence[Verdict],
    ratings: Sequence[pl.DataFrame],
    table: RatingTable | None,
    worst_turns: WorstTurns,
) -> list[Example]:
    is_simulated = material.people is not None and material.people.is_simulated
    who = SIMULATED if is_simulated else PEOPLE
    columns = ["judge", "criterion", "item", "system", "against", "value"]
    frames = [
        frame.with_columns(judge=pl.col("rater"), item=pl.coalesce("context", "item")).select(columns)
        for frame in ratings
    ]
    if table is not None:
        rows = names_in_files(table)
        texts = {
            name: rows[name].cast(pl.String) for name in ("criterion", "item", "system", "against", "context")
        }
        by_people = pl.DataFrame({**texts, "value": rows["value"].cast(pl.String)}).with_columns(
            judge=pl.lit(who), item=pl.coalesce("context", "item")
        )
        frames.insert(0, by_people.select(columns))
    if not frames:
        return []
    scores = standard_scores(pl.concat(frames), verdicts)
    chosen = choose_examples(scores, material.experiment.report.examples, who)
    worst = worst_turns({(choice.item, choice.system) for choice in chosen})
    return make_examples(chosen, scores, material.responses, worst)


def worst_turns(
    judges: Sequence[Judge], responses: Path, store: Store, wanted: Names
) -> Mapping[tuple[str, str], int | None]:
    """The turn of each response's dialogue that the comparator would rather do without; kept as a cell."""
    judge = next((judge for judge in judges if hasattr(judge, "scorer")), None)
    worst: dict[tuple[str, str], int | None] = {}
    if judge is None:
        return worst
    owner = owner_of("worst turn", judge.signature)
    for (item, system), fields in read_lines(responses, wanted).items():
        key = cell_key(owner, json.dumps(fields, sort_keys=True).encode())
        kept = store.judgements([key])
        if key not in kept:
            turns, text = fields["context"], fields["response"]
            dialogue = Response(id=item, system=system, context=turns, response=text).as_dialogue()
            [turn] = judge.scorer.worst_turns([dialogue])
            ratings = []
            if turn is not None:
                ratings.append(
                    Rating(
                        item=item, system=system, rater=judge.name, criterion="worst turn",
                        value=turn.gain, kind="model", turn=turn.turn,
                    )
                )  # fmt: skip
            store.put_judgements(owner, {key: ratings})
            kept = store.judgements([key])
        worst[item, system] = kept[key][0]["turn"] if kept[key] else None
    return worst
