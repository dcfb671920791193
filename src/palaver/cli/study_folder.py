"""Several studies to serve at once: their files, or the folder they are in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from palaver.cli.serving import named_database
from palaver.cli.study_database import url_beside
from palaver.errors import UsageError, UserError
from palaver.schema import Study
from palaver.server.overview import check_paths, path_of
from palaver.server.settings import Settings
from palaver.studies.design import load_study

NAME = "{name}"
"""What `--database` holds in the place of a study's name."""


def settings_of_several(
    settings: Settings, named: Sequence[Path], database: str | None
) -> list[tuple[Settings, Study]]:
    """How each study is served, and the study. Nothing is served if one of them is wrong."""
    if database is not None and NAME not in database:
        raise UsageError(
            "--database: each of several studies needs a database of its own",
            f"put {NAME} in the place of the study's name: postgresql+psycopg://lab@/study_{NAME}",
        )
    files = study_files(named)
    studies, problems = {}, []
    for file in files:
        try:
            studies[file] = load_study(file)
        except UserError as error:
            problems += [error.message, *(f"  {problem}" for problem in error.problems)]
    if problems:
        n_wrong = len(files) - len(studies)
        raise UserError(
            f"{n_wrong} of {len(files)} studies cannot be served, so none is", "mend them first", problems
        )
    served = []
    for file, study in studies.items():
        path = path_of(study, file)
        url = url_beside(file) if database is None else named_database(database.replace(NAME, path[1:]))
        values = {"study_file": file, "study_path": path, "database": url}
        served.append((settings.model_copy(update=values), study))
    check_paths([settings for settings, _ in served])
    return served


def study_files(named: Iterable[Path]) -> list[Path]:
    """The study files: those that are named, and all TOML files of a folder."""
    files: list[Path] = []
    for path in named:
        if not path.is_dir():
            files.append(path.resolve())
            continue
        inside = sorted(file.resolve() for file in path.glob("*.toml"))
        if not inside:
            raise UserError(f"there is no study file in {path}", "studies are files that end in .toml")
        files += inside
    return list(dict.fromkeys(files))
