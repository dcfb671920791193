"""`palaver study admin`: naming people who run a study."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from palaver.server.database import Database
from palaver.server.migrations import migrate
from palaver.server.oversight import note_address
from palaver.server.study_state import StudyState
from palaver.studies.design import preset_study, preset_text


def test_add_list_link_and_remove(palaver: Callable[..., Any], tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'study.db'}")
    migrate(database)
    StudyState.create(database, preset_study("likert"), preset_text("likert"))
    assert palaver("study", "admin", "add", "study.db", "Ana").code == 2  # where is it served?
    note_address(database, "https://lab.example.org")
    database.close()
    added = palaver("study", "admin", "add", "study.db", "Ana", "--role", "viewer")
    assert added.out.startswith("https://lab.example.org/admin/login?token=")
    assert palaver("study", "admin", "add", "study.db", "Ana").code == 1
    assert palaver("study", "admin", "add", "study.db").code == 2
    assert palaver("study", "admin", "link", "study.db", "Ana").out != added.out
    [row] = json.loads(palaver("study", "admin", "list", "study.db", "--json").out)
    assert (row["name"], row["role"]) == ("Ana", "viewer")
    assert "did you mean 'Ana'" in palaver("study", "admin", "remove", "study.db", "An").err
    assert palaver("study", "admin", "remove", "study.db", "Ana").code == 0
    none = palaver("study", "export", "study.db", "--decisions", "--out", "decisions.jsonl")
    assert (none.code, "no decision stands" in none.err) == (1, True)
