"""`palaver study new | check | simulate | power`: studies before anybody takes part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.fields import Fields
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.cli.trust import TrustInputs, finish, read_people
from palaver.errors import UsageError, count_of, nearest
from palaver.files import write_atomically
from palaver.readers.rating_files import write_frames
from palaver.readers.rating_options import RatingOptions
from palaver.reports import lines
from palaver.schema import Study
from palaver.server.words import language_notes, offered_languages
from palaver.statistics.budget import Prices
from palaver.statistics.power import Draw, power_grid, smallest_design
from palaver.studies.design import PRESETS, load_study, preset_study, preset_text, study_toml
from palaver.studies.draft import StudyDraft, draft_study, items_file_of
from palaver.studies.media import media_notes, media_summary, with_folder_beside
from palaver.studies.screens import plan_screens
from palaver.studies.simulate import Habits, difference_of_points, example_study, power_draw
from palaver.studies.simulate import simulate as run_simulation
from palaver.studies.trust_plan import best_difference, trust_plan
from palaver.tabular import show_signed

Preset = Annotated[str, typer.Option(help="Which kind of study.", **options.choices(PRESETS))]
Layout = Annotated[
    str | None,
    typer.Option(
        help="All criteria on one screen, or one at a time.",
        **options.choices(get_args(Study.model_fields["layout"].annotation)),
    ),
]
RaterHabits = Annotated[Habits, Fields.of(Habits, "bias", "spread", "noise", "careless", "j_shaped")]


def new(
    out: options.Out,
    preset: Preset = "rankme",
    layout: Layout = None,
    sources: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Responses or dialogues to be judged; repeat it, say for each system."),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Draw so many contexts. [default: all]")] = None,
    distinct_by: Annotated[
        str | None,
        typer.Option(help="At most one context of each: conversation, or another label of the responses."),
    ] = None,
    pairs: Annotated[
        int | None, typer.Option(min=1, help="Pairs of systems per context (pairwise). [default: all]")
    ] = None,
    media: Annotated[
        Path | None,
        typer.Option(help="The folder of the images and sounds that the texts name in Markdown."),
    ] = None,
    column: options.Columns = None,
    seed: options.Seed = 0,
    force: options.Force = False,
) -> None:
    """Write a study file to start from, or about your own responses.

    Without --from it has a few items of its own. With --from the items are the contexts that all systems
    answered, with the whole history; they are written beside the study file. Presets: likert, rankme,
    pairwise, snippet. Of dialogue files whole dialogues are judged, matched by their ids.

    Example: palaver study new --preset rankme --out study.toml

    Your own: palaver study new --from responses.jsonl --preset pairwise --sample 150 --out study.toml
    """
    if sources:
        if pairs is not None and preset != "pairwise":
            raise UsageError(f"--pairs is for pairwise studies, found --preset {preset}")
        options.refuse_existing(out, force)
        options.refuse_existing(out.with_name(items_file_of(out)), force)
        draft = draft_study(
            sources, preset=preset, sample=sample, distinct_by=distinct_by, pairs=pairs, layout=layout,
            columns=options.parse_columns(column), media=media, seed=seed,
        )  # fmt: skip
        _write_draft(draft, out)
        return
    given: dict[str, object] = {"--sample": sample, "--distinct-by": distinct_by, "--pairs": pairs}
    given |= {"--column": column, "--media": media}
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option} is about responses", "say where they are: --from responses.jsonl")
    options.refuse_existing(out, force)
    with write_atomically(out) as file:
        file.write(preset_text(preset, layout=layout))
    typer.echo(f"wrote {out}: {PRESETS[preset]}")
    typer.echo(f"next: put your own items in, then: palaver study check {out}")


def _write_draft(draft: StudyDraft, out: Path) -> None:
    study = draft.study
    path, items = draft.write(out)
    n_screens = len(plan_screens(study)) * study.raters_per_item
    typer.echo(
        f"wrote {path} and {items}: {count_of(len(study.items), 'item')} of "
        f"{count_of(len(study.systems), 'system')} ({', '.join(study.systems)}), "
        f"{count_of(n_screens, 'screen')} to answer"
    )
    for reason, n in draft.left_out.items():
        typer.secho(f"  left out {n:,}: {reason}", fg="yellow")
    for note in draft.notes:
        typer.secho(f"  {note}", fg="yellow")
    typer.echo(f"to rehearse: palaver study simulate {path} --out rehearsal.csv")
    typer.echo(f"next: palaver study serve {path}")


def check(
    file: Annotated[Path, typer.Argument(help="A study file (TOML).")], as_json: options.Json = False
) -> None:
    """Say whether a study file is right, or name every mistake in it.

    Example: palaver study check study.toml
    """
    study = load_study(file)
    notes = [*language_notes(study), *media_notes(study)]
    n_screens = len(plan_screens(study)) * study.raters_per_item
    if as_json:
        facts = study.model_dump(exclude={"items"})
        counted = {"items": len(study.items), "systems": study.systems, "screens": n_screens}
        print_json({**facts, **counted, "notes": notes})
        return
    typer.echo(f"{file} is right: {study.title or study.name}")
    for question in study.questions:
        beside = f", beside {question.beside}" if question.beside else ""
        shown = ", ".join(question.shows)
        turns = f"; about each turn ({question.turns})" if question.per == "turn" else ""
        only = f"; only if {question.shown_if.describe()}" if question.shown_if else ""
        what = f"{question.scale.describe()} ({question.scale.kind}; shows {shown}{beside}{turns}{only})"
        typer.echo(f"  {question.criterion}: {what}")
    typer.echo(
        f"  {count_of(len(study.items), 'item')}, systems {', '.join(study.systems)}, layout {study.layout}, "
        f"{study.raters_per_item} raters per item: {n_screens:,} screens to answer"
    )
    if len(offered_languages(study)) > 1:
        typer.echo(f"  languages, by the rater's browser: {', '.join(offered_languages(study))}")
    if study.media is not None:
        typer.echo(f"  {media_summary(study)}")
    for note in notes:
        typer.secho(f"  {note}", fg="yellow")


def simulate(
    out: options.Out,
    study: Annotated[
        Path | None, typer.Argument(help="A study file; without it, made-up items of a preset.")
    ] = None,
    preset: Preset = "rankme",
    layout: Layout = None,
    systems: Annotated[int, typer.Option(min=2, help="How many systems (with a preset).")] = 5,
    items: Annotated[int, typer.Option(min=1, help="How many items (with a preset).")] = 100,
    raters: Annotated[int, typer.Option(min=1, help="How many raters there are.")] = 20,
    raters_per_item: Annotated[int | None, typer.Option(min=1, help="How many judge each item.")] = None,
    gap: Annotated[float, typer.Option(help="Distance in quality between neighbouring systems.")] = 0.4,
    truth: Annotated[
        list[str] | None, typer.Option(help="A system's quality, NAME=NUMBER; repeat it.")
    ] = None,
    habits: RaterHabits = Habits(),
    seed: options.Seed = 0,
    study_out: Annotated[
        Path | None, typer.Option(help="Also write the study file that was answered.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Let simulated raters with known truth answer a study.

    The ratings are written in the long format: .csv, .jsonl, .parquet or .xlsx.

    Example: palaver study simulate --preset rankme --systems 5 --items 100 --out ratings.csv
    """
    if study_out == out:
        raise UsageError(f"--out and --study-out both name {out}")
    options.claim_ratings(out, force)
    options.refuse_existing(study_out, force)
    design = _design(study, preset, layout, systems, items, raters_per_item)
    with _usage_errors():
        simulation = run_simulation(
            design,
            n_raters=raters,
            truth=_truth(truth) if truth else None,
            gap=gap,
            habits=habits,
            seed=seed,
        )
    write_frames([simulation.frame], out)
    if study_out is not None:
        if study is not None:
            design = with_folder_beside(design, study, study_out)
        with write_atomically(study_out) as file:
            file.write(study_toml(design))
    if as_json:
        about = {"out": out, "study": study_out or study, "ratings": simulation.frame.height}
        print_json({**about, "truth": dict(simulation.truth), "careless": simulation.careless, "seed": seed})
        return
    n_asked = simulation.frame["rater"].n_unique()  # a small study does not need all of them
    who = f"{raters} raters" if n_asked == raters else f"{n_asked} of {raters} raters"
    typer.echo(f"wrote {simulation.frame.height:,} ratings by {who} to {out} (seed {seed})")
    for criterion, by_system in simulation.truth.items():
        order = sorted(by_system, key=lambda s: -by_system[s])
        shown = (f"{s} {show_signed(by_system[s])}" for s in order)
        typer.echo(f"  truth, {criterion}: {' > '.join(shown)}")
    if simulation.careless:
        typer.echo(f"  careless: {', '.join(simulation.careless)}")
    named = study_out or study
    typer.echo(f"next: palaver study analyse {out}" + (f" --study {named}" if named else ""))


