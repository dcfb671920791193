"""`palaver study reset`: begin a study anew, after a pilot for example."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.study_database import ServedStudy, database_url, open_study, sqlite_file
from palaver.errors import UserError, count_of
from palaver.server.oversight import status
from palaver.server.reset import check_resettable, reset_study
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study


def reset(
    study: ServedStudy,
    database: options.Database = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for the study's name.")] = False,
) -> None:
    """Begin a study anew: a backup, then raters and answers are gone.

    The backup lies beside the database. The study is the file as it is now, or the newest version where a
    database is named. Named admins stay; everybody who was in has to come in again. Refused while a
    server runs.

    Example: palaver study reset study.toml
    """
    with open_study(database or study) as served:
        check_resettable(served)
        state = StudyState(served)
        design, source = state.study, state.source
        if study.endswith(".toml"):
            design, source = load_study(study), Path(study).read_text(encoding="utf-8")
        now = status(served)
        backup = _beside(database or study)
        what = f"{count_of(now.answers, 'answer')} of {count_of(now.raters, 'rater')}"
        if not yes:
            _ask(state.study.name, what, backup)
        reset_study(served, design, source, backup, Path(study).parent)
    typer.echo(f"saved {what} in {backup}")
    typer.echo(f"{design.title or design.name} begins anew; to put the old state back:")
    typer.echo(f"palaver study restore {backup} --database {backup.stem}.db")


def _beside(named: str) -> Path:
    """A name with the time, beside the database; here, if it is a server's."""
    file = sqlite_file(database_url(named) or "")
    moment = time.strftime("%Y-%m-%d-%H%M%S")
    if file is None:
        return Path(f"study-before-reset-{moment}.gz")
    return file.with_name(f"{file.stem}-before-reset-{moment}.gz")


def _ask(name: str, what: str, backup: Path) -> None:
    typer.echo(f"{what} will be taken out of {name}; a backup goes to {backup}.")
    try:
        typed = typer.prompt("Type the study's name to go on", default="", show_default=False)
    except typer.Abort:
        typed = ""
    if typed.strip() != name:
        raise UserError(f"that is not its name, {name!r}: nothing was changed", "or say --yes")
