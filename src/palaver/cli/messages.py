"""What verbs say alike: what is wrong, how many there are, where the report is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from palaver.errors import UserError


def show_error(error: UserError) -> None:
    """`error: …`, every problem on its own line, then what to do."""
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(error.message, err=True)
    for problem in error.problems:
        typer.echo(f"  - {problem}", err=True)
    if error.hint:
        typer.secho("hint: ", fg="cyan", nl=False, err=True)
        typer.echo(error.hint, err=True)


def write_results(result: Any, folder: Path, render: Callable[[Any], str]) -> None:
    """Write results.json and report.html, and say where the report is."""
    from palaver.files import write_atomically  # `palaver --help` needs no files
    from palaver.reports.page import write_page

    with write_atomically(folder / "results.json") as file:
        file.write(result.to_json())
    typer.echo(f"report: {write_page(render(result), folder / 'report.html')}")


def print_json(result: object) -> None:
    """A result for programs: records as objects, undefined numbers as null."""
    from palaver.schema.run import plain

    typer.echo(json.dumps(plain(result), ensure_ascii=False, indent=2))
