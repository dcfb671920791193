"""`palaver init`: three questions, and an experiment file to go on with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import completion, options
from palaver.errors import UsageError
from palaver.files import write_atomically

_DEFAULT = Path("experiment.toml")


def init(
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="A file of replies, an address, MODULE:FUNCTION, or a name such as default; repeat it.",
            autocompletion=completion.systems,
        ),
    ] = None,
    contexts: options.OptionalContexts = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", help="Who judges, as in palaver judge; repeat it.", autocompletion=completion.judges
        ),
    ] = None,
    people: Annotated[
        str | None, typer.Option("--people", help="A rating file, study (write one to serve), or simulate.")
    ] = None,
    out: options.OptionalOut = None,
    force: options.Force = False,
) -> None:
    """Write an experiment file: asks three questions, or takes options.

    Where are your systems' replies or addresses, what do they answer, who judges? Without a terminal the
    options must say it. `palaver evaluate` runs the file.

    Example: palaver init --system bots:old --system bots:new --contexts questions.txt --by comparator
    """
    from palaver.evaluation.draft import NO_MODEL, Answers, draft_experiment, responses_in, usual_judges
    from palaver.evaluation.experiment import load_experiment

    target = out or _DEFAULT
    options.refuse_existing(target, force)
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if not system:
        system = _ask(
            asks, "--system", "Your systems: files of replies, addresses, module:function, names (a, b)?"
        )
    usual = next((name for name in system if responses_in(name) is not None), None)
    if contexts is None:
        if asks:
            contexts = typer.prompt("What do they answer: a file of contexts, or a corpus?", default=usual)
        elif usual is None:
            raise UsageError("--contexts is missing", "name the file of what the systems answer")
        else:
            contexts = usual  # the contexts of the replies themselves
    assert contexts is not None
    if not by and people is None and asks:
        proposal = ",".join(usual_judges(system, contexts))
        by = _words(
            typer.prompt("Who judges (palaver judge --list; people: a rating file)?", default=proposal)
        )
        files = [name for name in by if Path(name).is_file()]
        people = files[0] if files else None
        by = [name for name in by if name not in files]
    elif not by and people is None:
        by = usual_judges(system, contexts)
    answers = Answers(systems=system, contexts=contexts, judges=by or [], people=people)
    text = draft_experiment(answers, target.parent)
    with write_atomically(target) as file:
        file.write(text)
    load_experiment(target)  # says what is still wrong, with lines
    typer.echo(f"wrote {target}")
    first = f"put the models' names for {NO_MODEL} into it, then: " if f'"{NO_MODEL}"' in text else ""
    typer.echo(f"next: {first}palaver evaluate {target}")


def _ask(asks: bool, option: str, question: str) -> list[str]:
    if not asks:
        raise UsageError(f"{option} is missing", "palaver init --help shows what it takes")
    return _words(typer.prompt(question))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
