"""What scripts of this folder share: their options, the head of a results file, the tiers of bots."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
TIERS = (("D", "D_p", "E", "E_p"), ("A", "A_p", "B", "B_p", "C", "C_p"))
"""The bots of Reliable-Eval that are of like quality."""
GAP = 1.5
"""Ratings of ConvAI2, 1 to 5, that lie further apart than this make a pair."""


def parser_of(about: str | None) -> argparse.ArgumentParser:
    """`--data`, `--work` and `--out`; `about` is the script's own description."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data", "--work", "--out"):
        parser.add_argument(name, type=Path, required=True)
    return parser


def head_of(script: str, results: str, *, seed: Any) -> dict[str, Any]:
    """How a results file came to be: the command, when, where, from which seed."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from benchmarks.harness import machine

    return {
        "command": f"python experiments/comparator/{Path(script).name} --data DATA --work WORK "
        f"--out docs/results/{results}",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "seed": seed,
    }


def held_out(work: Path, ids: Sequence[str]) -> tuple[Any, Any]:
    """(N,) the scores of these ratings by models that have not seen their raters, and what each weighs.

    ship.py keeps them in WORK.
    """
    with (work / "held_out.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert [row["id"] for row in rows] == list(ids)
    return np.array([row["score"] for row in rows]), np.array([row["weight"] for row in rows])
