"""`palaver study compare-agreement`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Palaver = Callable[..., Any]

pytestmark = pytest.mark.filterwarnings("error")


def test_two_files_become_a_table_and_json(palaver: Palaver, ratings: Path) -> None:
    ran = palaver("study", "compare-agreement", ratings, ratings, "--replicates", 50)
    assert ran.code == 0
    for word in ("A − B", "ICC(2,k)", "p (Holm)", "raters are taken as given", "seed 0"):
        assert word in ran.out
    found = json.loads(
        palaver("study", "compare-agreement", ratings, ratings, "--replicates", 50, "--json").out
    )
    assert {row["difference"] for row in found["differences"]} == {0.0}
    assert found["run"]["config"]["replicates"] == 50


def test_the_paper_s_files(palaver: Palaver, shared_data: Path) -> None:
    """RankME against Likert, naturalness asked alone: ICC .42 and .12."""
    a, b = (shared_data / "rankme" / f"stp2_{name}_nat.zip" for name in ("rankME", "likert"))
    options = (
        "--column",
        "item=mr",
        "--normalise",
        "log",
        "--normalise-b",
        "raw",
        "--replicates",
        200,
        "--json",
    )
    found = json.loads(palaver("study", "compare-agreement", a, b, *options).out)
    row = found["differences"][1]
    assert [round(row["a"], 2), round(row["b"], 2)] == [0.42, 0.12]
    assert (row["scores_a"], row["scores_b"]) == ("log", "raw")


def test_mistakes(palaver: Palaver, ratings: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("item,system,rater,criterion,value\n1,a,r,speed,3\n2,a,r,speed,4\n", encoding="utf-8")
    ran = palaver("study", "compare-agreement", ratings, other)
    assert ran.code == 1
    assert "other.csv has speed" in ran.err
    ran = palaver("study", "compare-agreement", ratings, ratings, "--normalise-b", "lg")
    assert ran.code == 2
    assert "--normalise-b" in ran.err
