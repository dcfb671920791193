"""What verbs say alike: what is wrong, where the report is, and results as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
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


def print_json(content: Any) -> None:
    """The result of `--json`: what results.json holds, or records as objects with null for nan.

    Nothing else may go to standard output then; what a person should know goes to standard error.
    """
    if hasattr(content, "to_json"):
        text = content.to_json().rstrip("\n")
    else:
        from palaver.schema.run import plain  # `palaver --help` needs no schema

        text = json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # question marks would be another text
        text = json.dumps(json.loads(text), indent=1)
    typer.echo(text)


def write_results(
    result: Any, folder: Path, render: Callable[[Any], str], *, to_stderr: bool = False
) -> None:
    """Write results.json and report.html, and say where the report is."""
    from palaver.files import write_atomically  # `palaver --help` needs no files
    from palaver.reports.page import write_page

    with write_atomically(folder / "results.json") as file:
        file.write(result.to_json())
    typer.echo(f"report: {write_page(render(result), folder / 'report.html')}", err=to_stderr)


def tell_changes(
    changes: Sequence[str], refusals: Sequence[str], *, dry_run: bool, incomparable: str
) -> None:
    """What an amendment would change; with `dry_run`, also what would be refused. Nothing is done."""
    for change in changes:
        typer.echo(f"  {change}")
    if refusals and dry_run:
        raise UserError(f"some of it would make {incomparable} incomparable", problems=refusals)
    if dry_run:
        typer.echo("nothing was changed (--dry-run)")
