"""`palaver study amend`: change a study while people answer it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from palaver.cli import options
from palaver.cli.messages import tell_changes
from palaver.cli.study_database import open_study
from palaver.server.study_state import StudyState
from palaver.studies.amendment import compare_studies
from palaver.studies.design import load_study


def amend(
    file: Annotated[Path, typer.Argument(help="The study file, changed.")],
    database: options.Database = None,
    dry_run: options.DryRun = False,
) -> None:
    """Take changes of the study file over into a study that is being served.

    Texts, more items, more raters per item, longer leases: servers that run show them from the next page on.
    Every answer keeps the number of the version it was given under. What would make answers incomparable,
    such as another scale, is refused with the reason.

    Example: palaver study amend study.toml --dry-run
    """
    study = load_study(file)
    with open_study(database or str(file)) as served:
        state = StudyState(served)
        amendment = compare_studies(state.study, study)
        if not amendment.changes and not amendment.refusals:
            typer.echo(f"nothing has changed: {file} is version {state.version}, which is being served")
            return
        tell_changes(amendment.changes, amendment.refusals, dry_run=dry_run, incomparable="answers")
        if dry_run:
            return
        state.amend(study, file.read_text(encoding="utf-8"), folder=file.parent)
        typer.echo(f"{study.title or study.name} is now version {state.version}")