def _design(
    file: Path | None, preset: str, layout: str | None, systems: int, items: int, per_item: int | None
) -> Study:
    if file is not None:
        given = {"raters_per_item": per_item, "layout": layout}
        return load_study(file).model_copy(update={k: v for k, v in given.items() if v is not None})
    base = preset_study(preset, layout=layout)
    return example_study(base, systems, items, raters_per_item=per_item or base.raters_per_item)


def _truth(words: list[str]) -> dict[str, float]:
    truth = {}
    for word in words:
        name, _, number = word.rpartition("=")
        try:
            truth[name] = float(number)
        except ValueError:
            name = ""
        if not name:
            raise UsageError(f"--truth: expected NAME=NUMBER, found {word!r}")
    return truth


@contextmanager
def _usage_errors() -> Iterator[None]:
    """What the library refuses with ValueError came from the command line here."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None


def power(
    difference: Annotated[
        float | None,
        typer.Option(help="The difference in quality to be found, in rater units. [default: 0.3]"),
    ] = None,
    points: options.Points = None,
    preset: Preset = "likert",
    criterion: Annotated[
        str | None, typer.Option(help="Which question's scale; the first one if not given.")
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option("--from", help="Ratings of a pilot, or its database: their variances are used."),
    ] = None,
    study: Annotated[Path | None, typer.Option(help="The study file: scales, permitted values.")] = None,
    column: options.Columns = None,
    items: Annotated[
        str | None, typer.Option(help="Numbers of items to try. [default: 25,50,100,200]")
    ] = None,
    raters: Annotated[
        str | None, typer.Option(help="Numbers of raters per item to try. [default: 1,2,3,5]")
    ] = None,
    target: options.Target = 0.8,
    confidence: options.Confidence = 0.95,
    studies: Annotated[
        int | None, typer.Option(min=10, help="Simulated studies per design. [default: 200]")
    ] = None,
    habits: RaterHabits = Habits(),
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """How many items and raters does it take to separate two systems?

    Each design is simulated many times, with made-up raters. With --from it is planned with the variances of
    real ratings: the same plan as that of `palaver trust plan --points`, without a judge. Of a pilot the
    difference of its two best systems is taken, unless you give one with --points.

    Example: palaver study power --preset likert --difference 0.3 --items 50,100,200 --raters 1,3,5

    With a pilot: palaver study power --from pilot.csv --points 0.5
    """
    _check_difference(difference, points)
    if pilot is not None:
        made_up = {"--items": items, "--raters": raters, "--studies": studies, "--difference": difference}
        _refuse_made_up(made_up, habits)
        file_options = RatingOptions(columns=options.parse_columns(column))
        table = read_people(pilot, study, file_options)
        wanted = best_difference(table, criterion) if points is None else points
        report = trust_plan(
            table, prices=Prices(rating=1.0), available=1000, criterion=criterion, difference=wanted,
            power=target,
        )  # fmt: skip
        named = replace(file_options, criteria=[criterion] if criterion else None)
        words = ["--points", f"{wanted:.3g}", *([] if target == 0.8 else ["--target", f"{target:g}"])]
        inputs = TrustInputs(str(pilot), study=study, file_options=named)
        finish(report, None, as_json, inputs.study_file(report, *words))
        return
    if study is not None or column:
        raise UsageError(f"{'--study' if study else '--column'} is about a pilot", "give it with --from")
    plan = _plan_of_preset(preset, criterion, difference, points, habits)
    n_studies = studies or 200
    with progress() as tell:
        grid = power_grid(
            plan.draw,
            items=_whole_numbers(items or "25,50,100,200", "--items"),
            raters=_whole_numbers(raters or "1,2,3,5", "--raters"),
            n_studies=n_studies,
            confidence=confidence,
            rng=seed,
            progress=tell,
        )
    best = smallest_design(grid, target)
    if as_json:
        print_json(
            {"difference": plan.difference, "unit": plan.unit, "basis": plan.basis}
            | {"designs": grid.results, "target": target, "smallest": best.design, "reason": best.reason}
            | {"seed": seed}
        )
        return
    console = Console()
    difference_text = f"a difference of {plan.difference:.3g} {plan.unit}"
    lines.heading(console, f"power to separate {difference_text} at {confidence:.0%}", plan.basis)
    grid_table = lines.table((), ("items", *(count_of(n, "rater") for n in grid.raters)))
    for n, row in zip(grid.items, grid.power, strict=True):
        grid_table.add_row(str(n), *("–" if power != power else f"{power:.2f}" for power in row))
    lines.print_table(console, grid_table)
    if best.design is None:
        lines.line(console, f"No design reaches {target:.0%}: {best.reason}")
    else:
        d = best.design
        text = f"Fewest judgements for {target:.0%}: {d.n_items} items, {d.n_raters} rating each "
        text += f"= {d.judgements} per system (power {d.power:.2f}, 95% interval {d.low:.2f} to {d.high:.2f})"
        lines.line(console, text)
    lines.line(console, f"{n_studies} simulated studies per design, seed {seed}", "dim")


def _refuse_made_up(given: Mapping[str, object], habits: Habits) -> None:
    """With a pilot nothing is simulated."""
    if habits != Habits():
        raise UsageError("with --from the raters are those of the pilot", "leave out the raters' habits")
    for option, value in given.items():
        if value is not None:
            hint = "give --points" if option == "--difference" else "leave it out: every size is tried"
            raise UsageError(f"{option} is about made-up raters, not about a pilot", hint)


@dataclass(frozen=True)
class _Plan:
    """What is simulated: two systems `difference` apart."""

    draw: Draw
    difference: float
    unit: str
    basis: str
    """Whose ratings they are."""


def _check_difference(difference: float | None, points: float | None) -> None:
    if difference is not None and points is not None:
        raise UsageError("--difference and --points were both given", "give one of them")
    for option, value in (("--difference", difference), ("--points", points)):
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{option}: a difference of {value:g} cannot be found", "expected more than 0")


def _plan_of_preset(
    preset: str, criterion: str | None, difference: float | None, points: float | None, habits: Habits
) -> _Plan:
    questions = preset_study(preset).questions
    names = [q.criterion for q in questions]
    if criterion is not None and criterion not in names:
        raise UsageError(
            f"the preset has no criterion {criterion!r}{nearest(criterion, names)}",
            f"it asks for {', '.join(names)}",
        )
    scale = next(q.scale for q in questions if criterion in (None, q.criterion))
    units = 0.3 if difference is None else difference
    with _usage_errors():
        if points is not None:
            units = difference_of_points(scale, points, habits)
        draw = power_draw(scale, difference=units, habits=habits)
    shown, unit = (points, "points") if points is not None else (units, "rater units")
    return _Plan(draw, shown, unit, scale.kind)


def _whole_numbers(text: str, option: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UsageError(
            f"{option}: expected whole numbers from 1, joined by commas, such as 50,100, found {text!r}"
        )
    return sorted(set(numbers))
