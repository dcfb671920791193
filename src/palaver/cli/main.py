"""`palaver`: one command, a noun, a verb. Heavy imports wait until a verb runs."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import typer

from palaver import __version__
from palaver.cli import (
    analyse,
    chat,
    compare,
    compare_tool,
    corpus,
    distinguish,
    generate,
    knowledge,
    personality,
    probe,
    reproduce,
    serve,
    study,
    train,
)

if TYPE_CHECKING:
    from palaver.errors import UserError

app = typer.Typer(
    help="Which conversation is better, and how far can you trust that answer?",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_ADDED = (analyse, serve, distinguish, compare_tool)  # their import adds verbs to those of other nouns
app.add_typer(study.app, name="study")
app.command()(chat.chat)
app.command()(generate.generate)
app.add_typer(compare.app, name="compare")
app.add_typer(corpus.app, name="corpus")
app.add_typer(knowledge.app, name="knowledge")
app.add_typer(personality.app, name="personality")
app.add_typer(probe.app, name="probe")
app.add_typer(train.app, name="train")
app.add_typer(reproduce.app, name="reproduce")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"palaver {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Which conversation is better, and how far can you trust that answer?"""


def run() -> None:
    """The console script: user errors become one clear message and exit code 1."""
    from palaver.errors import UserError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without “–” or “≠” shows ? in their place
    try:
        app()
    except UserError as error:
        show_error(error)
        sys.exit(1)
    except MemoryError as error:
        show_error(UserError(f"not enough memory: {error}" if str(error) else "not enough memory"))
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away (… | head)
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # such as a full disk behind our output
        show_error(UserError(str(error)))
        sys.exit(1)


def show_error(error: UserError) -> None:
    """`error: …`, every problem on its own line, then what to do."""
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    typer.echo(error.message, err=True)
    for problem in error.problems:
        typer.echo(f"  - {problem}", err=True)
    if error.hint:
        typer.secho("hint: ", fg="cyan", nl=False, err=True)
        typer.echo(error.hint, err=True)
