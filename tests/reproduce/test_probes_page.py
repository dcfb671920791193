"""The page on probes says what its results files say, and these hold no sentences."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from palaver.probes.recipe import SETS
from palaver.reproduce.probes import ENCODERS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("probe_tables", ROOT / "experiments/probes/tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["probe_tables"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_results_make(tables: ModuleType) -> None:
    page = tables.PAGE.read_text(encoding="utf-8")
    made = tables.fill(page, tables.read_scores(tables.RESULTS), tables.read_scores(tables.POWERS))
    assert page == made, "run: python experiments/probes/tables.py"
    changed = json.loads(tables.RESULTS.read_text(encoding="utf-8"))
    changed["scores"][0]["share"]["right"] -= 1
    assert tables.fill(page, tables.Scores(changed), tables.read_scores(tables.POWERS)) != page


def test_the_results_are_whole_and_hold_no_sentences(tables: ModuleType) -> None:
    for path in (tables.RESULTS, tables.POWERS):
        result = json.loads(path.read_text(encoding="utf-8"))
        assert result["run"]["command"] == "probe"
        assert result["run"]["seed"] == 0
        assert result["run"]["data"]
        assert result["machine"]
        assert set(result["n_triplets"]) == set(SETS)
        for score in result["scores"]:
            assert all(set(failure) == {"id", "cosines"} for failure in score["failures"])
            assert [v for v in score["variants"] if v["name"] == "case"]
    rows = json.loads(tables.RESULTS.read_text(encoding="utf-8"))["encoders"]
    assert set(ENCODERS) <= {row["name"] for row in rows}
    assert len(rows) >= 10
    assert all(row["provenance"] for row in rows)


def test_results_are_kept_without_sentences(tables: ModuleType, tmp_path: Path) -> None:
    failure = {"id": "a", "original": "secret", "plus": "b", "star": "c", "cosines": [1, 2, 3], "margin": 0}
    result = {"scores": [{"failures": [failure]}], "seconds": 0.123456789, "notes": []}
    (tmp_path / "in.json").write_text(json.dumps(result))
    tables.keep(tmp_path / "in.json", tmp_path / "out.json")
    kept = json.loads((tmp_path / "out.json").read_text())
    assert kept["scores"] == [{"failures": [{"id": "a", "cosines": [1, 2, 3]}]}]
    assert kept["seconds"] == 0.123457
    assert kept["machine"]
