"""`palaver train`: response models from an experiment file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from palaver.training.examples import Select
    from palaver.training.experiment import Experiment

app = typer.Typer(help="Train response models.", no_args_is_help=True, rich_markup_mode=None)


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


@app.command()
def responder(
    experiment: Annotated[Path, typer.Argument(help="An experiment file (TOML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key of the file; repeat it for more."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run, in place of the file's.")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.auto,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Throw away what is in the run's folder and begin anew.")
    ] = False,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps.")] = None,
) -> None:
    """Train a response model, or go on with a run that was stopped or killed.

    Example: palaver train responder experiment.toml --set optimiser.epochs=3 --set model.dropout=0.1

    On several GPUs: accelerate launch --num_processes 4 -m palaver train responder experiment.toml
    """
    _require_models()
    from palaver.training.display import watching
    from palaver.training.experiment_file import load_experiment
    from palaver.training.run import train

    given = [*(set_ or [])]
    given += [f"optimiser.max_steps={max_steps}"] if max_steps is not None else []
    found = load_experiment(experiment, given)
    if out is not None:
        found = found.model_copy(update={"out": out})
    with watching(found.folder, tensorboard=found.log.tensorboard) as watcher:
        outcome = train(
            found,
            select=_selector(found) if found.data.knowledge != "none" else None,
            device=device.value,
            fresh=fresh,
            watcher=watcher,
        )
    if not outcome.is_main:
        return
    if outcome.stopped:
        typer.echo(
            f"stopped after step {outcome.step:,} ({outcome.reason}); everything is kept in {outcome.folder}"
        )
        typer.echo("to go on, run the same command again")
        raise typer.Exit(130)
    best = f"; best validation perplexity {outcome.best_perplexity:.2f}" if outcome.best_perplexity else ""
    typer.echo(f"finished: {outcome.reason}{best}")
    typer.echo(f"  model: {outcome.folder / 'best'}   curves: {outcome.folder / 'curves.svg'}")


@app.command()
def presets() -> None:
    """List the recipes an experiment can start from.

    Example: palaver train presets
    """
    _require_models()
    from palaver.training.experiment_file import PRESETS

    width = max(map(len, PRESETS))
    for name, about in PRESETS.items():
        typer.echo(f"{name:<{width}}  {about}")


@app.command()
def show(
    preset: Annotated[str, typer.Argument(help="A preset, see `palaver train presets`.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key; repeat it for more."),
    ] = None,
) -> None:
    """Print a preset as an experiment file with every key.

    Example: palaver train show xing2018-speaker
    """
    _require_models()
    from palaver.training.experiment_file import experiment_toml, preset_experiment

    typer.echo(experiment_toml(preset_experiment(preset, set_ or [])), nl=False)


@app.command()
def status(run: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Say how far a run has come, with its curve.

    Example: palaver train status runs/trial
    """
    _require_models()
    from palaver.training.display import describe_run

    for line in describe_run(run):
        typer.echo(line)


@app.command()
def keys() -> None:
    """List every key of an experiment file, with its default.

    Example: palaver train keys
    """
    _require_models()
    from palaver.training.reference import reference

    for title, rows in reference():
        typer.secho(title, bold=True)
        for name, default, about in rows:
            typer.echo(f"  {name:<16} {f'{default}  ' if default else ''}{about}".rstrip())


@app.command()
def new(
    out: Annotated[Path, typer.Option(help="The folder to write into.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the files if they are there.")] = False,
) -> None:
    """Write an experiment to try: a file, some made-up dialogues and a table of personalities.

    Example: palaver train new --out trial
    """
    _require_models()
    from palaver.errors import UserError
    from palaver.training.sample import write_sample

    if (out / "experiment.toml").exists() and not force:
        raise UserError(
            f"{out / 'experiment.toml'} is there already", "choose another folder, or add --force"
        )
    for path in write_sample(out):
        typer.echo(f"wrote {path}")
    typer.echo(f"next: palaver train responder {out / 'experiment.toml'}")


def _require_models() -> None:
    from palaver.errors import require

    for module in ("torch", "tokenizers", "safetensors", "accelerate"):
        require(module, "models")


def _selector(experiment: Experiment) -> Select:
    """How knowledge is chosen; weights are fitted on all reading sets of the corpora, when first asked."""
    from collections.abc import Iterable, Iterator, Sequence

    from palaver.errors import DataError
    from palaver.knowledge import Selector, make_selector, reading_sentences, select_for
    from palaver.schema import Dialogue
    from palaver.training.examples import read_source

    made: list[Selector] = []

    def everything() -> Iterator[Dialogue]:
        data = experiment.data
        whole = {s.model_copy(update={"split": None}) if s.corpus else s for s in (*data.train, *data.valid)}
        for source in sorted(whole, key=str):
            yield from read_source(source, data)

    def select(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Dialogue, Sequence[str | None]]]:
        if not made:
            sentences = reading_sentences(everything())
            if not sentences:
                raise DataError(
                    f"data.knowledge is {experiment.data.knowledge}, but the dialogues have no reading sets",
                    "train on a corpus with knowledge, such as topical-chat, or set data.knowledge to none",
                )
            made.append(make_selector(experiment.data.knowledge, sentences))
        for dialogue, chosen in select_for(dialogues, made[0]):
            yield dialogue, [c.sentence if c is not None else None for c in chosen]

    return select
