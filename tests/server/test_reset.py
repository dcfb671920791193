"""A study begun anew, on both databases; and the mark of a server that runs."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import sham

from palaver.errors import UserError
from palaver.schema import Study
from palaver.server.backup import restore
from palaver.server.database import Database
from palaver.server.oversight import note_address, served_address, status
from palaver.server.reset import reset_study
from palaver.server.serving_mark import ServingMark
from palaver.server.study_state import StudyState


def test_a_backup_then_a_new_beginning(
    database: Database, make_study: Callable[..., Study], tmp_path: Path
) -> None:
    first = make_study(n_items=2)
    before = StudyState.create(database, first, "as it was")
    note_address(database, "https://lab.example.org")
    sham.work(before, sham.come_in(before), random.Random(1))
    n_answers = status(database).answers
    changed = make_study(n_items=3, criteria=("quality", "wit"))  # what no amendment could do
    done = reset_study(database, changed, "as it is", tmp_path / "saved.gz")
    assert (done.saved.rows["answer"], n_answers) == (n_answers, 4)
    after = StudyState(database)
    assert (after.study, after.source, after.version) == (changed, "as it is", 1)
    assert after.secret != before.secret
    assert served_address(database) == "https://lab.example.org"
    now = status(database)
    assert (now.answers, now.raters, now.done, now.target) == (0, 0, 0, 6)
    sham.work(after, sham.come_in(after), random.Random(2))
    assert status(database).answers == 12
    old = Database(f"sqlite:///{tmp_path / 'old.db'}")
    assert restore(tmp_path / "saved.gz", old).rows["answer"] == n_answers
    old.close()


def test_not_while_a_server_runs(
    database: Database, make_study: Callable[..., Study], tmp_path: Path
) -> None:
    study = make_study()
    StudyState.create(database, study, "")
    marks = [ServingMark(database), ServingMark(database)]  # of two processes
    for mark in marks:
        with pytest.raises(UserError, match="is being served: nothing was changed"):
            reset_study(database, study, "", tmp_path / "saved.gz")
        mark.close()
    assert not (tmp_path / "saved.gz").exists()
    reset_study(database, study, "", tmp_path / "saved.gz")
