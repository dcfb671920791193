"""`palaver trust`: from rating files to what they are worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Palaver = Callable[..., Any]


def test_intervals_in_words_in_json_and_in_a_file(palaver: Palaver, ratings: Path, tmp_path: Path) -> None:
    out = tmp_path / "intervals.json"
    ran = palaver("trust", "interval", ratings, "--out", out)
    assert ran.code == 0, ran.err
    assert "quality: alpha against beta:" in ran.out
    content = json.loads(out.read_text())
    assert json.loads(palaver("trust", "interval", ratings, "--json").out) == content
    assert {row["against"] for row in content["rows"]} == {"", "beta", "gamma"}
    again = palaver("trust", "interval", ratings, "--out", out)
    assert (again.code, "is there already" in again.err) == (1, True)
