"""The figures of docs/results/comparator.md about the comparator that ships: docs/results/comparator.json.

    python experiments/comparator/results.py --data DATA [--work WORK --main MAIN] --out RESULTS

What was measured when it was fitted (`ship.py`) is taken from the record beside its weights. Beside it stand
what trivial rules reach on the same development pairs, the weight of every named feature, and how well the
trust in raters (from the held-out scores that ship.py kept in WORK and those of the language model in MAIN)
finds those who failed quality control; `care` is behind the `suspicion` of `palaver compare clean`. What
needs a WORK or MAIN that is not given stays as RESULTS has it; `trust_measured` says when MAIN was there.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import held_out

from palaver.comparator.evaluation import evaluate_pairs
from palaver.comparator.model import load_model
from palaver.comparator.rater_effects import reliability, sittings
from palaver.comparator.reading import read_pairs, read_rated
from palaver.comparator.representation import NAMES
from palaver.comparator.training_data import load_arrays
from palaver.files import sha256_of
from palaver.schema import Dialogue

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "src/palaver/comparator/default/comparator.json"
KEPT = ("settings", "n_ratings", "n_raters", "on_ratings", "on_pairs", "ece", "data", "encoder")


def count_words(dialogue: Dialogue) -> int:
    return sum(len(turn.text.split()) for turn in dialogue.turns)


TRIVIAL: dict[str, Callable[[Dialogue], float]] = {
    "more words": count_words,
    "more different words": lambda dialogue: len({w for t in dialogue.turns for w in t.text.lower().split()}),
    "longer turns": lambda dialogue: count_words(dialogue) / max(1, len(dialogue.turns)),
}


OWN_SPREAD = "trivial: the rater's own spread"


def find_failed_raters(given: argparse.Namespace) -> dict[str, Any]:
    """AUC of finding the dialogues of raters who failed quality control; the mark is read here only.

    By trust in the rater alone: how well their ratings go with scores of models that have not seen them.
    Beside it what needs no model: who spreads ratings little around their own mean is suspicious.
    """
    rated = read_rated(given.data / "rated/reliable_eval.train.jsonl.gz")
    failed = np.array([not row.dialogue.labels["passed_qc"] for row in rated.rows])
    y, rater = rated.values, rated.codes("rater")
    n_ratings = np.bincount(rater)
    mean = np.bincount(rater, y) / n_ratings
    spread = np.bincount(rater, (y - mean[rater]) ** 2) / n_ratings
    earlier = json.loads(given.out.read_text(encoding="utf-8"))["failed_raters"] if given.out.exists() else {}
    trust = {k: v for k, v in earlier.get("auc", {}).items() if not k.startswith("trivial")}
    measured = earlier.get("trust_measured")
    if given.work is not None:
        held, _ = held_out(given.work, rated.ids)
        scores = {"rater model": held}
        if given.main is not None:
            of_language = load_arrays(given.main / "predictions.npz")["held_out"].astype(float)
            weights = json.loads(RECORD.read_text(encoding="utf-8"))["language_model"]
            scores["joined"] = weights["raters"] * held + weights["language"] * of_language
            scores["language model"] = of_language
            measured = datetime.now(UTC).date().isoformat()
        sitting = sittings(rater, rated.codes("group"))
        for name, of_rows in scores.items():
            agreement = reliability(y, of_rows, rater, sitting)
            trust[name] = auc_of(agreement.of_rows(rater), failed)
            trust[f"{name}, care"] = auc_of(agreement.of_rows(rater, agreement.care), failed)
    return {
        "auc": {**trust, OWN_SPREAD: auc_of(spread[rater], failed)},
        "trust_measured": measured,
        "n_dialogues": len(rated),
        "n_failed": int(failed.sum()),
    }


def auc_of(low: NDArray[np.float64], failed: NDArray[np.bool_]) -> float:
    """The chance that a dialogue of a failed rater has the lower number (ties half)."""
    from scipy.stats import rankdata

    ranks, n = rankdata(-low), int(failed.sum())
    return float((ranks[failed].sum() - n * (n + 1) / 2) / (n * (len(ranks) - n)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--main", type=Path, help="what collect.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    files = [given.data / f"rated/reliable_eval.dev_{kind}.jsonl.gz" for kind in ("dialogues", "pairs")]
    dev = read_rated(files[0])
    pairs = read_pairs(files[1], dev.index)
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    trivial = {
        name: round(evaluate_pairs(np.array([float(rule(d)) for d in dev.dialogues]), pairs).accuracy, 4)
        for name, rule in TRIVIAL.items()
    }
    model, _ = load_model(RECORD.parent)
    linear = np.mean([head.weights for head in model.heads], axis=0)[: len(NAMES)] * model.unit
    order = np.argsort(-np.abs(linear))
    content = {
        "command": "python experiments/comparator/results.py --data DATA --work WORK --main MAIN "
        "--out docs/results/comparator.json",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "data": {path.name: sha256_of(path) for path in files},
        "shipped": {key: record[key] for key in KEPT},
        "trivial_accuracy_on_pairs": trivial,
        "failed_raters": find_failed_raters(given),
        "feature_weights": {NAMES[i]: round(float(linear[i]), 4) for i in order},
        "feature_weights_mean": "log-odds for one standard deviation more, in the linear part",
    }
    given.out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
