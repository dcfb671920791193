"""What the runs of the language model say together: the folder MAIN for join.py, scorecard.py and results.py.

    python experiments/comparator/collect.py RUNS --prepared PREPARED --out MAIN [--shape 16]

RUNS is the folder that language_model.py wrote with the plans `final` and `systems` (or `groups`). Writes
predictions.npz, results.json (the records of the runs) and the adapters. In predictions.npz are, as far as
their runs are there: `held_out`, each rated dialogue by the run that had not seen its rater;
`development.SEED` and `convai2.SEED` by the runs that learnt from all; and `unseen_systems`, each development
dialogue by the run that had not seen its system.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from language_model import SHAPES  # noqa: E402
from language_model_data import FOLDS  # noqa: E402

from palaver.comparator.training_data import load_arrays  # noqa: E402


def collect(runs: Path, shape: str, prepared: dict[str, Any]) -> dict[str, Any]:
    """The predictions by name; what is not whole is left out and said."""
    predictions: dict[str, Any] = {}
    files = [runs / f"{shape}.fold-{k}.npz" for k in range(FOLDS)]
    if all(file.is_file() for file in files):
        held = np.full(len(prepared["fold"]), np.nan, "f4")
        for k, file in enumerate(files):
            rows = prepared["fold"] == k
            held[rows] = load_arrays(file)["reliable_eval"][rows, 0]
        predictions["held_out"] = held
    else:
        print(f"not all {FOLDS} quarters of raters were held out: no `held_out`")
    for file in sorted(runs.glob(f"{shape}.seed-*.npz")):
        seed = file.stem.rpartition("-")[2]
        told = load_arrays(file)
        predictions |= {f"{source}.{seed}": told[source][:, 0] for source in ("development", "convai2")}
    systems = prepared["development.system"]
    unseen = np.full(len(systems), np.nan, "f4")
    for file in sorted(runs.glob(f"{shape}.without-*.npz")):
        rows = np.isin(systems, file.stem.partition(".without-")[2].split("+"))
        unseen[rows] = load_arrays(file)["development"][rows, 0]
    if np.isfinite(unseen).all():
        predictions["unseen_systems"] = unseen
    else:
        print(f"{int(np.isnan(unseen).sum())} development dialogues have no run without their system: "
              "no `unseen_systems`")  # fmt: skip
    return predictions


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("--prepared", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", choices=SHAPES, default=next(iter(SHAPES)))
    given = parser.parse_args()
    predictions = collect(given.runs, given.shape, load_arrays(given.prepared))
    if not predictions:
        raise SystemExit(f"{given.runs} holds no run of the shape {given.shape}")
    given.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out / "predictions.npz", **predictions)
    records = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(given.runs.glob(f"{given.shape}.*.json"))
    ]
    (given.out / "results.json").write_text(json.dumps({"runs": records}, indent=1) + "\n", encoding="utf-8")
    for adapter in given.runs.glob(f"{given.shape}.seed-*.safetensors"):
        shutil.copyfile(adapter, given.out / f"adapter-{adapter.stem.rpartition('-')[2]}.safetensors")
    print(", ".join(f"{name} ({len(values)})" for name, values in predictions.items()))


if __name__ == "__main__":
    main()
