"""`palaver evaluate`: an experiment file from end to end."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import UsageError, UserError
from palaver.evaluation.forms import FILES

if TYPE_CHECKING:
    from palaver.evaluation.experiment import Experiment
    from palaver.generation.contexts import Contexts

_LOOK = 1.0
"""Seconds between two looks at a run that is watched."""


def evaluate(
    file: Annotated[Path, typer.Argument(help="The experiment file (TOML); `palaver init` writes one.")],
    out: options.OptionalOut = None,
    dry_run: options.DryRun = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show how far a run is that another process is working on.")
    ] = False,
    form: Annotated[
        str, typer.Option("--format", help="Of the report beside results.json.", **options.choices(FILES))
    ] = "html",
    data: options.Data = None,
    device: options.Device = "auto",
    engine: options.Engine = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Let systems answer, judges rate and statistics decide: one file, one report.

    The folder --out (default: FILE-results here) gets responses.jsonl, ratings.parquet, results.json and
    report.html. Run it again after a stop or a change, and only what is missing is made.

    Example: palaver evaluate experiment.toml --out results

    Example: palaver evaluate experiment.toml --dry-run
    """
    if dry_run and watch:
        raise UsageError("--dry-run and --watch were both given", "give one of them")
    folder = out if out is not None else Path(f"{file.stem}-results")
    if watch:
        _watch(folder, as_json)
        return
    report = folder / FILES[form]
    if not force and not dry_run:
        from palaver.evaluation.run_record import is_finished

        if is_finished(folder, file, report.name):
            _tell_finished(folder, report, as_json)
            return
    from palaver.evaluation.experiment import load_experiment
    from palaver.evaluation.run import Options, run_experiment

    experiment = load_experiment(file)
    place = f" --out {out}" if out is not None else ""
    settings = Options(
        device=device,
        engine=engine,
        data=data,
        form=form,  # type: ignore[arg-type]  # one of FILES
        command=f"palaver evaluate {file}{place}",
        open_knowledge=lambda chosen, contexts: _open_knowledge(chosen, contexts, device),
    )
    if dry_run:
        _print_plan(experiment, folder, settings, fresh=force, as_json=as_json)
        return
    try:
        with progress() as tell:
            result = run_experiment(experiment, folder, fresh=force, options=settings, progress=tell)
    except KeyboardInterrupt:
        typer.echo(f"what was made so far is in {folder}; the same command goes on", err=True)
        raise
    if as_json:
        print_json(result)
    else:
        from palaver.evaluation.terminal import print_evaluation

        print_evaluation(result, Console())
        typer.echo(f"report: {report}")
        for number, command in enumerate(result.next_commands):
            typer.echo(f"{'next' if number == 0 else 'then'}: {command}")
    if result.errors:
        raise UserError(
            "the evaluation is not complete:",
            "what is there is kept; the same command goes on",
            result.errors,
        )


def _tell_finished(folder: Path, report: Path, as_json: bool) -> None:
    kept = (folder / "results.json").read_text(encoding="utf-8")
    if as_json:
        typer.echo(kept.rstrip("\n"))
        return
    results = json.loads(kept)
    typer.echo(results["answer"])
    for caveat in results["caveats"]:
        typer.echo(caveat)
    typer.echo("nothing to do: everything is there and unchanged")
    typer.echo(f"report: {report}")


def _print_plan(experiment: Experiment, folder: Path, settings: Any, *, fresh: bool, as_json: bool) -> None:
    from palaver.evaluation.plan import plan_run
    from palaver.evaluation.terminal import print_plan

    plan = plan_run(experiment, folder, settings, fresh=fresh)
    if as_json:
        print_json(plan.steps)
    else:
        print_plan(plan, Console())


def _watch(folder: Path, as_json: bool) -> None:
    from palaver.evaluation.store import Store
    from palaver.evaluation.terminal import is_running, print_steps

    console = Console()
    while True:
        running = is_running(folder)
        with Store(folder, read_only=True) as store:
            steps = store.steps()
        if as_json:
            print_json({"running": running, "steps": steps})
            return
        if console.is_terminal:
            console.clear()
        print_steps(steps, console)
        typer.echo("the run is under way" if running else "no run is under way")
        if not running or not console.is_terminal:
            return
        time.sleep(_LOOK)


def _open_knowledge(experiment: Experiment, contexts: Contexts, device: str) -> Any:
    """What [test] says about knowledge, opened."""
    test = experiment.test
    if test.knowledge is not None:
        from palaver.cli.knowledge_file import KnowledgeFile

        return KnowledgeFile(experiment.folder / test.knowledge)
    if test.selector is not None:
        from palaver.cli.reading_knowledge import ReadingKnowledge

        return ReadingKnowledge(test.selector, contexts, options.torch_device(device))
    return None
