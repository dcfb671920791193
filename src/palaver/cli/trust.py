"""`palaver trust …`: how far to trust an answer, and how many people it still takes."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.study_analyse import rating_sources
from palaver.errors import UsageError, UserError, count_of
from palaver.files import write_atomically
from palaver.judges import directions
from palaver.readers.rating_options import RatingOptions
from palaver.reports.page import write_page
from palaver.reports.trust import print_trust
from palaver.studies import RatingTable, load_study
from palaver.studies.ratings import read_rating_table
from palaver.studies.trust import TrustReport, trust_interval
from palaver.studies.trust_alt import CLOSENESS, trust_alt_test
from palaver.studies.trust_plan import dialogues_of
from palaver.studies.trust_ppi import trust_ppi
from palaver.studies.trust_sequence import METHODS, trust_sequence

PeopleFile = Annotated[
    str,
    typer.Argument(
        metavar="PEOPLE", help="Ratings by people, as `study analyse` takes them, or a served study."
    ),
]
JudgeFiles = Annotated[
    list[Path],
    typer.Argument(metavar="JUDGES", help="What `palaver judge` wrote, or another judge's ratings."),
]
JudgeName = Annotated[
    str | None, typer.Option("--judge", help="Of several judges the one to use. [default: the only one]")
]
JudgeCriterion = Annotated[
    str | None,
    typer.Option(
        "--judge-criterion", help="What the judge measures. [default: as people's, or the only one]"
    ),
]
StudyFile = Annotated[Path | None, typer.Option("--study", help="The study file: scales, permitted values.")]


@dataclass(frozen=True)
class TrustInputs:
    """What was asked about, so that the next command asks about the same."""

    people: str
    judges: Sequence[Path] = ()
    judge: str | None = None
    judge_criterion: str | None = None
    study: Path | None = None
    file_options: RatingOptions = field(default_factory=RatingOptions)
    """What was said about the people's file."""

    def command(self, verb: str, *more: str) -> str:
        """Another `palaver trust` of the same."""
        named = {"--judge": self.judge, "--judge-criterion": self.judge_criterion, "--study": self.study}
        words = ["palaver", "trust", verb, self.people, *map(str, self.judges), *more]
        words += [word for name, value in named.items() if value for word in (name, str(value))]
        words += options.rating_words(self.file_options)
        if self.file_options.criteria:
            words += ["--criteria", self.file_options.criteria[0]]
        return shlex.join(words)

    def analysis(self) -> str:
        """The analysis of the people's ratings."""
        study = ["--study", str(self.study)] if self.study else []
        words = options.rating_words(self.file_options)
        return shlex.join(["palaver", "study", "analyse", self.people, *study, *words])

    def study_file(self, report: TrustReport, *goal: str) -> str:
        """The last plan once more, as a study file; the study has to have as many dialogues."""
        n_dialogues = report.rows[-1].dialogues
        if n_dialogues is None:
            return ""
        design = [] if self.study else ["--study", "study.toml"]
        command = self.command("plan", *goal, *design, "--study-for-plan", "plan.toml")
        if self.study and n_dialogues > len(dialogues_of(load_study(self.study))):
            return f"put {count_of(n_dialogues, 'item')} into {self.study}, then {command}"
        return command

    def surer_plan(self, report: TrustReport) -> str:
        """The plan of a study twice as sure of the first differences; without intervals, the analysis."""
        rows = [row for row in report.rows if row.against and row.criterion == report.rows[0].criterion]
        rows = [row for row in rows if getattr(row, "what", "") != "strength"]  # a plan is not of log odds
        reaches = [(row.high - row.low) / 2 for row in rows if row.high > row.low]
        return self.command("plan", "--reach", f"{max(reaches) / 2:.2g}") if reaches else self.analysis()


