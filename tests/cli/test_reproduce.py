"""`palaver reproduce rankme`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from palaver.reproduce import rankme

Palaver = Callable[..., Any]


def test_a_folder_without_the_release(palaver: Palaver) -> None:
    for folder in (".", "nowhere"):
        ran = palaver("reproduce", "rankme", "--data", folder)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.count("no file stp") == 12
        assert "github.com/jeknov/RankME" in ran.err


@pytest.mark.parametrize("words", [["--replicates", 0], ["--seed", -1], ["--seed", "x"]])
def test_wrong_options(words: list[Any], palaver: Palaver) -> None:
    assert palaver("reproduce", "rankme", "--data", ".", *words).code == 2


def test_the_tables_and_exit_0(palaver: Palaver, shared_data: Path) -> None:
    """Also when the folder of all corpora is named."""
    ran = palaver("reproduce", "rankme", "--data", shared_data, "--replicates", 1000)
    assert ran.code == 0
    for word in ("Table 2", "Table 3", "Table 4", "differs: RankME quality", "χ²", "ICC(1,k)", "run "):
        assert word in ran.out
    assert "LOST" not in ran.out


def test_all_cells_as_json(palaver: Palaver, shared_data: Path) -> None:
    ran = palaver("reproduce", "rankme", "--data", shared_data, "--replicates", 200, "--json")
    cells = json.loads(ran.out)["cells"]
    assert (ran.code, len(cells)) == (0, 50)
    [quality] = [
        c for c in cells if c["row"] == "RankME quality" and c.get("column") == "Setup 2" and c["why"]
    ]
    assert (quality["paper"], quality["matches"]) == (0.68, False)
    assert ["Slug2Slug", "TGen"] in next(
        c for c in cells if c["row"] == "Likert quality" and "column" not in c
    )["paper"]


def test_exit_1_when_a_known_cell_is_lost(
    palaver: Palaver, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(rankme.FIGURES["table_3"]["Likert"], "quality", ((0.02, False), (0.91, True)))
    ran = palaver("reproduce", "rankme", "--data", shared_data / "rankme", "--replicates", 100)
    assert ran.code == 1
    assert "LOST: Table 3: Likert quality, Setup 2 matched before" in " ".join(ran.out.split())
    assert ran.out.count("LOST") == 1
