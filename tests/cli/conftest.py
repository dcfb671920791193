"""Files that the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """A small file in the long format: three systems, two raters."""
    lines = ["item,system,rater,criterion,value,seconds"]
    for i in range(8):
        for s, system in enumerate(("alpha", "beta", "gamma")):
            for r in range(3):
                value = 1 + (i * 5 + s * 2 + r * (i % 3)) % 6
                lines.append(f"item {i},{system},rater {r},quality,{value},{4 + (i + r) % 5}")
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path