def interval(
    people: PeopleFile,
    study: StudyFile = None,
    confidence: options.Confidence = 0.95,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Means and differences, with intervals that know who rated what.

    Two ratings of one dialogue, or by one rater, are not independent. The intervals are clustered by dialogue
    and by rater, so they say what other dialogues and other raters would give.

    Example: palaver trust interval ratings.csv --study study.toml --out intervals.json
    """
    options.refuse_existing(out, force)
    table = read_people(people, study, file_options)
    report = trust_interval(table, confidence=confidence, directions=directions(table.criteria))
    inputs = TrustInputs(people, study=study, file_options=file_options)
    finish(report, out, as_json, inputs.surer_plan(report))


def ppi(
    people: PeopleFile,
    judges: JudgeFiles,
    judge: JudgeName = None,
    judge_criterion: JudgeCriterion = None,
    study: StudyFile = None,
    confidence: options.Confidence = 0.95,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """People and a judge together: shorter intervals, no bias.

    The judge rated everything, people a part. People's ratings correct the judge, the judge makes people's
    figures more certain, and a judge that does not help is left out. Pairwise ratings get win rates and
    Bradley–Terry strengths. People's first criterion is taken, or that of --criteria.

    Example: palaver trust ppi ratings.csv judged.parquet --judge comparator --out ppi.json
    """
    criterion = one_criterion(file_options)
    options.refuse_existing(out, force)
    report = trust_ppi(
        read_people(people, study, file_options),
        read_judges(judges, file_options),
        criterion=criterion,
        judge=judge,
        judge_criterion=judge_criterion,
        confidence=confidence,
    )
    inputs = TrustInputs(people, judges, judge, judge_criterion, study, file_options)
    finish(report, out, as_json, inputs.surer_plan(report))


def alt_test(
    people: PeopleFile,
    judges: JudgeFiles,
    judge: JudgeName = None,
    judge_criterion: JudgeCriterion = None,
    epsilon: Annotated[
        float,
        typer.Option(help="What the judge may be worse by: 0.2 beside experts, 0.1 beside a crowd."),
    ] = 0.1,
    closeness: Annotated[
        str,
        typer.Option(
            help="Compare values, or ranks in a dialogue; auto: ranks where the units differ.",
            **options.choices(CLOSENESS),
        ),
    ] = "auto",
    study: StudyFile = None,
    confidence: options.Confidence = 0.95,
    replicates: options.Replicates = None,
    seed: options.Seed = 0,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """May a judge stand in for a person?

    The alternative annotator test: each person is left out in turn, and judge and person are compared by how
    close they come to the others. It is clustered by dialogue and has an interval.

    Example: palaver trust alt-test ratings.csv judged.parquet --judge my-llm --epsilon 0.1
    """
    criterion = one_criterion(file_options)
    options.refuse_existing(out, force)
    report = trust_alt_test(
        read_people(people, study, file_options),
        read_judges(judges, file_options),
        criterion=criterion,
        judge=judge,
        judge_criterion=judge_criterion,
        closeness=closeness,  # type: ignore[arg-type]  # one of its names
        epsilon=epsilon,
        confidence=confidence,
        n_replicates=replicates or 1000,
        seed=seed,
    )
    inputs = TrustInputs(people, judges, judge, judge_criterion, study, file_options)
    finish(report, out, as_json, inputs.command("ppi"))


def sequence(
    people: PeopleFile,
    judges: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[JUDGES]", help="A judge whose scores make the answer certain earlier."),
    ] = None,
    judge: JudgeName = None,
    judge_criterion: JudgeCriterion = None,
    equivalent_within: Annotated[
        float | None, typer.Option(help="A difference smaller than this does not matter: equivalent.")
    ] = None,
    planned: Annotated[
        int | None,
        typer.Option(min=1, help="Dialogues that the whole study has. [default: those in the file]"),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="asymptotic: clustered; betting: exact.", **options.choices(METHODS)),
    ] = "asymptotic",
    study: StudyFile = None,
    confidence: options.Confidence = 0.95,
    file_options: options.RatingFile = RatingOptions(),
    out: options.OptionalOut = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Is it enough? Look as often as you like.

    Intervals that hold at all looks together, so that a study may be stopped when one of them decides:
    better, worse, equivalent within a margin, or go on. Ratings are taken in the order of the file.

    Example: palaver trust sequence study.db --equivalent-within 0.2
    """
    criterion = one_criterion(file_options)
    options.refuse_existing(out, force)
    report = trust_sequence(
        read_people(people, study, file_options),
        read_judges(judges, file_options) if judges else None,
        criterion=criterion,
        judge=judge,
        judge_criterion=judge_criterion,
        within=equivalent_within,
        planned=planned,
        method=method,
        confidence=confidence,
    )
    is_open = any(row.decision == "go on" for row in report.rows)
    analysis = TrustInputs(people, study=study, file_options=file_options).analysis()
    finish(report, out, as_json, "collect more ratings, then the same command again" if is_open else analysis)


def one_criterion(file_options: RatingOptions) -> str | None:
    """The criterion of --criteria, where one judge is set beside one question."""
    if file_options.criteria is None:
        return None
    if len(file_options.criteria) != 1:
        raise UsageError("--criteria: one judge is set beside one criterion", "name one of them")
    return file_options.criteria[0]


def read_people(named: str, study: Path | None, file_options: RatingOptions) -> RatingTable:
    """The ratings of a file or a served study."""
    sources, served = rating_sources([named], include_excluded=False)
    return read_rating_table(sources, file_options, study=load_study(study) if study else served)


def read_judges(named: list[Path], file_options: RatingOptions) -> RatingTable:
    """The ratings of judges: criteria are theirs, so no study's scales apply."""
    for path in named:
        if not path.exists():
            raise UserError(f"there is no file {path}")
    return read_rating_table(list(named), replace(file_options, criteria=None, sheet=None))


def finish(report: TrustReport, out: Path | None, as_json: bool, next_step: str) -> None:
    """Write the report where --out says, as a page (.html) or for programs; print it and the next step."""
    if out is not None and out.suffix.lower() in (".html", ".htm"):
        from palaver.reports.trust_page import trust_page

        write_page(trust_page(report), out)
    elif out is not None:
        with write_atomically(out) as file:
            file.write(report.to_json())
    if as_json:
        print_json(report)
        return
    print_trust(report, Console())
    if out is not None:
        typer.echo(f"wrote {out}")
    if next_step:
        typer.echo(f"next: {next_step}")
