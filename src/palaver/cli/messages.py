"""What the command line says when something is wrong."""

from __future__ import annotations

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
