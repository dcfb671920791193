"""The experiments in examples/ run, and say what they are there to show."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from palaver.evaluation.run import Options, run_experiment

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ANSWERS = {
    "evaluate-logs": "careful is better than terse, unigram_f1 says; both other judges agree.",
    "evaluate-functions": "mirror is better than yes, asks_back says",
    "evaluate-people": "careful is better than terse, 3 people say (quality); both judges agree.",
    "evaluate-simulated": "careful is better than terse, 10 simulated people say (preference)",
    "evaluate-shipped": "",
}


def test_there_is_no_other_example() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("evaluate-*/experiment.toml")} == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bots", raising=False)  # other tests have modules of that name, too
    monkeypatch.setattr(sys, "path", [*sys.path])
    if name == "evaluate-shipped":
        pytest.importorskip("torch")
    result = run_experiment(
        EXAMPLES / name / "experiment.toml", tmp_path / "out", options=Options(form="json")
    )
    assert result.answer.startswith(ANSWERS[name])
    assert result.errors == ()
    assert all(row.n_replies for row in result.systems)
    assert result.examples
    shutil.rmtree(tmp_path / "out")
