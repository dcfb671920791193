"""`palaver trust plan | calibrate`: before the study, and before a judge is believed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.trust import (
    JudgeCriterion,
    JudgeFiles,
    JudgeName,
    PeopleFile,
    StudyFile,
    TrustInputs,
    finish,
    one_criterion,
    read_judges,
    read_people,
)
from palaver.errors import UsageError
from palaver.files import write_atomically
from palaver.readers.rating_options import RatingOptions
from palaver.schema.delivery import StopJudge
from palaver.statistics.budget import Prices
from palaver.studies import load_study
from palaver.studies.design import study_toml
from palaver.studies.trust import TrustReport
from palaver.studies.trust_calibrate import trust_calibrate
from palaver.studies.trust_plan import dialogues_of, planned_study, trust_plan


def plan(
    people: PeopleFile,
    judges: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[JUDGES]", help="A judge's ratings of what the pilot rated."),
    ] = None,
    judge: JudgeName = None,
    judge_criterion: JudgeCriterion = None,
    price: Annotated[float, typer.Option(help="Of one person's judgement of one dialogue.")] = 1.0,
    judge_price: Annotated[
        float, typer.Option(help="Of one dialogue scored by the judge; 0 for a local one.")
    ] = 0.0,
    reach: Annotated[
        float | None, typer.Option(help="How far the interval of a difference may reach, in points.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Instead: what the study may cost.")] = None,
    points: options.Points = None,
    target: options.Target = 0.8,
    available: Annotated[int, typer.Option(help="Dialogues that could be rated.")] = 1000,
    each_person: Annotated[int, typer.Option(min=1, help="Dialogues that one person rates.")] = 20,
    study: StudyFile = None,
    study_for_plan: Annotated[
        Path | None,
        typer.Option(help="Write the study file that implements the last plan; needs --study."),
    ] = None,
    seed: options.Seed = 0,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """How many people, dialogues and judge calls does it take?

    From a pilot's ratings and your prices: the cheapest study of a wanted reach, or that finds a difference,
    or the most certain one of a budget; with people alone, with a judge, and with dialogues drawn more often
    where the judge is likely to be wrong. With --study-for-plan it becomes a study file, which the judge's
    ratings help to stop early.

    Example: palaver trust plan pilot.csv judged.parquet --price 0.4 --judge-price 0.002 --reach 0.3
    """
    criterion = one_criterion(file_options)
    if study_for_plan is not None and study is None:
        raise UsageError("--study-for-plan needs the study", "name it with --study study.toml")
    options.refuse_existing(out, force)
    options.refuse_existing(study_for_plan, force)
    design = load_study(study) if study else None
    population = dialogues_of(design) if design and study_for_plan else []
    report = trust_plan(
        read_people(people, study, file_options),
        read_judges(judges, file_options) if judges else None,
        prices=Prices(rating=price, judge=judge_price),
        available=len(population) or available,
        dialogues=population,
        criterion=criterion,
        judge=judge,
        judge_criterion=judge_criterion,
        reach=reach,
        budget=budget,
        difference=points,
        power=target,
        each_person=each_person,
    )
    if study_for_plan is not None and design is not None:
        chosen = report.run.config["criterion"]
        planned = planned_study(design, report.rows[-1], str(chosen), seed, report.sampling)
        if judges and len(judges) == 1:
            named = _stop_judge(judges[0], study_for_plan, report, judge_criterion)
            planned = planned.model_copy(update={"stop_judge": named})
        with write_atomically(study_for_plan) as file:
            file.write(study_toml(planned))
    if study_for_plan is not None:
        typer.echo(f"wrote {study_for_plan}", err=as_json)
        finish(report, out, as_json, f"palaver study serve {study_for_plan}")
        return
    asked = {
        "--reach": (reach, None), "--budget": (budget, None), "--points": (points, None),
        "--target": (target, 0.8), "--price": (price, 1.0), "--judge-price": (judge_price, 0.0),
        "--each-person": (each_person, 20), "--seed": (seed, 0),
    }  # fmt: skip
    words = [w for name, (value, usual) in asked.items() if value != usual for w in (name, f"{value:g}")]
    inputs = TrustInputs(people, judges or (), judge, judge_criterion, study, file_options)
    finish(report, out, as_json, inputs.study_file(report, *words))


def _stop_judge(file: Path, study_file: Path, report: TrustReport, criterion: str | None) -> StopJudge:
    """The judge as the study file names it: by the way from there."""
    way = Path(os.path.relpath(file.resolve(), study_file.resolve().parent)).as_posix()
    return StopJudge(file=way, judge=str(report.run.config["judge"]), criterion=criterion)


def calibrate(
    people: PeopleFile,
    judges: JudgeFiles,
    judge: JudgeName = None,
    judge_criterion: JudgeCriterion = None,
    transfer: Annotated[
        str | None, typer.Option(help="People's ratings of another place, to audit the judge there.")
    ] = None,
    margin: Annotated[float, typer.Option(help="How far the judge may be off on average, in points.")] = 0.25,
    threshold: Annotated[
        float | None, typer.Option(help="Also the corrected share of outputs rated as high or higher.")
    ] = None,
    study: StudyFile = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """A judge in people's units, audited: may it be used?

    Scores are mapped to ratings by an isotonic fit to other dialogues. With --transfer the judge is audited
    on ratings from elsewhere: PASS, FAIL or INCONCLUSIVE.

    Example: palaver trust calibrate ratings.csv judged.parquet --transfer other-domain.csv --margin 0.3
    """
    criterion = one_criterion(file_options)
    options.refuse_existing(out, force)
    report = trust_calibrate(
        read_people(people, study, file_options),
        read_judges(judges, file_options),
        read_people(transfer, study, file_options) if transfer else None,
        criterion=criterion,
        judge=judge,
        judge_criterion=judge_criterion,
        margin=margin,
        threshold=threshold,
        confidence=confidence,
        seed=seed,
    )
    inputs = TrustInputs(people, judges, judge, judge_criterion, study, file_options)
    finish(report, out, as_json, inputs.command("ppi"))
