"""Figures of selectors are written anew without losing what bounds them all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "experiments/topical_chat"


def test_limits_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import selector  # type: ignore[import-not-found]

    path = tmp_path / "knowledge.json"
    selector.write_results(path, {"splits": 1})
    assert json.loads(path.read_text()) == {"splits": 1}
    path.write_text(json.dumps({"splits": 1, "card": 2, "limits": 3}))
    selector.write_results(path, {"splits": 4})
    assert json.loads(path.read_text()) == {"splits": 4, "limits": 3}
    sys.modules.pop("selector")
