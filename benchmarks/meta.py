"""`palaver.judges.meta` on 20 systems x 1,000 items x 50 judges, and its tie search beside mt-metrics-eval's.

    python -m benchmarks.meta [--out docs/results/meta-speed.json] [--peer FOLDER]

One criterion rated by three people on whole numbers, fifty judges of growing noise. Timed: all correlations,
tie calibration and intervals, without the tests between judges. The tie search is timed beside
`tau_optimization` of mt-metrics-eval (Apache-2.0), of which PyPI has an empty package only: `--peer` names a
checkout of its repository. Both must find the same threshold and accuracy. Ends with 1 if a target was
missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import numpy as np

from benchmarks.harness import Table, best_of, machine
from palaver.judges.meta_measures import measure
from palaver.judges.meta_scores import PeopleScores
from palaver.statistics.pairs import search_tie

N_ITEMS, N_SYSTEMS, N_JUDGES, N_RATERS = 1000, 20, 50, 3
LIMIT, TARGET = 1.0, 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--peer", type=Path, help="a checkout of google-research/mt-metrics-eval")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(N_ITEMS, N_SYSTEMS)) + rng.normal(size=N_SYSTEMS)
    ratings = np.clip(np.rint(quality[None] + rng.normal(size=(N_RATERS, N_ITEMS, N_SYSTEMS)) + 3), 1, 5)
    noise = np.linspace(0.5, 5, N_JUDGES)[:, None, None]
    judges = quality + noise * rng.normal(size=(N_JUDGES, N_ITEMS, N_SYSTEMS))
    rater, item, system = np.nonzero(np.ones_like(ratings))
    people = PeopleScores("quality", item, system, rater, ratings.ravel(), "ordinal")
    table = Table()
    print(f"{machine()}; {N_SYSTEMS} systems x {N_ITEMS:,} items x {N_JUDGES} judges")
    shape = (N_ITEMS, N_SYSTEMS)
    ours, _ = best_of(lambda: measure(people, judges, shape, confidence=0.95, seed=0), 3)
    table("correlations, tie calibration, intervals of one criterion", ours=ours, limit=LIMIT)
    results = {"seconds_a_criterion": ours}
    if options.peer is not None:
        sys.path.insert(0, str(options.peer))
        from mt_metrics_eval.tau_optimization import TauSufficientStats, tau_optimization

        h = ratings.mean(axis=0)
        begin = time.perf_counter()
        theirs = tau_optimization(judges[0], h, TauSufficientStats.acc_23)
        peer = time.perf_counter() - begin
        threshold, accuracy = search_tie(h, judges[0])
        if abs(accuracy - theirs.best_tau) > 1e-9 or abs(threshold - theirs.best_threshold) > 1e-9:
            print(f"another optimum: {threshold, accuracy} and {theirs.best_threshold, theirs.best_tau}")
            return 1
        search, _ = best_of(lambda: search_tie(h, judges[0]), 5)
        table("tie search of one judge", peer=peer, ours=search, target=TARGET)
        results |= {"tie_search": search, "tie_search_of_mt_metrics_eval": peer}
    if options.out is not None:
        record = {
            "command": "python -m benchmarks.meta",
            "date": datetime.now(UTC).date().isoformat(),
            "hardware": machine(),
            "seed": 0,
            "systems": N_SYSTEMS, "items": N_ITEMS, "judges": N_JUDGES, "raters": N_RATERS,
            **results,
        }  # fmt: skip
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if table.missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
