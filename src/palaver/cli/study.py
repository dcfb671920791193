"""`palaver study`: plan, simulate and analyse human studies."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from palaver.schema import Study
    from palaver.studies import Habits

T = TypeVar("T")

app = typer.Typer(
    help="Plan, simulate and analyse human studies.", no_args_is_help=True, rich_markup_mode=None
)


class Preset(StrEnum):
    """The presets of `palaver.studies.design.PRESETS` (a test keeps the two equal)."""

    rankme = "rankme"
    plain_me = "plain-me"
    likert = "likert"
    pairwise = "pairwise"
    acute = "acute"
    snippet = "snippet"
    triplet_check = "triplet-check"


class Layout(StrEnum):
    joint = "joint"
    separate = "separate"


class Normalisation(StrEnum):
    auto = "auto"
    raw = "raw"
    log = "log"
    z = "z"
    log_z = "log-z"
    ratio = "ratio"


class Correlation(StrEnum):
    spearman = "spearman"
    pearson = "pearson"
    kendall = "kendall"


PresetOption = Annotated[Preset, typer.Option(help="Which kind of study.", case_sensitive=False)]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Seed of the random numbers; the same seed gives the same result.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]

# The simulated raters' habits, for every verb that simulates.
Bias = Annotated[float, typer.Option(help="How far raters differ in leniency (sd).")]
Spread = Annotated[float, typer.Option(help="How far they differ in use of the scale (sd of the log).")]
Noise = Annotated[float, typer.Option(help="How far a rater varies from judgement to judgement (sd).")]
Careless = Annotated[float, typer.Option(help="Share of raters who answer without reading.")]
JShaped = Annotated[float, typer.Option(help="Share who put nearly everything at the top.")]


def _refuse_overwrite(path: Path, force: bool) -> None:
    from palaver.errors import UserError

    if path.exists() and not force:
        raise UserError(f"{path} is there already", "choose another name, or add --force to replace it")


@app.command()
def new(
    out: Annotated[Path, typer.Option(help="The study file to write (TOML).")],
    preset: PresetOption = Preset.rankme,
    layout: Annotated[
        Layout | None, typer.Option(help="All criteria on one screen, or one at a time.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a study file to start from, with a few items of its own.

    Example: palaver study new --preset rankme --out study.toml
    """
    from palaver.files import write_atomically
    from palaver.studies.design import PRESETS, preset_text

    _refuse_overwrite(out, force)
    with write_atomically(out) as file:
        file.write(preset_text(preset.value, layout=layout.value if layout else None))
    typer.echo(f"wrote {out}: {PRESETS[preset.value]}")
    typer.echo(f"next: put your own items in, then: palaver study check {out}")


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A study file (TOML).")]) -> None:
    """Say whether a study file is right; if not, name every mistake with its line.

    Example: palaver study check study.toml
    """
    from palaver.studies.design import load_study

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


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Ratings to write: .csv, .jsonl or .parquet.")],
    study: Annotated[
        Path | None, typer.Argument(help="A study file; without it, made-up items of a preset.")
    ] = None,
    preset: PresetOption = Preset.rankme,
    layout: Annotated[Layout | None, typer.Option(help="Replace the layout.")] = None,
    systems: Annotated[int, typer.Option(min=2, help="How many systems (with a preset).")] = 5,
    items: Annotated[int, typer.Option(min=1, help="How many items (with a preset).")] = 100,
    raters: Annotated[int, typer.Option(min=1, help="How many raters there are.")] = 20,
    raters_per_item: Annotated[int | None, typer.Option(min=1, help="How many judge each item.")] = None,
    gap: Annotated[float, typer.Option(help="Distance in quality between neighbouring systems.")] = 0.4,
    truth: Annotated[
        list[str] | None, typer.Option(help="A system's quality, NAME=NUMBER; repeat it.")
    ] = None,
    bias: Bias = 0.5,
    spread: Spread = 0.25,
    noise: Noise = 0.7,
    careless: Careless = 0.05,
    j_shaped: JShaped = 0.1,
    seed: SeedOption = 0,
    study_out: Annotated[
        Path | None, typer.Option(help="Also write the study file that was answered.")
    ] = None,
    force: Force = False,
) -> None:
    """Let simulated raters with known truth answer a study.

    Example: palaver study simulate --preset rankme --systems 5 --items 100 --out ratings.csv
    """
    from palaver.errors import UserError
    from palaver.files import write_atomically
    from palaver.studies.design import study_toml
    from palaver.studies.rows import write_frames
    from palaver.studies.simulate import simulate as run_simulation

    if study_out == out:
        raise UserError(f"--out and --study-out both name {out}")
    for path in (out, study_out):
        if path is not None:
            _refuse_overwrite(path, force)
    design = _design(study, preset, layout, systems, items, raters_per_item)
    found = _or_user_error(
        lambda: run_simulation(
            design,
            n_raters=raters,
            truth=_truth(truth) if truth else None,
            gap=gap,
            habits=_habits(bias, spread, noise, careless, j_shaped),
            seed=seed,
        )
    )
    write_frames([found.frame], out)
    if study_out is not None:
        with write_atomically(study_out) as file:
            file.write(study_toml(design))
    typer.echo(f"wrote {found.frame.height:,} ratings by {raters} raters to {out} (seed {seed})")
    for criterion, by_system in found.truth.items():
        order = sorted(by_system, key=lambda s: -by_system[s])
        shown = (f"{s} {round(by_system[s], 2) + 0.0:+.2f}" for s in order)  # + 0.0: no “-0.00”
        typer.echo(f"  truth, {criterion}: {' > '.join(shown)}")
    if found.careless:
        typer.echo(f"  careless: {', '.join(found.careless)}")
    named = study_out or study
    typer.echo(f"next: palaver study analyse {out}" + (f" --study {named}" if named else ""))


