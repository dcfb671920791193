"""`palaver train`: response models from an experiment file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli import completion, options
from palaver.cli.messages import print_json
from palaver.errors import DataError, require
from palaver.knowledge.candidates import reading_sentences
from palaver.knowledge.corpus import select_for
from palaver.knowledge.selector import Selector, make_selector
from palaver.schema import Dialogue
from palaver.training.experiment_file import (
    PRESETS,
    experiment_toml,
    load_experiment,
    preset_experiment,
    reference,
)
from palaver.training.sample import write_sample

if TYPE_CHECKING:
    from palaver.training.examples import Select
    from palaver.training.experiment import Experiment


def responder(
    experiment: Annotated[Path, typer.Argument(help="An experiment file (TOML).")],
    settings: options.Settings = None,
    out: options.OptionalOut = None,
    device: options.Device = "auto",
    force: options.Force = False,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps.")] = None,
) -> None:
    """Train a response model, or go on with a run that was stopped.

    --out is the folder of the run, in place of the file's.

    Example: palaver train responder experiment.toml --set optimiser.epochs=3 --set model.dropout=0.1

    From a shipped model: palaver train responder experiment.toml --set model.initialise_from=default

    On several GPUs: accelerate launch --num_processes 4 -m palaver train responder experiment.toml
    """
    _require_models()
    from palaver.training.display import watching
    from palaver.training.run import train

    where, _, number = options.torch_device(device).partition(":")
    if number:
        import torch

        torch.cuda.set_device(int(number))
    assignments = list(settings or [])
    if max_steps is not None:
        assignments.append(f"optimiser.max_steps={max_steps}")
    plan = load_experiment(experiment, assignments)
    if out is not None:
        plan = plan.model_copy(update={"out": out})
    with watching(plan.folder, tensorboard=plan.log.tensorboard) as watcher:
        outcome = train(
            plan,
            select=_selector(plan) if plan.data.knowledge != "none" else None,
            device=where,  # type: ignore[arg-type]  # cpu or cuda
            fresh=force,
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


def presets(as_json: options.Json = False) -> None:
    """List the recipes an experiment can start from.

    Example: palaver train presets
    """
    if as_json:
        print_json([{"name": name, "about": about} for name, about in PRESETS.items()])
        return
    width = max(map(len, PRESETS))
    for name, about in PRESETS.items():
        typer.echo(f"{name:<{width}}  {about}")


def show(
    preset: Annotated[
        str, typer.Argument(help="A preset, see `palaver train presets`.", autocompletion=completion.recipes)
    ],
    settings: options.Settings = None,
    as_json: options.Json = False,
) -> None:
    """Print a preset as an experiment file with every field.

    Example: palaver train show xing2018-speaker
    """
    _require_models()
    experiment = preset_experiment(preset, settings or [])
    if as_json:
        print_json(experiment.plain())
        return
    typer.echo(experiment_toml(experiment), nl=False)


def status(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")], as_json: options.Json = False
) -> None:
    """Say how far a run has come, with its curve.

    Example: palaver train status runs/trial
    """
    _require_models()
    from palaver.training.display import describe_run, read_status

    if as_json:
        print_json(read_status(run))
        return
    for line in describe_run(run):
        typer.echo(line)


def fields(as_json: options.Json = False) -> None:
    """List every field of an experiment file, with its default.

    Example: palaver train fields
    """
    _require_models()
    if as_json:
        names = ("field", "default", "about")
        print_json(
            {title: [dict(zip(names, row, strict=True)) for row in rows] for title, rows in reference()}
        )
        return
    for title, rows in reference():
        typer.secho(title, bold=True)
        for name, default, about in rows:
            typer.echo(f"  {name:<16} {f'{default}  ' if default else ''}{about}".rstrip())


def new(
    out: options.Out,
    force: options.Force = False,
) -> None:
    """Write an experiment to try.

    The folder gets a file, some made-up dialogues and a table of personalities.

    Example: palaver train new --out trial
    """
    options.refuse_existing(out, force)
    for path in write_sample(out):
        typer.echo(f"wrote {path}")
    typer.echo(f"next: palaver train responder {out / 'experiment.toml'}")


def _require_models() -> None:
    for module in ("torch", "tokenizers", "safetensors", "accelerate"):
        require(module, "models")


def _selector(experiment: Experiment) -> Select:
    """How knowledge is chosen; weights are fitted on all reading sets of the corpora, when first asked."""
    from palaver.training.examples import read_source

    selectors: list[Selector] = []

    def everything() -> Iterator[Dialogue]:
        data = experiment.data
        whole = {s.model_copy(update={"split": None}) if s.corpus else s for s in (*data.train, *data.valid)}
        for source in sorted(whole, key=str):
            yield from read_source(source, data)

    def select(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Dialogue, Sequence[str | None]]]:
        if not selectors:
            sentences = reading_sentences(everything())
            if not sentences:
                raise DataError(
                    f"data.knowledge is {experiment.data.knowledge}, but the dialogues have no reading sets",
                    "train on a corpus with knowledge, such as topical-chat, or set data.knowledge to none",
                )
            selectors.append(make_selector(experiment.data.knowledge, sentences))
        for dialogue, chosen in select_for(dialogues, selectors[0]):
            yield dialogue, [c.sentence if c is not None else None for c in chosen]

    return select
