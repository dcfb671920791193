"""`palaver study amend`: says what changes, changes it, and refuses what cannot be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from palaver.cli.main import app
from palaver.errors import UserError
from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.study_state import StudyState
from palaver.studies.design import load_study, preset_text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A study file that is being served."""
    path = tmp_path / "study.toml"
    path.write_text(preset_text("likert"), encoding="utf-8")
    database = Database(f"sqlite:///{tmp_path / 'study.db'}")
    migrate(database)
    StudyState.create(database, load_study(path), path.read_text(encoding="utf-8"))
    database.close()
    return path


def amend(file: Path, *words: str) -> str:
    result = CliRunner().invoke(app, ["study", "amend", str(file), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_a_change_is_shown_and_made(file: Path) -> None:
    assert "nothing has changed" in amend(file)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("raters_per_item = 3", "raters_per_item = 5"), encoding="utf-8")
    rehearsal = amend(file, "--dry-run")
    assert "raters_per_item: 3 becomes 5" in rehearsal
    assert "nothing was changed" in rehearsal
    assert "is now version 2" in amend(file)
    assert "version 2, which is being served" in amend(file)


def test_another_scale_is_refused(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("high = 6", "high = 7"), encoding="utf-8")
    for words in (("--dry-run",), ()):
        with pytest.raises(UserError, match="incomparable") as caught:
            amend(file, *words)
        assert "informativeness: another scale" in caught.value.problems[0]


def test_a_study_that_was_never_served(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(preset_text("likert"), encoding="utf-8")
    with pytest.raises(UserError, match="there is no database"):
        amend(path)
