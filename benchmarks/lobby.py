"""Simulated crowds in the waiting room: ghosts that are paired, and conversations that stay incomplete.

    python -m benchmarks.lobby --out docs/results/lobby.json

Ends with 1 if a ghost was paired, or if more than 20 % of the conversations stayed incomplete although a bot
could take over.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.harness import machine
from palaver.collection.rules import Rules
from palaver.collection.simulation import Crowd, simulate

MOST_INCOMPLETE = 0.2
CASES = {
    "busy: somebody comes every 6 s": (Rules(substitute="bot"), 6.0),
    "quiet: somebody comes every minute": (Rules(substitute="bot"), 60.0),
    "busy, no bot": (Rules(), 6.0),
    "quiet, no bot": (Rules(), 60.0),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--arrivals", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    cases = []
    is_good = True
    for name, (rules, seconds_between) in CASES.items():
        began = time.perf_counter()
        crowd = Crowd(n=asked.arrivals, seconds_between=seconds_between)
        outcome = simulate(rules, crowd, asked.seed)
        naive = outcome.interrupted / max(1, outcome.conversations)
        case = {
            "case": name,
            "crowd": asdict(crowd),
            **asdict(outcome),
            "share_incomplete": round(outcome.share_incomplete, 4),
            "share_incomplete_if_nobody_took_over": round(naive, 4),
            "seconds": round(time.perf_counter() - began, 1),
        }
        cases.append(case)
        print(
            f"{name:<36} {outcome.conversations:>6,} conversations, {outcome.share_incomplete:6.1%} "
            f"incomplete ({naive:.0%} without takeover), ghosts paired {outcome.ghosts_paired} "
            f"(invited {outcome.ghosts_invited:,}), unexplained {outcome.unexplained}",
            flush=True,
        )
        is_good &= outcome.ghosts_paired == 0 and outcome.unexplained == 0
        is_good &= rules.substitute is None or outcome.share_incomplete <= MOST_INCOMPLETE
    result = {
        "command": "python -m benchmarks.lobby " + " ".join(sys.argv[1:]),
        "machine": machine(),
        "seed": asked.seed,
        "arrivals": asked.arrivals,
        "cases": cases,
    }
    if asked.out is not None:
        asked.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