def _design(
    file: Path | None, preset: Preset, layout: Layout | None, systems: int, items: int, per_item: int | None
) -> Study:
    from palaver.studies.design import load_study, preset_study
    from palaver.studies.simulate import example_study

    if file is not None:
        given = {"raters_per_item": per_item, "layout": layout.value if layout else None}
        return load_study(file).model_copy(update={k: v for k, v in given.items() if v is not None})
    base = preset_study(preset.value, layout=layout.value if layout else None)
    return example_study(base, systems, items, raters_per_item=per_item or base.raters_per_item)


def _truth(words: list[str]) -> dict[str, float]:
    from palaver.errors import UserError

    truth = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        try:
            truth[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise UserError(f"--truth: expected NAME=NUMBER, found {word!r}")
    return truth


def _habits(bias: float, spread: float, noise: float, careless: float, j_shaped: float) -> Habits:
    from palaver.studies.simulate import Habits

    return _or_user_error(
        lambda: Habits(bias=bias, spread=spread, noise=noise, careless=careless, j_shaped=j_shaped)
    )


def _or_user_error(call: Callable[[], T]) -> T:
    """Arguments that the library refuses with ValueError came from the command line here."""
    from palaver.errors import UserError

    try:
        return call()
    except ValueError as error:
        raise UserError(str(error)) from None


@app.command()
def power(
    difference: Annotated[
        float, typer.Option(help="The difference in quality to be found, in rater units.")
    ] = 0.3,
    preset: PresetOption = Preset.likert,
    criterion: Annotated[
        str | None, typer.Option(help="Which question's scale; the first one if not given.")
    ] = None,
    items: Annotated[str, typer.Option(help="Numbers of items to try.")] = "25,50,100,200",
    raters: Annotated[str, typer.Option(help="Numbers of raters per item to try.")] = "1,2,3,5",
    target: Annotated[float, typer.Option(min=0.01, max=0.999, help="Wanted power.")] = 0.8,
    confidence: Annotated[
        float, typer.Option(min=0.51, max=0.9999, help="Confidence of the bootstrap.")
    ] = 0.95,
    studies: Annotated[int, typer.Option(min=10, help="Simulated studies per design.")] = 200,
    bias: Bias = 0.5,
    spread: Spread = 0.25,
    noise: Noise = 0.7,
    careless: Careless = 0.05,
    j_shaped: JShaped = 0.1,
    seed: SeedOption = 0,
) -> None:
    """How many items and raters does a study need to separate two systems? (by simulation)

    Example: palaver study power --preset likert --difference 0.3 --items 50,100,200 --raters 1,3,5
    """
    from rich.console import Console
    from rich.table import Table

    from palaver.cli.progress import progress
    from palaver.errors import UserError, nearest
    from palaver.statistics.power import power_grid, smallest_design
    from palaver.studies.design import preset_study
    from palaver.studies.simulate import power_draw

    questions = preset_study(preset.value).questions
    names = [q.criterion for q in questions]
    if criterion is not None and criterion not in names:
        raise UserError(
            f"the preset has no criterion {criterion!r}{nearest(criterion, names)}",
            f"it asks for {', '.join(names)}",
        )
    scale = next(q.scale for q in questions if criterion in (None, q.criterion))
    draw = _or_user_error(
        lambda: power_draw(
            scale, difference=difference, habits=_habits(bias, spread, noise, careless, j_shaped)
        )
    )
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
        table.add_column(f"{n} rater{'s' * (n > 1)}", justify="right")
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
    from palaver.errors import UserError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise UserError(
            f"{option}: expected whole numbers from 1, joined by commas, such as 50,100, found {text!r}"
        )
    return sorted(set(numbers))
