"""The sheet for a judge of everyday replies: no names on it, and verdicts find their way back."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "experiments/responders"


@pytest.fixture(scope="module")
def judging() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    import everyday_judging  # type: ignore[import-not-found]

    yield everyday_judging
    sys.path.remove(str(FOLDER))


def conversations() -> list[dict[str, Any]]:
    return [
        {
            "part": "p",
            "lines": ["Hi!", "Fine."][: 1 + number % 2],
            "replies": {
                "everyday": ["good", "good"][: 1 + number % 2],
                "default-chat": ["good" if number == 0 else "bad", "bad"][: 1 + number % 2],
                "general replies only": ["bad", "bad"][: 1 + number % 2],
            },
        }
        for number in range(6)
    ]


def test_verdicts_come_back_to_their_systems(judging: ModuleType, tmp_path: Path) -> None:
    sheet, key = tmp_path / "sheet.csv", tmp_path / "key.json"
    judging.write_sheet(conversations(), sheet, key)
    text = sheet.read_text(encoding="utf-8")
    assert not any(name in text for name in conversations()[0]["replies"])
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 2 + 2 + 2 + 3 * 2 * 2  # what two systems said alike is judged once
    with pytest.raises(SystemExit, match="line 2: expected yes or no, found ''"):
        judging.read_verdicts(sheet)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, judging.COLUMNS)
        writer.writeheader()
        writer.writerows(row | {"accepted": "yes" if row["reply"] == "good" else "No "} for row in rows)
    content = judging.results(json.loads(key.read_text("utf-8")), judging.read_verdicts(sheet), "a test")
    counts = content["accepted"]["p"]
    assert (counts["everyday"]["first"], counts["everyday"]["all"]) == (6, 9)
    assert (counts["default-chat"]["first"], counts["default-chat"]["all"]) == (1, 1)
    assert (counts["general replies only"]["first"], counts["general replies only"]["n_all"]) == (0, 9)
    assert counts["everyday"]["p"] == pytest.approx(2 / 2**5)
    assert "| p | everyday | 6 of 6 | 9 of 9 | 0.06 |" in judging.section(content)
