"""The shipped comparator on the development pairs, beside its baselines, for docs/reference/comparator.md.

    python experiments/comparator/scorecard.py --data DATA --out docs/results/comparator-scorecard.json

DATA holds the folder `rated`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from benchmarks.harness import machine  # noqa: E402

from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.scorecard import evaluate_comparator  # noqa: E402
from palaver.comparator.scorer import load_scorer  # noqa: E402
from palaver.schema.run import plain, record_run  # noqa: E402

TIERS = [["D", "D_p", "E", "E_p"], ["A", "A_p", "B", "B_p", "C", "C_p"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder = options.data / "rated"
    dialogues = read_rated(
        folder / "reliable_eval.dev_dialogues.jsonl.gz", need_rating=False, keep_empty=True
    )
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dialogues.index, every_vote=True)
    card = evaluate_comparator(load_scorer(), dialogues, pairs, tiers=TIERS, seed=0)
    tiers = " ".join(f"--tier {','.join(tier)}" for tier in TIERS)
    run = record_run(
        "experiments/comparator/scorecard.py",
        seed=0,
        data={"dialogues": dialogues.digest, "pairs": pairs.digest},
        packages=("palaver", "numpy", "scipy", "scikit-learn", "torch", "transformers"),
    )
    record = {
        "made_by": "python experiments/comparator/scorecard.py --data DATA "
        "--out docs/results/comparator-scorecard.json",
        "command": "palaver compare evaluate reliable_eval.dev_dialogues.jsonl.gz "
        f"--pairs reliable_eval.dev_pairs.jsonl.gz {tiers}",
        "date": datetime.date.today().isoformat(),
        "seed": 0,
        "machine": machine(),
        "tiers": TIERS,
        **plain(card),
        "run": plain(run),
    }
    options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
