"""`palaver study new | check | simulate | power`: studies before anybody takes part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from palaver.cli import options
from palaver.cli.fields import Fields
from palaver.cli.progress import progress
from palaver.errors import UsageError, count_of, nearest
from palaver.files import write_atomically
from palaver.readers.rating_files import write_frames
from palaver.schema import Study
from palaver.statistics.power import power_grid, smallest_design
from palaver.studies.design import PRESETS, load_study, preset_study, preset_text, study_toml
from palaver.studies.draft import StudyDraft, draft_study, items_file_of
from palaver.studies.simulate import Habits, example_study, power_draw
from palaver.studies.simulate import simulate as run_simulation

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
    column: options.Columns = None,
    seed: options.Seed = 0,
    force: options.Force = False,
) -> None:
    """Write a study file: one to start from, or one that asks about your own responses.

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
            columns=options.parse_columns(column), seed=seed,
        )  # fmt: skip
        _write_draft(draft, out)
        return
    given = {"--sample": sample, "--distinct-by": distinct_by, "--pairs": pairs, "--column": column}
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
    per_screen = len(study.items) * study.raters_per_item
    typer.echo(
        f"wrote {path} and {items}: {count_of(len(study.items), 'item')} of "
        f"{count_of(len(study.systems), 'system')} ({', '.join(study.systems)}), "
        f"{per_screen:,} item-rater pairs per criterion or screen"
    )
    for reason, n in draft.left_out.items():
        typer.secho(f"  left out {n:,}: {reason}", fg="yellow")
    for note in draft.notes:
        typer.secho(f"  {note}", fg="yellow")
    typer.echo(f"to rehearse: palaver study simulate {path} --out rehearsal.csv")
    typer.echo(f"next: palaver study serve {path}")


def check(file: Annotated[Path, typer.Argument(help="A study file (TOML).")]) -> None:
    """Say whether a study file is right, or name every mistake in it.

    Example: palaver study check study.toml
    """
    study = load_study(file)
    screens = len(study.items) * study.raters_per_item
    typer.echo(f"{file} is right: {study.title or study.name}")
    for question in study.questions:
        beside = f", beside {question.beside}" if question.beside else ""
        shown = ", ".join(question.shows)
        what = f"{question.scale.describe()} ({question.scale.kind}; shows {shown}{beside})"
        typer.echo(f"  {question.criterion}: {what}")
    typer.echo(
        f"  {len(study.items)} items, systems {', '.join(study.systems)}, layout {study.layout}, "
        f"{study.raters_per_item} raters per item: {screens} item-rater pairs per criterion or screen"
    )


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
) -> None:
    """Let simulated raters with known truth answer a study.

    The ratings are written in the long format: .csv, .jsonl or .parquet.

    Example: palaver study simulate --preset rankme --systems 5 --items 100 --out ratings.csv
    """
    if study_out == out:
        raise UsageError(f"--out and --study-out both name {out}")
    options.refuse_existing(out, force)
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
        with write_atomically(study_out) as file:
            file.write(study_toml(design))
    typer.echo(f"wrote {simulation.frame.height:,} ratings by {raters} raters to {out} (seed {seed})")
    for criterion, by_system in simulation.truth.items():
        order = sorted(by_system, key=lambda s: -by_system[s])
        shown = (f"{s} {round(by_system[s], 2) + 0.0:+.2f}" for s in order)  # + 0.0: no “-0.00”
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
        float, typer.Option(help="The difference in quality to be found, in rater units.")
    ] = 0.3,
    preset: Preset = "likert",
    criterion: Annotated[
        str | None, typer.Option(help="Which question's scale; the first one if not given.")
    ] = None,
    items: Annotated[str, typer.Option(help="Numbers of items to try.")] = "25,50,100,200",
    raters: Annotated[str, typer.Option(help="Numbers of raters per item to try.")] = "1,2,3,5",
    target: Annotated[float, typer.Option(min=0.01, max=0.999, help="Wanted power.")] = 0.8,
    confidence: options.Confidence = 0.95,
    studies: Annotated[int, typer.Option(min=10, help="Simulated studies per design.")] = 200,
    habits: RaterHabits = Habits(),
    seed: options.Seed = 0,
) -> None:
    """How many items and raters does it take to separate two systems?

    Each design is simulated many times.

    Example: palaver study power --preset likert --difference 0.3 --items 50,100,200 --raters 1,3,5
    """
    questions = preset_study(preset).questions
    names = [q.criterion for q in questions]
    if criterion is not None and criterion not in names:
        raise UsageError(
            f"the preset has no criterion {criterion!r}{nearest(criterion, names)}",
            f"it asks for {', '.join(names)}",
        )
    scale = next(q.scale for q in questions if criterion in (None, q.criterion))
    with _usage_errors():
        draw = power_draw(scale, difference=difference, habits=habits)
    with progress() as tell:
        grid = power_grid(
            draw,
            items=_whole_numbers(items, "--items"),
            raters=_whole_numbers(raters, "--raters"),
            n_studies=studies,
            confidence=confidence,
            rng=seed,
            progress=tell,
        )
    table = Table(
        title=f"power to separate a difference of {difference:g} at {confidence:.0%} ({scale.kind})"
    )
    table.add_column("items", justify="right")
    for n in grid.raters:
        table.add_column(count_of(n, "rater"), justify="right")
    for n, row in zip(grid.items, grid.power, strict=True):
        table.add_row(str(n), *("–" if power != power else f"{power:.2f}" for power in row))
    console = Console()
    console.print(table)
    best = smallest_design(grid, target)
    if best.design is None:
        console.print(f"No design reaches {target:.0%}: {best.reason}")
    else:
        d = best.design
        console.print(
            f"Fewest judgements for {target:.0%}: {d.n_items} items, {d.n_raters} rating each "
            f"= {d.judgements} per system (power {d.power:.2f}, 95% interval {d.low:.2f} to {d.high:.2f})"
        )
    console.print(f"{studies} simulated studies per design, seed {seed}", style="dim")


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
