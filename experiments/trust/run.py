"""Write docs/results/trust.json: every grid of grids.py, with the command, the seed and the versions.

Example: python experiments/trust/run.py --studies 2000 --seed 0 --only intervals
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import arena_grid
import grids
import sampling_grids

SIMULATED = "simulated, as the files in experiments/trust say"
OUT = Path(__file__).parents[2] / "docs/results/trust.json"

RANKME = Path(__file__).parents[3] / "shared/data/rankme"


def rankme_rows(n_studies: int, seed: int) -> Iterator[grids.Row]:
    """The released RankME ratings: how much longer honest intervals of differences are, and why."""
    from palaver import read_ratings
    from palaver.studies.trust import trust_interval

    for path in sorted(RANKME.glob("*.zip")):
        report = trust_interval(read_ratings(path))
        for criterion in dict.fromkeys(row.criterion for row in report.rows):
            rows = [row for row in report.rows if row.criterion == criterion and row.against]
            yield {
                "file": path.name,
                "criterion": criterion,
                "pairs": len(rows),
                "times_as_long": [row.se / row.se_rows for row in rows],
                "rater_share": [row.rater_share for row in rows],
                "n_raters": rows[0].n_raters,
                "n_dialogues": rows[0].n_dialogues,
            }


GRIDS: dict[str, Callable[[int, int], Iterator[grids.Row]]] = {
    "intervals": grids.interval_grid,
    "ppi": grids.ppi_grid,
    "strengths": grids.strength_grid,
    "alternative": grids.alternative_grid,
    "sequences": grids.sequence_grid,
    "sampling": sampling_grids.sampling_grid,
    "sampled_strengths": sampling_grids.sampled_strength_grid,
    "sampled_sequences": sampling_grids.sampled_sequence_grid,
    "arena": arena_grid.arena_grid,
    "rankme": rankme_rows,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=GRIDS, action="append")
    chosen = parser.parse_args()
    content = json.loads(OUT.read_text()) if OUT.exists() else {}
    for name in chosen.only or GRIDS:
        began = time.perf_counter()
        rows = list(GRIDS[name](chosen.studies, chosen.seed))
        content[name] = {
            "command": f"python experiments/trust/run.py --studies {chosen.studies} --seed {chosen.seed} "
            f"--only {name}",
            "seed": chosen.seed,
            "data": "the RankME release (CC BY-SA 4.0)" if name == "rankme" else SIMULATED,
            "hardware": f"{os.cpu_count()} CPU cores, {platform.machine()}",
            "versions": {package: version(package) for package in ("numpy", "scipy")},
            "seconds": round(time.perf_counter() - began, 1),
            "rows": rows,
        }
        OUT.write_text(json.dumps(dict(sorted(content.items())), indent=1) + "\n")
        print(f"{name}: {len(rows)} rows in {content[name]['seconds']} s")


if __name__ == "__main__":
    main()
