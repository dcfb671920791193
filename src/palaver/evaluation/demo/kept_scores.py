"""What the comparator said about the kept replies, as a judge."""

from __future__ import annotations

import json
from pathlib import Path

from palaver.schema import Response

SCORES: dict[str, dict[str, float]] = json.loads(
    Path(__file__).with_name("kept-scores.json").read_text(encoding="utf-8")
)


def comparator(response: Response) -> float | None:
    return SCORES.get(response.system, {}).get(response.id)
