"""What other shapes of the comparator's language model reach: docs/results/comparator-shapes.json.

    python experiments/comparator/shapes.py RUNS --main MAIN --prepared PREPARED --out RESULTS

RUNS is a folder that language_model.py wrote with the plan `final` or `shapes`; MAIN that of the adapter that
ships. Both were measured on the raters that each run had not seen.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from language_model import right_within_sittings
from language_model_data import FOLDS

from palaver.comparator.training_data import load_arrays


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("--main", type=Path, required=True)
    parser.add_argument("--prepared", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    arrays = load_arrays(given.prepared)
    everything = np.ones(len(arrays["fold"]), bool)
    shipped = load_arrays(given.main / "predictions.npz")["held_out"].astype(float)
    rows: dict[str, Any] = {"shipped": right_within_sittings(shipped, everything, arrays)}
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(given.runs.glob("*.json"))]
    for shape in sorted({record["run"].split(".")[0] for record in records}):
        of_folds = [record for record in records if record["run"].startswith(f"{shape}.fold-")]
        if len(of_folds) < FOLDS:
            continue
        held = np.zeros(len(everything))
        for k in range(FOLDS):
            mine = arrays["fold"] == k
            held[mine] = load_arrays(given.runs / f"{shape}.fold-{k}.npz")["reliable_eval"][mine, 0]
        audit = [np.mean(list(record["audit"].values())) for record in of_folds]
        rows[shape] = right_within_sittings(held, everything, arrays) | {
            "audit_open": float(np.mean(audit)),
            "audit_open_kinds": {
                kind: round(float(np.mean([record["audit"][kind] for record in of_folds])), 3)
                for kind in of_folds[0]["audit"]
            },
            "runs": of_folds,
        }
    record = {
        "command": "python experiments/comparator/shapes.py RUNS --main MAIN --prepared PREPARED "
        "--out docs/results/comparator-shapes.json",
        "seed": 0,
        "shapes": rows,
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
