"""How many dialogues a second `palaver compare score` scores, with the language model and without.

    python -m benchmarks.comparator_score --data DATA [--out docs/results/comparator-speed.json]

Real dialogues of about 20 turns (the development dialogues of Reliable-Eval). Timed: reading the file, scores
and intervals of all, the costliest turns of the 100 worst, writing; not the loading of the models, which
takes as long for one dialogue as for a million. All threads of the machine. The median of five runs, each
with the models loaded anew, since they keep what they have encoded. Ends with 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

if not __package__:
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

import torch

from benchmarks.harness import machine
from palaver.comparator import file_scores
from palaver.comparator.scorer import load_scorer
from palaver.engine import n_cores

CASES = {"fast": (648, 60.0), "default": (120, 4.0)}
"""The comparator, how many dialogues it scores, and how many a second are asked for."""
RUNS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    source = options.data / "rated/reliable_eval.dev_dialogues.jsonl.gz"
    with gzip.open(source, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    torch.set_num_threads(n_cores())  # benchmarks have one thread otherwise
    print(machine())
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, (n_dialogues, target) in CASES.items():
            few, many = Path(scratch, "few.jsonl"), Path(scratch, "many.jsonl")
            few.write_text("".join(lines[:3]), encoding="utf-8")
            many.write_text("".join(lines[:n_dialogues]), encoding="utf-8")
            runs = []
            for _ in range(RUNS):
                scorer = load_scorer(name)
                file_scores.load_scorer = lambda *_, scorer=scorer, **__: scorer  # loaded once
                file_scores.score_file(few, Path(scratch, "out.jsonl"), comparator=name)
                begin = time.perf_counter()
                summary = file_scores.score_file(many, Path(scratch, "out.jsonl"), comparator=name)
                runs.append(round(summary.n / (time.perf_counter() - begin), 1))
            per_second = median(runs)
            missed = "" if per_second >= target else "  MISSED"
            print(f"{name:<10}{n_dialogues:>6} dialogues {per_second:>8.1f} a second of {runs}, "
                  f"target {target:g}{missed}")  # fmt: skip
            results[name] = {
                "dialogues": n_dialogues,
                "per_second": per_second,
                "runs": runs,
                "target": target,
            }
    if options.out is not None:
        record = {
            "command": "python -m benchmarks.comparator_score --data DATA",
            "date": datetime.now(UTC).date().isoformat(),
            "hardware": machine(),
            "seed": None,
            "data": source.name,
            "results": results,
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["per_second"] >= row["target"] for row in results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
