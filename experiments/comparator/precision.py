"""What bfloat16 changes: the shipped comparator on the development dialogues in both precisions.

    python experiments/comparator/precision.py --data DATA --work WORK --out RESULTS

For a processor that has bfloat16. The scores are kept in WORK (scores-full.npz, scores-half.npz).
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

from record import head_of, parser_of  # noqa: E402

from palaver.comparator.evaluation import evaluate_pairs  # noqa: E402
from palaver.comparator.reading import read_pairs, read_rated  # noqa: E402
from palaver.comparator.scorer import (  # noqa: E402
    LANGUAGE_MODEL,
    RATER_MODEL,
    SHIPPED,
    JoinedScorer,
    load_scorer,
)
from palaver.comparator.training_data import RatedDialogues, load_arrays  # noqa: E402
from palaver.models import devices  # noqa: E402


def score_parts(dialogues: RatedDialogues, kept: Path, half: bool) -> dict[str, Any]:
    """What the two judges say of each dialogue, read from `kept` if it is there already."""
    if not kept.is_file():
        if half and not devices.has_bfloat16():
            raise SystemExit("this processor has no bfloat16")
        devices.has_bfloat16 = lambda: half
        scorer = load_scorer()
        assert isinstance(scorer, JoinedScorer)
        parts = scorer.scores_of_parts(dialogues.dialogues)
        np.savez(kept, raters=parts[RATER_MODEL], language=parts[LANGUAGE_MODEL])
    return load_arrays(kept)


def main() -> None:
    given = parser_of(__doc__).parse_args()
    folder = given.data / "rated"
    dialogues = read_rated(folder / "reliable_eval.dev_dialogues.jsonl.gz")
    pairs = read_pairs(folder / "reliable_eval.dev_pairs.jsonl.gz", dialogues.index)
    half = score_parts(dialogues, given.work / "scores-half.npz", True)
    full = score_parts(dialogues, given.work / "scores-full.npz", False)
    weights = json.loads((SHIPPED / "comparator.json").read_text(encoding="utf-8"))["language_model"]
    rows = {}
    for name in ("rater model", "language model", "joined"):
        of_full, of_half = (
            {
                "rater model": scores["raters"],
                "language model": scores["language"],
                "joined": weights["raters"] * scores["raters"] + weights["language"] * scores["language"],
            }[name]
            for scores in (full, half)
        )
        off = np.abs(of_half - of_full) / of_full.std()
        signs = [np.sign(scores[pairs.first] - scores[pairs.second]) for scores in (of_full, of_half)]
        rows[name] = {
            "float32": asdict(evaluate_pairs(of_full, pairs)),
            "bfloat16": asdict(evaluate_pairs(of_half, pairs)),
            "flipped_pairs": int((signs[0] != signs[1]).sum()),
            "largest_difference": round(float(off.max()), 4),
            "mean_difference": round(float(off.mean()), 4),
        }
    record = {
        **head_of(__file__, "comparator-precision.json", seed=None),
        "n_dialogues": len(dialogues),
        "n_pairs": len(pairs),
        "unit_of_differences": "the spread of the scores in float32",
        "results": rows,
    }
    given.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(
            name, *(round(row[p]["accuracy"], 4) for p in ("float32", "bfloat16")), row["largest_difference"]
        )


if __name__ == "__main__":
    main()
