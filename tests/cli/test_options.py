"""What shared options have in common: pairs, choices, existing files, folders of corpora."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.cli.options import claim_folder, corpora_folder, parse_columns, refuse_existing
from palaver.errors import UsageError, UserError


def test_columns() -> None:
    assert parse_columns(["rater=worker", "value=a=b"]) == {"rater": "worker", "value": "a=b"}
    assert parse_columns(None) == {}
    for wrong in ("rater", "=x", "x=", "="):
        with pytest.raises(UsageError, match="--column: expected FIELD=NAME"):
            parse_columns([wrong])


def test_what_exists_is_refused(tmp_path: Path) -> None:
    refuse_existing(None, False)
    refuse_existing(tmp_path / "new.csv", False)
    folder = tmp_path / "folder"
    folder.mkdir()
    refuse_existing(folder, False)  # there is nothing in it to lose
    (folder / "mine.txt").write_text("mine")
    for path in (folder, folder / "mine.txt"):
        with pytest.raises(UserError, match="is there already") as caught:
            refuse_existing(path, False)
        assert "--force" in caught.value.hint
        refuse_existing(path, True)


def test_a_folder_is_claimed_and_not_made(tmp_path: Path) -> None:
    """What fails later leaves nothing behind."""
    claim_folder(tmp_path / "new", False)
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    claim_folder(tmp_path / "old", False)
    assert (tmp_path / "old").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UserError):
        claim_folder(tmp_path / "file", True)


def test_the_folder_of_a_corpus_or_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rankme").mkdir()
    assert corpora_folder(tmp_path, "rankme") == tmp_path / "rankme"
    assert corpora_folder(tmp_path / "rankme", "rankme") == tmp_path / "rankme"
    monkeypatch.setenv("PALAVER_DATA", str(tmp_path))
    assert corpora_folder(None, "rankme") == tmp_path / "rankme"


def test_a_wrong_engine_is_a_mistake_of_the_command_line(palaver: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("hello\n")
    words = (
        "generate",
        "--system",
        "default",
        "--contexts",
        tmp_path / "q.txt",
        "--out",
        tmp_path / "o.jsonl",
    )
    ran = palaver(*words, "--engine", "procesess:2")
    assert ran.code == 2
    assert "--engine: there is no engine 'procesess' (did you mean 'processes'?)" in ran.err
    assert not (tmp_path / "o.jsonl").exists()
